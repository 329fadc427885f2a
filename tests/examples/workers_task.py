"""What test_train_on_workers.py trains on two workers of an engine."""

import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parents[2] / "examples"))

import train_on_workers

OPTIONS = {"members": 1, "epochs": 3, "dropout": 0.0, "trees": False, "verbose": False}
NAMES = {"query": "query", "label": "label"}
RUN = {"Ray": train_on_workers.run_on_ray, "Spark": train_on_workers.run_on_spark}


def killed(config):
    """Trains a ranker, and kills worker 1 in the middle of the second epoch, once."""
    os.environ.pop("TF_USE_LEGACY_KERAS", None)
    import tfr_smooth
    from tests.training.replicas import InTheMiddle

    marker = pathlib.Path(config["output_dir"], "killed")

    def kill():
        if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    fit = tfr_smooth.Ranker.fit
    tfr_smooth.Ranker.fit = lambda self, *given, **named: fit(self, *given, **named, callbacks=[InTheMiddle(1, kill)])
    train_on_workers.train(config)

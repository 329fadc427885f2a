"""Without the optional packages, the library imports and trains; errors name the extra that installs a missing one."""

import json
import os
import subprocess
import sys

import pytest

from tests import documents
from tfr_smooth import _keras

pytestmark = pytest.mark.slow
KERAS_3 = pytest.mark.skipif(not _keras.IS_KERAS_3, reason="text reranking needs Keras 3")
OPTIONAL = ["Stemmer", "bm25s", "implicit", "keras_hub", "lightgbm", "matplotlib", "optuna", "pandas"]
OPTIONAL += ["pytrec_eval", "safetensors", "scipy", "sklearn", "tabulate", "tensorflow_ranking", "tensorflow_serving"]
OPTIONAL += ["tensorflow_text", "threadpoolctl"]

PROGRAM = """
import importlib, json, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {optional!r}:
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocked())

import numpy as np
import tfr_smooth
from tfr_smooth import _keras
if _keras.IS_KERAS_3:
    from tfr_smooth import text

report = {{"imported": sorted(set({optional!r}) & set(sys.modules))}}

features = np.random.RandomState(0).randn(8, 5, 3).astype(np.float32)
model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
model.compile(optimizer="adam", loss=tfr_smooth.losses.ListNetLoss(), metrics=[tfr_smooth.metrics.NDCGMetric()])
history = model.fit({{"features": features}}, (features[:, :, 0] > 0).astype(np.float32), epochs=2, verbose=0).history
report["history"] = {{name: list(map(float, values)) for name, values in history.items()}}

folder = {folder!r}
query = tfr_smooth.evaluation.ScoredQuery("q", ["a"], np.array([1]), np.array([0.5]))
calls = {{
    "trec_eval": lambda: tfr_smooth.evaluation.trec_eval([query]),
    "trec_eval_by_query": lambda: tfr_smooth.evaluation.trec_eval_by_query([query]),
    "plot": lambda: tfr_smooth.evaluation.plot_training_curves(folder + "/curves.png", {{"loss": [0.5]}}),
    "calibration": lambda: tfr_smooth.training.fit_calibration([0, 1], [0.0, 1.0]),
    "recommendation": lambda: importlib.import_module("tfr_smooth.recommendation"),
    "experiments": lambda: importlib.import_module("experiments"),
    "warmup": lambda: tfr_smooth.serving.export_ranker(model, folder + "/export", num_features=3),
    "no_warmup": lambda: tfr_smooth.serving.export_ranker(
        model, folder + "/plain", num_features=3, warmup_list_sizes=()
    ),
}}
if _keras.IS_KERAS_3:
    calls["bm25"] = lambda: text.bm25(text.Collection({{}}, {{}}, {{}}, {{}}))
    calls["load_encoder"] = lambda: text.load_encoder(folder)
else:
    calls["text"] = lambda: importlib.import_module("tfr_smooth.text")
for name, call in calls.items():
    try:
        call()
        report[name] = "done"
    except ImportError as error:
        report[name] = str(error)
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("extras")


@pytest.fixture(scope="module")
def report(folder):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(optional=OPTIONAL, folder=str(folder))],
        cwd=documents.ROOT,
        env={**os.environ, "PYTHONPATH": str(documents.ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_library_imports_and_trains_without_optional_packages(report):
    assert report["imported"] == []
    assert set(report["history"]) == {"loss", "ndcg"}
    assert report["history"]["loss"][1] < report["history"]["loss"][0]


def needs(name, packages, extra):
    return f"{name} needs {packages}: pip install 'tfr_smooth[{extra}]'"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("trec_eval", needs("`trec_eval`", "pytrec_eval-terrier", "evaluation")),
        ("trec_eval_by_query", needs("`trec_eval`", "pytrec_eval-terrier", "evaluation")),
        ("plot", needs("`plot_training_curves`", "matplotlib", "evaluation")),
        ("calibration", needs("`fit_calibration`", "scipy", "evaluation")),
        ("recommendation", needs("tfr_smooth.recommendation", "scipy", "recommendation")),
        (
            "experiments",
            "`experiments` needs matplotlib, pandas, scipy, sklearn, tabulate: pip install '.[experiments]'",
        ),
        pytest.param("bm25", needs("`bm25`", "bm25s and PyStemmer", "text"), marks=KERAS_3),
        pytest.param("load_encoder", needs("`load_encoder`", "keras-hub", "text"), marks=KERAS_3),
        pytest.param(
            "text",
            "tfr_smooth.text needs Keras 3, as KerasHub does, but TensorFlow uses tf-keras.",
            marks=pytest.mark.skipif(_keras.IS_KERAS_3, reason="Keras 3 is active"),
        ),
        ("warmup", needs("An export with `warmup_list_sizes`", "tensorflow-serving-api", "serving")),
    ],
)
def test_errors_about_missing_packages_name_the_extra(report, call, message):
    assert report[call] == message


def test_an_export_without_warmup_needs_no_optional_package_and_a_failed_one_leaves_nothing(report, folder):
    assert report["no_warmup"] == "done" and (folder / "plain/1/saved_model.pb").is_file()
    assert {path.name for path in folder.iterdir()} == {"plain"}

"""Runs scripts of examples/, benchmarks/ and tools/ in this process, where TensorFlow is imported."""

import contextlib
import importlib
import io
import os
import pathlib
import runpy
import subprocess
import sys

import pytest
import tensorflow as tf
from absl import app, flags, logging

import tfr_smooth
from tests.helpers.documents import ROOT
from tfr_smooth import recommendation
from tfr_smooth.recommendation import tables

app.define_help_flags()


def _copy(state):
    return {name: dict(value) if isinstance(value, dict) else value for name, value in state.items()}


# The flags of absl, without those of scripts.
_FLAGS = _copy(vars(flags.FLAGS))
_RUN = subprocess.run


def _folder(module):
    return pathlib.Path(getattr(module, "__file__", None) or "/").parent


@contextlib.contextmanager
def _as_in_a_process(path, *arguments):
    """The flags, modules, policy and hooks of a script do not outlast the block, which may be in another such block."""
    before, verbosity = _copy(vars(flags.FLAGS)), logging.get_verbosity()
    policy = tf.keras.mixed_precision.global_policy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [*map(str, (path, *arguments))])
        patch.setattr(sys, "excepthook", sys.excepthook)
        patch.setattr(subprocess, "run", _run_child)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, sys.path)]))
        # TensorFlow has started its threads.
        for setter in ("set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"):
            patch.setattr(tf.config.threading, setter, lambda _: None)
        patch.syspath_prepend(path.parent)
        modules = {name: module for name, module in sys.modules.items() if _folder(module) == path.parent}
        for name in modules:
            del sys.modules[name]
        vars(flags.FLAGS).update(_copy(_FLAGS))
        try:
            yield
        finally:
            vars(flags.FLAGS).update(before)
            logging.set_verbosity(verbosity)
            tf.keras.mixed_precision.set_global_policy(policy)
            for name in [name for name, module in sys.modules.items() if _folder(module) == path.parent]:
                del sys.modules[name]
            sys.modules.update(modules)


def _run_child(command, **options):
    """A script that runs itself with other arguments does so in this process, unless it needs its own environment."""
    is_script = command[0] == sys.executable and str(command[1]).endswith(".py") and "env" not in options
    return run(*command[1:]) if is_script else _RUN(command, **options)


def run(script, *arguments):
    """Runs a script to its end as `helpers.run_python` does, but for uncaught errors, which are raised here."""
    path, status, output, errors = ROOT / script, None, io.StringIO(), io.StringIO()
    with _as_in_a_process(path, *arguments), contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            status = end.code
    if isinstance(status, str):
        print(status, file=errors)
    code = 1 if isinstance(status, str) else int(status or 0)
    return subprocess.CompletedProcess(path, code, output.getvalue(), errors.getvalue())


def check_run(script, *arguments):
    """Does the same, checks that the script succeeded, and returns what it printed."""
    done = run(script, *arguments)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def results_in(folder):
    """Returns the complete results with their times; a killed run may leave a hidden, unfinished file."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("results/**/*.npz") if path.name[0] != "."}


def small_rankers(monkeypatch):
    """Makes rankers and recommenders small where a program has their defaults."""
    ranker = {"hidden": (8,), "members": 1, "epochs": 2, "softmax_epochs": 0, "trees": False}
    recommender = {"dim": 8, "softmax_epochs": 1, "loss": None, "refit": False}
    for estimator, defaults in ((tfr_smooth.Ranker, ranker), (recommendation.Recommender, recommender)):
        constructor = estimator.__init__
        assert set(defaults) <= set(constructor.__kwdefaults__)
        monkeypatch.setattr(constructor, "__kwdefaults__", constructor.__kwdefaults__ | defaults)
    monkeypatch.setattr(tables, "_STEPS", 20)


def load(script):
    """Returns a script as a module."""
    path = ROOT / script
    with _as_in_a_process(path):
        return importlib.import_module(path.stem)

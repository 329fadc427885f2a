"""Selects what pytest collects on each stack, keeps compiled programs, and reports the peak memory of processes."""

import gc
import importlib.metadata
import importlib.util
import os
import resource
import shutil
import sys
import tempfile
import time

import pytest

# Python looks for garbage after every 700 new objects by default: a seventh of the time of importing and tracing.
gc.set_threshold(200_000, 20, 100)
# Collecting the doctests of tfr_smooth.tf_ranking imports TF-Ranking.
HAS_TF_RANKING = importlib.util.find_spec("tensorflow_ranking") is not None
if HAS_TF_RANKING and importlib.util.find_spec("tf_keras") is not None:
    # TF-Ranking requires Keras 2. Programs started by tests inherit this.
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
collect_ignore = [] if HAS_TF_RANKING else ["tfr_smooth/tf_ranking", "tests/tf_ranking/pipeline_task.py"]
# KerasHub requires Keras 3 and Python 3.11.
HAS_KERAS_HUB = importlib.util.find_spec("keras_hub") is not None and not HAS_TF_RANKING
if not HAS_KERAS_HUB:
    collect_ignore += ["tfr_smooth/text", "tests/text", "tests/examples/test_text_reranking.py"]
    collect_ignore += ["tests/experiments/test_cross_validation.py", "tests/experiments/test_text_collections.py"]

# Their own stack: together, they are as large as TensorFlow.
HAS_ENGINES = all(importlib.util.find_spec(name) for name in ("pyspark", "dask", "ray"))
if not HAS_ENGINES:
    collect_ignore += ["tests/serving/test_engines.py", "tests/examples/test_train_on_workers.py"]

# Examples in docstrings that train or export for seconds, like tests marked slow.
SLOW_EXAMPLES = {
    "models.wrapped_scorers.PositionBias",
    "models.scorer.Scorer",
    "ranker.ranker.Ranker",
    "recommendation.recommender.Recommender",
    "text.text_ranker.TextRanker",
    "serving.partitions.score_partitions",
    "tf_ranking.pipeline.SimplePipeline",
    "training.resuming.ResumableTraining",
    "training.trainer.train",
    "training.validation.ExactValidation",
    "training.validation.Validation",
}

# Their tests run on Keras 2, too.
KERAS_2 = ("tests/tf_ranking", "tfr_smooth/tf_ranking", "tfr_smooth/losses", "tfr_smooth/metrics")

PEAKS = pytest.StashKey[dict[str, float]]()


def pytest_report_header() -> list[str]:
    missing = {"tf_ranking (this stack has no tensorflow_ranking)": HAS_TF_RANKING}
    missing["text (this stack has no keras_hub with Keras 3)"] = HAS_KERAS_HUB
    missing["serving/partitions.py on engines (this stack has no Spark, Dask and Ray)"] = HAS_ENGINES
    return [f"not collected: tfr_smooth/{name}" for name, has in missing.items() if not has]


def peak_gigabytes() -> float:
    """Peak memory of this process; Linux counts in kilobytes, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[PEAKS] = {}
    if not hasattr(config, "workerinput"):
        # Converted files do not fill the user's cache folder. The processes of pytest-xdist and programs inherit this.
        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="tfr_smooth-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True))
    # The processes of pytest-xdist, the programs that they start and later runs share the programs that XLA compiles.
    # With this flag, TensorFlow 2.15 cannot compile for CPUs.
    version = importlib.metadata.version("tensorflow")
    if hasattr(config, "cache") and not hasattr(config, "workerinput") and not version.startswith("2.15."):
        folder = config.cache.mkdir(f"programs-{version}")
        flags = f'--tf_xla_persistent_cache_directory="{folder}" --tf_xla_persistent_cache_device_types=CPU'
        os.environ["TF_XLA_FLAGS"] = f"{os.environ.get('TF_XLA_FLAGS', '')} {flags}".strip()


@pytest.hookimpl(tryfirst=True)  # before the selection by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first = tuple(os.environ.get("TESTS_FIRST", "").split())
    items.sort(key=lambda item: not item.nodeid.startswith(first))
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name.removeprefix("tfr_smooth.") in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        if item.nodeid.startswith(KERAS_2):
            item.add_marker(pytest.mark.keras_2)


@pytest.hookimpl(tryfirst=True)  # before fixtures
def pytest_runtest_setup() -> None:
    if time.time() > float(os.environ.get("TESTS_UNTIL", "inf")):
        pytest.skip("not run: the time for all tests is over")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # what the imports made


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a worker of pytest-xdist
        session.config.workeroutput["peak_gigabytes"] = peak_gigabytes()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    peak = getattr(node, "workeroutput", {}).get("peak_gigabytes")
    if peak is not None:
        node.config.stash[PEAKS][node.gateway.id] = peak


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    peaks = config.stash[PEAKS] or {"this process": peak_gigabytes()}
    shown = ", ".join(f"{name} {peak:.2f} GB" for name, peak in sorted(peaks.items()))
    terminalreporter.write_line(f"Peak memory: {shown}")

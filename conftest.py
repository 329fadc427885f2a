"""What pytest collects on which stack."""

import importlib.util

# Importing these modules, which their doctests need, imports TF-Ranking: it has no release for TensorFlow >= 2.16.
HAS_TF_RANKING = importlib.util.find_spec("tensorflow_ranking") is not None
collect_ignore = [] if HAS_TF_RANKING else ["tfr_smooth/tf_ranking"]


def pytest_report_header() -> str | None:
    return None if HAS_TF_RANKING else "not collected: tfr_smooth/tf_ranking (this stack has no tensorflow_ranking)"

"""The laboratory: reproducible comparisons of losses and rankers on the folds of data sets (docs/study.md).

It uses the package `tfr_smooth` and is not part of it: import it with the root of the repository in Python's path. The
modules `cross_validation` (text reranking, which needs Keras 3), `implicit_models` and `smoothness` are imported by
their own names.
"""

import importlib

for name in ("matplotlib", "pandas", "scipy", "sklearn", "tabulate"):
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"`experiments` needs {name}: pip install '.[experiments]'") from error

from experiments.execution import Failure, run_jobs
from experiments.folds import Dataset, Fold, Queries, digest, find_folds, load_fold, one_split
from experiments.jobs import MEASURES, Job, Result, StoredJob, read_result
from experiments.rankers import RANKERS, Fitted, Method
from experiments.report import write_report
from experiments.results import Results, collect, read_results, write_results
from experiments.study import Entry, Study, read_config
from experiments.trade_off import pareto_front, plot_pareto_front, trade_off

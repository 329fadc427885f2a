"""Distills boosted trees into a small network: LightGBM's LambdaMART is the teacher, `tfr_smooth.Ranker` the student.

    python examples/distill.py --members=1 --hidden=32 --dropout=0 --output_dir=output/distill
    python examples/distill.py --members=1 --hidden=32 --dropout=0 --data=MQ2008 --seeds=3 --output_dir=output/mq2008

--data is a folder with Fold1 .. FoldK or LETOR's five parts. Without it, the script writes synthetic data to
OUTPUT_DIR/data. It prints trec_eval's measures of the test queries of all folds, with standard errors over queries, and
Spearman's correlation of each student with the teacher. OUTPUT_DIR contains
    queries.csv  the measures of each test query, by ranker, fold and seed
    table.md     the printed table
    export/1/    the distilled student of the last fold with the best validation NDCG, as a SavedModel
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import startup

# isort: split
import estimator_flags
import numpy as np
from absl import flags
from command_line import errors_in_one_line, json_flag

import tfr_smooth
from tfr_smooth import data, evaluation, measures

try:
    import lightgbm
    import pandas as pd

    import experiments
except ImportError:
    sys.exit("error: examples/distill.py requires the extra `tfr_smooth[experiments]`.")

_DATA = flags.DEFINE_string("data", None, "Folder with Fold1 .. FoldK, or S1.txt .. S5.txt. Default: synthetic data.")
_DISTILL = json_flag(
    "distill",
    "Losses of the teacher's scores as JSON: hyperparameters by label, and the name of the loss if it differs, such as "
    '{"list_net": {}, "flat": {"loss": "adr_mse", "alpha": 1}}. --loss is the loss of the labels.',
)
_LOSSES = ("list_net", "coupled_rankdistil", "adr_mse", "pairwise_mse", "fastsort_spearman")
_TEMPERATURE = flags.DEFINE_float("teacher_temperature", 1.0, "Divisor of the teacher's scores.")
_SEEDS = flags.DEFINE_integer("seeds", 1, "Students per loss and fold.", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "output/distill", "Folder for all output.")
_RANKER = estimator_flags.EstimatorFlags(tfr_smooth.Ranker, page="docs/ranker.md")
flags.adopt_module_key_flags(estimator_flags)

_MEASURES = {"ndcg": "NDCG", "ndcg_cut_10": "NDCG@10", "map": "MAP"}
Part = dict[str, np.ndarray]  # features "X", labels "y" and queries "qid"; the rows of a query are adjacent


def main(argv: list[str]) -> None:
    with errors_in_one_line(OSError, ValueError):
        if len(argv) > 1:
            raise ValueError(f"Unknown argument {argv[1]!r}. Flags start with --.")
        output = pathlib.Path(_OUTPUT_DIR.value)
        output.mkdir(parents=True, exist_ok=True)
        ranker = _RANKER.make(verbose=False)
        rankers = {f"labels: {ranker.get_params()['loss']}": ranker}
        for label, args in (_DISTILL.value or dict.fromkeys(_LOSSES, {})).items():
            args = {"loss": label, **args}
            # The labels of the validation queries select the epoch.
            ranker = _RANKER.make(args.pop("loss"), args, select_by="ndcg", verbose=False)
            rankers[f"teacher: {label}"] = ranker
        found: list[pd.DataFrame] = []
        for fold, files in folds(output).items():
            train, valid, test = read(files).values()
            teacher = train_teacher(train, valid)
            targets = labels_from_scores(teacher.predict(train["X"]), train["qid"]) / _TEMPERATURE.value
            of_teacher = teacher.predict(test["X"])
            frame = measured(test, of_teacher, of_teacher)
            found.append(frame.assign(ranker="LambdaMART (teacher)", fold=fold, seed=0))
            best: tuple[float, tfr_smooth.Ranker | None] = (-1.0, None)
            for name, ranker in rankers.items():
                for seed in range(_SEEDS.value):
                    student = tfr_smooth.Ranker(**{**ranker.get_params(), "seed": seed})
                    labels = targets if name.startswith("teacher") else train["y"]
                    student.fit(train["X"], labels, qid=train["qid"], validation=tuple(valid.values()))
                    frame = measured(test, student.predict(test["X"], qid=test["qid"]), of_teacher)
                    found.append(frame.assign(ranker=name, fold=fold, seed=seed))
                    reached = student.score(**valid)
                    print(f"{fold}, seed {seed}, {name}: validation NDCG {reached:.4f}", flush=True)
                    if name.startswith("teacher") and reached > best[0]:
                        best = reached, student
            rows = pd.concat(found)
            rows.to_csv(output / "queries.csv", index=False)
            (output / "table.md").write_text(table(rows))
        if best[1] is not None:
            best[1].export(output / "export")
    print(f"{table(rows)}Output: {output}")


def folds(output: pathlib.Path) -> dict[str, Any]:
    """The files of each part, by fold."""
    if _DATA.value:
        return dict(experiments.find_folds(_DATA.value).folds)
    files = data.write_synthetic_letor(output / "data")
    return dict(experiments.one_split(files["train"], files["valid"], files["test"]).folds)


def read(files: dict[str, tuple[str, ...]]) -> dict[str, Part]:
    """The rows of each part."""
    columns = {"X": "features", "y": "label", "qid": "query_id"}
    parts = {
        part: {name: lists.values(column) for name, column in columns.items()}
        for part, lists in data.read_split(files).items()
    }
    return {part: {**rows, "qid": rows["qid"].astype(str)} for part, rows in parts.items()}


def ends(qid: np.ndarray) -> np.ndarray:
    """0 and the row after the last one of each query."""
    return np.flatnonzero(np.r_[True, qid[1:] != qid[:-1], True])


def train_teacher(train: Part, valid: Part) -> Any:
    """Boosted trees; validation NDCG@10 selects their number."""
    options = {"objective": "lambdarank", "eval_at": [10], "num_leaves": 15, "learning_rate": 0.05, "verbosity": -1}
    sets = [lightgbm.Dataset(part["X"], part["y"], group=np.diff(ends(part["qid"]))) for part in (train, valid)]
    stop = lightgbm.early_stopping(50, verbose=False)
    return lightgbm.train({**options, "num_threads": 1}, sets[0], 1000, valid_sets=sets[1:], callbacks=[stop])


def labels_from_scores(scores: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The scores of a teacher, with 0 for the lowest one of each query, since negative labels mark padding."""
    series = pd.Series(scores)
    return (series - series.groupby(queries).transform("min")).to_numpy(np.float32)


def measured(test: Part, scores: np.ndarray, teacher: np.ndarray) -> Any:
    """The measures of each query, one row each; no correlation where the teacher's scores are equal."""
    spearman, rows, targets = measures.SpearmanCorrelation(), [], labels_from_scores(teacher, test["qid"])
    for start, end in zip(ends(test["qid"])[:-1], ends(test["qid"])[1:], strict=True):
        labels, mine, wanted = test["y"][start:end], scores[start:end], targets[start:end]
        names = evaluation.document_names([""] * len(mine))
        query = evaluation.ScoredQuery(test["qid"][start], names, labels, mine)
        by_measure = evaluation.trec_eval([query], list(_MEASURES))
        correlation = float(spearman(wanted[None], mine[None])[0]) if wanted.any() else np.nan
        rows.append({"query": test["qid"][start], **by_measure, "Spearman with the teacher": correlation})
    return pd.DataFrame(rows).rename(columns=_MEASURES)


def table(rows: Any) -> str:
    """Means over seeds and queries, with standard errors over queries."""
    by_query = rows.drop(columns="seed").groupby(["ranker", "fold", "query"], sort=False).mean()
    means, errors = (getattr(by_query.groupby("ranker", sort=False), name)() for name in ("mean", "sem"))
    lines = [["", *means.columns], ["---"] * (len(means.columns) + 1)]
    for name in means.index:
        cells = zip(means.loc[name], errors.loc[name], strict=True)
        lines.append([name, *(f"{mean:.4f} ± {error:.4f}" for mean, error in cells)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    startup.run(main, flags_parser=estimator_flags.parse)

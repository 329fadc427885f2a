"""Ranks the documents of LETOR files, labeled or not, with a trained model.

    python examples/rank_letor.py output/fold1/best.keras new.txt --output=new.run
    python examples/rank_letor.py output/fold1/export/1 'new*.txt.gz' --to=csv --output=new.csv

The model is a .keras file or the folder of an exported model. --to selects the output format:
    run   a TREC run file: query_id Q0 doc_id rank score tag
    csv   a table: query_id, doc_id, rank, score
    rows  the input lines in their order, each after its score and a tab; not for .zst files
Document ids come from the comments (#docid = ...). If ids are missing or not unique, documents are named by their
positions in the query. Labels are not read.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import os
from collections.abc import Callable, Iterator
from typing import Any

import startup

# isort: split
import format_flags
import tensorflow as tf
from absl import flags
from command_line import errors_in_one_line, replacing

from tfr_smooth import data, evaluation, training

_OUTPUT = flags.DEFINE_string("output", None, "File to write.", required=True)
_TO = flags.DEFINE_enum("to", "run", ["run", "csv", "rows"], "Output format.")
_TAG = flags.DEFINE_string("tag", "tfr_smooth", "Name of the ranker in a run file.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 128, "Queries per batch.", lower_bound=1)
_NUM_FEATURES = flags.DEFINE_integer("num_features", None, "Number of features, if the model does not define it.")
_FORMAT = format_flags.FormatFlags(without=["labeled"])
flags.adopt_module_key_flags(format_flags)  # --help shows them too.

# How to open compressed files, by extension.
OPEN: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open}


def main(argv: list[str]) -> None:
    with errors_in_one_line(ImportError, OSError, ValueError):
        if len(argv) < 3:
            raise ValueError("Expected a model and files: rank_letor.py MODEL FILE .. --output=OUTPUT")
        format = _FORMAT.letor_format(labeled="false")
        model, num_features = load(argv[1], _NUM_FEATURES.value)
        paths = data.expand_paths(argv[2:])
        dataset = data.read_letor(paths, num_features=num_features, format=format).batches(_BATCH_SIZE.value, ids=True)
        write = {"run": write_run, "csv": write_csv, "rows": write_rows}[_TO.value]
        write(paths, training.score_queries(model, dataset))
    print(f"Wrote {_OUTPUT.value}")


def load(path: str, num_features: int | None) -> tuple[Callable[..., tf.Tensor], int]:
    """Returns the model, as a function of features and mask, and its number of features."""
    if os.path.isdir(path):
        rank = tf.saved_model.load(path).signatures["rank"]
        model: Any = lambda inputs: rank(**inputs)["scores"]  # noqa: E731
        known = rank.structured_input_signature[1]["features"].shape[-1]
    elif os.path.isfile(path):
        model = tf.keras.models.load_model(path, compile=False)
        known = getattr(model, "num_features", None)
    else:
        raise ValueError(f"The model must be a .keras file or the folder of an exported model, got {path!r}.")
    if known is None and num_features is None:
        raise ValueError(f"--num_features is required: {path!r} does not define the number of features.")
    if None not in (known, num_features) and known != num_features:
        raise ValueError(f"--num_features must be {known}, the number of features of {path!r}, got {num_features}.")
    return model, known or num_features


def write_run(paths: list[str], queries: Iterator[evaluation.ScoredQuery]) -> None:
    evaluation.write_run(_OUTPUT.value, queries, tag=_TAG.value)


def write_csv(paths: list[str], queries: Iterator[evaluation.ScoredQuery]) -> None:
    with replacing(_OUTPUT.value) as path, open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["query_id", "doc_id", "rank", "score"])
        for query in queries:
            ranked = sorted(zip(query.scores.tolist(), query.doc_ids, strict=True), reverse=True)
            table.writerows(
                [query.query_id, name, rank, f"{score:.9g}"] for rank, (score, name) in enumerate(ranked, 1)
            )


def write_rows(paths: list[str], queries: Iterator[evaluation.ScoredQuery]) -> None:
    scores = (score for query in queries for score in query.scores.tolist())
    with replacing(_OUTPUT.value) as path, open(path, "wb") as file:
        for score, line in zip(scores, documents(paths), strict=True):
            file.write(b"%.9g\t%s\n" % (score, line.rstrip(b"\r\n")))


def documents(paths: list[str]) -> Iterator[bytes]:
    """The lines of the files that are neither empty nor comments."""
    for path in paths:
        with OPEN.get(os.path.splitext(path)[1], open)(path, "rb") as file:
            lines = (line.removeprefix(codecs.BOM_UTF8) for line in file)
            yield from (line for line in lines if line.split(b"#", 1)[0].strip())


if __name__ == "__main__":
    startup.run(main)

"""Ranks the documents of LETOR files, labeled or not, with a trained model.

    python examples/rank_letor.py output/fold1/best.keras new.txt --output=new.run
    python examples/rank_letor.py output/fold1/export/1 'new*.txt.gz' --to=csv --output=new.csv

The model is a .keras file or the folder of an export. --to says what is written:
    run   a run file of TREC: query_id Q0 doc_id rank score tag
    csv   a table: query_id, doc_id, rank, score
    rows  the lines of the documents in their order, each behind its score and a tab
Documents have the ids of their comments (#docid = ...) for names, or their positions in the query where ids are missing
or not unique. Labels are not read.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfr_smooth import _files, data, evaluation, training
from tfr_smooth._command_line import errors_in_one_line
from tfr_smooth.data.text_files import expand_paths, numbered_lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a .keras file, or the folder of an export")
    parser.add_argument("files", nargs="+", help="files or glob patterns")
    parser.add_argument("--output", required=True, help="the file to write")
    parser.add_argument("--to", choices=WRITERS, default="run", help="what to write (default %(default)s)")
    parser.add_argument("--tag", default="tfr_smooth", help="the name of the ranker in a run (default %(default)s)")
    parser.add_argument("--batch_size", type=int, default=128, help="queries in a batch (default %(default)s)")
    parser.add_argument("--num_features", type=int, help="features of the model, where it does not say")
    for name, text in data.LetorFormat.flags().items():
        if name != "labeled":
            parser.add_argument(f"--{name}", help=text)
    flags = parser.parse_args(arguments)
    with errors_in_one_line(ImportError, OSError, ValueError):
        format = {name: getattr(flags, name) for name in data.LetorFormat.flags() if name != "labeled"}
        options = dataclasses.asdict(data.LetorFormat.from_flags({**format, "labeled": "false"}))
        model, num_features = load(flags.model, flags.num_features)
        paths = expand_paths(flags.files)
        dataset = data.read_letor(
            paths, batch_size=flags.batch_size, num_features=num_features, return_ids=True, **options
        )
        WRITERS[flags.to](flags, paths, training.score_queries(model, dataset))
    print(f"Wrote {flags.output}")


def load(path: str, num_features: int | None) -> tuple[Callable[..., tf.Tensor], int]:
    """The model, as a function of features and mask, and its number of features."""
    if os.path.isdir(path):
        rank = tf.saved_model.load(path).signatures["rank"]
        model: Any = lambda inputs: rank(**inputs)["scores"]  # noqa: E731
        known = rank.structured_input_signature[1]["features"].shape[-1]
    elif os.path.isfile(path):
        model = tf.keras.models.load_model(path, compile=False)
        known = getattr(model, "num_features", None)
    else:
        raise ValueError(f"There is no model {path!r}: give a .keras file, or the folder of an export.")
    if known is None and num_features is None:
        raise ValueError(f"--num_features must be given: {path!r} does not say how many it takes.")
    if None not in (known, num_features) and known != num_features:
        raise ValueError(f"--num_features must be {known}, as {path!r} takes, got {num_features}.")
    return model, known or num_features


def write_run(flags: argparse.Namespace, paths: list[str], queries: Iterator[evaluation.ScoredQuery]) -> None:
    evaluation.write_run(flags.output, queries, tag=flags.tag)


def write_csv(flags: argparse.Namespace, paths: list[str], queries: Iterator[evaluation.ScoredQuery]) -> None:
    def rows() -> Iterator[Sequence[Any]]:
        yield "query_id", "doc_id", "rank", "score"
        for query in queries:
            ranked = sorted(zip(query.scores.tolist(), query.doc_ids, strict=True), reverse=True)
            for rank, (score, doc_id) in enumerate(ranked, 1):
                yield query.query_id, doc_id, rank, f"{score:.9g}"

    _files.write_text(flags.output, map(as_csv, rows()))


def as_csv(row: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(row)
    return text.getvalue()


def write_rows(flags: argparse.Namespace, paths: list[str], queries: Iterator[evaluation.ScoredQuery]) -> None:
    lines = (line for path in paths for _, line in numbered_lines(path) if line.split(b"#", 1)[0].strip())
    scores = (score for query in queries for score in query.scores.tolist())
    rows = zip(scores, lines, strict=True)
    _files.write_bytes(flags.output, (b"%.9g\t%s\n" % (score, line.rstrip(b"\r\n")) for score, line in rows))


WRITERS = {"run": write_run, "csv": write_csv, "rows": write_rows}

if __name__ == "__main__":
    main()

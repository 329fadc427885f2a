"""Evaluates a run file as trec_eval does, and compares it with another one.

    python examples/evaluate_run.py test.run --qrels=test.qrels
    python examples/evaluate_run.py test.run --letor=Fold1/test.txt --measures=ndcg_cut_10,map --by_query
    python examples/evaluate_run.py test.run --qrels=test.qrels --against=other.run

The labels are those of a qrels file, or of LETOR files. Lines are those of trec_eval: measure, query or "all", figure.
Queries that a run lacks count as 0, as with `trec_eval -c`. With --against, a line for each measure has the figures of
both runs, their difference, and how often chance alone makes one as large (a randomization test over the queries).
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Sequence

import numpy as np

from tfr_smooth import data, evaluation, training
from tfr_smooth._command_line import errors_in_one_line
from tfr_smooth.evaluation.trec import DEFAULT_MEASURES


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run file")
    labels = parser.add_mutually_exclusive_group(required=True)
    labels.add_argument("--qrels", help="a qrels file")
    labels.add_argument("--letor", nargs="+", help="LETOR files or patterns, with the documents of the run")
    parser.add_argument("--measures", default=",".join(DEFAULT_MEASURES), help="default: %(default)s")
    parser.add_argument("--by_query", action="store_true", help="show the figures of each query, too")
    parser.add_argument("--against", help="another run file, to compare with")
    for name, text in data.LetorFormat.flags().items():
        parser.add_argument(f"--{name}", help=f"for --letor: {text}")
    flags = parser.parse_args(arguments)
    with errors_in_one_line(ImportError, OSError, ValueError):
        qrels = letor_labels(flags) if flags.qrels is None else evaluation.read_qrels(flags.qrels)
        measures = flags.measures.split(",")
        first, *others = (
            evaluation.trec_eval_by_query(read_run(path, qrels), measures, qrels=qrels)
            for path in (flags.run, flags.against)
            if path is not None
        )
    if flags.by_query:
        for query_id in first:
            for measure in measures:
                print(
                    f"{measure}\t{query_id}\t"
                    + "\t".join(f"{each[query_id][measure]:.4f}" for each in [first, *others])
                )
    for measure in measures:
        values = [{query_id: figures[measure] for query_id, figures in each.items()} for each in [first, *others]]
        text = "\t".join(f"{statistics.fmean(each.values()):.4f}" for each in values)
        if others:
            found = evaluation.randomization_test(*values)
            text += f"\t{found.mean_difference:+.4f}\tp={found.p_value:.4f}"
        print(f"{measure}\tall\t{text}")


def read_run(path: str, qrels: dict[str, dict[str, int]]) -> dict[str, dict[str, float]]:
    """A run; says which of its queries do not count, and which it lacks."""
    run = evaluation.read_run(path)
    for count, what in ((len(set(run) - set(qrels)), "have no labels"), (len(set(qrels) - set(run)), "it lacks: 0")):
        if count:
            print(f"{path}: {count} queries {what}", file=sys.stderr)
    return run


def letor_labels(flags: argparse.Namespace) -> dict[str, dict[str, int]]:
    """The labels of LETOR files, with the names that documents have in runs."""
    format = data.LetorFormat.from_flags({name: getattr(flags, name) for name in data.LetorFormat.flags()})
    lists = data.read_letor(flags.letor, batch_size=128, cache=True, return_ids=True, **dataclasses.asdict(format))
    # The scores do not matter.
    queries = training.score_queries(lambda inputs: np.zeros(inputs["mask"].shape, np.float32), lists)
    return {query.query_id: dict(zip(query.doc_ids, query.labels.tolist(), strict=True)) for query in queries}


if __name__ == "__main__":
    main()

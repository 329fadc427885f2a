"""Evaluates a run file as trec_eval does, and optionally compares it with another run.

    python examples/evaluate_run.py test.run --qrels=test.qrels
    python examples/evaluate_run.py test.run --letor=Fold1/test.txt --measures=ndcg_cut_10,map --by_query
    python examples/evaluate_run.py test.run --qrels=test.qrels --against=other.run

The labels come from a qrels file or from LETOR files. The output has trec_eval's format: measure, query id or "all",
value. Queries that are missing from a run count as 0, as with `trec_eval -c`. With --against, the line of a measure
contains the values of both runs, their difference, and the p-value of a randomization test over the queries.
"""

from __future__ import annotations

import statistics
import sys

import startup

# isort: split
import format_flags
import numpy as np
from absl import flags
from command_line import errors_in_one_line

from tfr_smooth import data, evaluation, training

MEASURES = ["ndcg", "ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "P_1", "P_5", "P_10", "map"]

_QRELS = flags.DEFINE_string("qrels", None, "A qrels file.")
_LETOR = flags.DEFINE_list("letor", None, "LETOR files with the documents of the run: paths or glob patterns.")
_MEASURES = flags.DEFINE_list("measures", MEASURES, "trec_eval measures.")
_BY_QUERY = flags.DEFINE_bool("by_query", False, "Also print the values per query.")
_AGAINST = flags.DEFINE_string("against", None, "Another run file to compare with.")
_FORMAT = format_flags.FormatFlags(files="the files of --letor")
flags.adopt_module_key_flags(format_flags)  # --help shows them too.
flags.mark_flags_as_mutual_exclusive(["qrels", "letor"], required=True)


def main(argv: list[str]) -> None:
    measures = _MEASURES.value
    with errors_in_one_line(ImportError, OSError, ValueError):
        if len(argv) != 2:
            raise ValueError(f"Expected one run file, got {len(argv) - 1}.")
        qrels = letor_labels() if _QRELS.value is None else evaluation.read_qrels(_QRELS.value)
        first, *others = (
            evaluation.trec_eval_by_query(read_run(path, qrels), measures, qrels=qrels)
            for path in (argv[1], _AGAINST.value)
            if path is not None
        )
    if _BY_QUERY.value:
        for query_id in first:
            for measure in measures:
                print(
                    f"{measure}\t{query_id}\t"
                    + "\t".join(f"{each[query_id][measure]:.4f}" for each in [first, *others])
                )
    for measure in measures:
        values = [{query_id: found[measure] for query_id, found in each.items()} for each in [first, *others]]
        text = "\t".join(f"{statistics.fmean(each.values()):.4f}" for each in values)
        if others:
            found = evaluation.randomization_test(*values)
            text += f"\t{found.mean_difference:+.4f}\tp={found.p_value:.4f}"
        print(f"{measure}\tall\t{text}")


def read_run(path: str, qrels: dict[str, dict[str, int]]) -> dict[str, dict[str, float]]:
    """Reads a run; prints how many queries have no labels or are missing."""
    run = evaluation.read_run(path)
    for count, what in (
        (len(set(run) - set(qrels)), "without labels are ignored"),
        (len(set(qrels) - set(run)), "are missing and count as 0"),
    ):
        if count:
            print(f"{path}: {count} queries {what}", file=sys.stderr)
    return run


def letor_labels() -> dict[str, dict[str, int]]:
    """The labels of LETOR files, by query id and the names of documents in runs."""
    lists = data.read_letor(_LETOR.value, format=_FORMAT.letor_format()).batches(128, ids=True)
    # Any scores will do: only the labels are used.
    queries = training.score_queries(lambda inputs: np.zeros(inputs["mask"].shape, np.float32), lists)
    return {query.query_id: dict(zip(query.doc_ids, query.labels.tolist(), strict=True)) for query in queries}


if __name__ == "__main__":
    startup.run(main)

"""Ranking metrics of trec_eval, computed with pytrec_eval."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from tfr_smooth import _arguments
from tfr_smooth.data.reading.checks import Where, query_ids
from tfr_smooth.data.reading.sources import check_index, column

DEFAULT_MEASURES = ("ndcg", "ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "P_1", "P_5", "P_10", "map")

# The measures that are averaged over queries, under the names that pytrec_eval returns. It ignores text after a name
# ("ndcg_cut_5x") and aborts the process for some other names.
_MEASURE = re.compile(r"map|ndcg|recip_rank|Rprec|(?:P|map_cut|ndcg_cut|recall|recip_rank|success)_[1-9][0-9]{0,8}")
_MEASURES = (
    "map, ndcg, recip_rank, Rprec, P_k, map_cut_k, ndcg_cut_k, recall_k, recip_rank_k or success_k (k from 1 to"
    " 999999999)"
)
# The time of trec_eval's NDCG is quadratic in the highest label.
_MAX_LABEL = 1023
# The field separators of TREC files, and trec_eval's end of a string.
_SEPARATORS = " \t\n\r\v\f\0"


V = TypeVar("V")


class ByMeasure(dict[str, V]):
    """Values by measure, printed with one line per measure."""

    def __str__(self) -> str:
        """Returns the lines, with four digits."""
        width = max(map(len, self), default=0)
        shown = (f"{value:.4f}" if isinstance(value, float) else value for value in self.values())
        return "\n".join(f"{name:{width}}  {value}" for name, value in zip(self, shown, strict=True))


class ScoredQuery(NamedTuple):
    """The documents of a query with their labels and a ranker's scores.

    Attributes:
      query_id: The query id.
      doc_ids: The document ids, [documents], unique; see `document_names`.
      labels: [documents], whole numbers from 0 (not relevant) to 1023, of any numeric type.
      scores: [documents], finite in float32, of any numeric type.

    Example:
      >>> query = ScoredQuery("q1", ["a", "b"], labels=np.array([0, 1]), scores=np.array([0.3, 0.2]))
      >>> query.doc_ids[query.scores.argmax()]
      'a'
    """

    query_id: str
    doc_ids: Sequence[str]
    labels: np.ndarray
    scores: np.ndarray


# What `read_run` and `read_qrels` return: query id -> document id -> score or label.
Run: TypeAlias = "Mapping[str, Mapping[str, float]]"
Qrels: TypeAlias = "Mapping[str, Mapping[str, int]]"


def trec_eval(
    queries: Iterable[ScoredQuery] | Run,
    measures: str | Iterable[str] = DEFAULT_MEASURES,
    *,
    qrels: Qrels | None = None,
) -> ByMeasure[float]:
    """Computes trec_eval's measures, averaged over queries.

    Documents are ranked by decreasing float32 score, ties by decreasing id (as text, by code points). With the label
    `y_r` at rank r and `rel_r = 1 if y_r >= 1 else 0`, over N documents:

        P_k        = 1/k sum_{r <= k} rel_r
        map        = 1/(sum_r rel_r) sum_r rel_r P_r
        ndcg_cut_k = sum_{r <= k} y_r / log2(r + 1), divided by the same sum for decreasing labels
        ndcg       = ndcg_cut_N

    `recip_rank_k` is `recip_rank` of the first k documents, or 0 without a relevant one among them (MRR@k), which
    trec_eval computes from runs that are cut at rank k. `success_k` is also known as hit rate (HR@k).

    The gain of NDCG is linear; for the gain `2^y - 1`, pass `2**labels - 1` as labels. Lists shorter than k are treated
    as padded with documents that are not relevant. Queries without a relevant document count as 0 in every measure.

    Args:
      queries: At least one `ScoredQuery`, without padding, each with at least one document and a unique query id. Ids
        are not empty and contain no NUL. With `qrels`: a run, as returned by `read_run`.
      measures: Names among "map", "ndcg", "recip_rank", "Rprec", "P_k", "map_cut_k", "ndcg_cut_k", "recall_k",
        "recip_rank_k" and "success_k", with a whole number k from 1 to 999999999; or one such name.
      qrels: The labels of a run, as returned by `read_qrels`. Documents without a label or with one below 0 are not
        relevant, queries without labels are ignored, and queries that are missing in the run count as 0, as with
        `trec_eval -c`. None: `queries` contain labels.

    Returns:
      Measure to its mean in [0, 1], in the order of `measures`; printed, one line per measure.

    Raises:
      ValueError: If a measure is unknown, there are no queries, or a query is invalid.
      ImportError: If pytrec_eval is not installed; the extra `tfr_smooth[evaluation]` includes it.

    trec_eval stores scores in float32: float64 scores are rounded, which may create ties. Time is linear in the number
    of documents except for sorting. Memory is linear in the number of documents of all queries.

    Example:
      >>> query = ScoredQuery("q1", ["a", "b", "c"], np.array([0, 2, 1]), np.array([0.3, 0.2, 0.1]))
      >>> print(trec_eval([query], ["ndcg", "P_1", "map"]))
      ndcg  0.6697
      P_1   0.0000
      map   0.5833
    """
    by_query = trec_eval_by_query(queries, measures, qrels=qrels)
    return ByMeasure({name: estimate.mean for name, estimate in estimates(by_query).items()})


def trec_eval_by_query(
    queries: Iterable[ScoredQuery] | Run,
    measures: str | Iterable[str] = DEFAULT_MEASURES,
    *,
    qrels: Qrels | None = None,
) -> dict[str, dict[str, float]]:
    """Computes trec_eval's measures for each query.

    Args:
      queries: As for `trec_eval`, which documents the formulas.
      measures: One or more measure names, as for `trec_eval`.
      qrels: The labels of a run, as for `trec_eval`. None: `queries` contain labels.

    Returns:
      For each query id, in the order of `queries` or of `qrels`, measure to its value in [0, 1]. `trec_eval` returns
      the means of these values.

    Raises:
      ValueError: If a measure is unknown, there are no queries, or a query is invalid.
      ImportError: If pytrec_eval is not installed; the extra `tfr_smooth[evaluation]` includes it.

    Time and memory are those of `trec_eval`.

    Example:
      >>> query = ScoredQuery("q1", ["a", "b"], np.array([0, 1]), np.array([0.3, 0.2]))
      >>> trec_eval_by_query([query], ["P_1", "map"])
      {'q1': {'P_1': 0.0, 'map': 0.5}}
    """
    with _arguments.needed("pytrec_eval-terrier", extra="evaluation", by="`trec_eval`"):
        import pytrec_eval
    names = checked_measures(measures)
    run, labels = _from_queries(queries) if qrels is None else _from_run(queries, qrels)
    # The only measure that trec_eval does not compute itself.
    cutoffs = {name: int(k) for name in names for measure, k in [parted(name)] if measure == "recip_rank" and k}
    own = {"recip_rank" if name in cutoffs else name for name in names}
    results = pytrec_eval.RelevanceEvaluator(labels, own).evaluate(run)

    def value(query_id: str, name: str) -> float:
        values = results.get(query_id, {})  # a query without documents in the run has no result
        found = float(values.get("recip_rank" if name in cutoffs else name, 0.0))
        return found if found >= 1.0 / cutoffs.get(name, math.inf) else 0.0

    return {query_id: {name: value(query_id, name) for name in names} for query_id in labels}


def _from_queries(queries: Any) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Returns the scores and labels of queries as Python numbers, which pytrec_eval requires."""
    if isinstance(queries, Mapping):
        raise ValueError("`qrels` must be given for a run, got None.")
    run, labels = {}, {}
    for query in checked(queries, in_file=False):
        labels[query.query_id] = dict(zip(query.doc_ids, query.labels.tolist(), strict=True))
        run[query.query_id] = dict(zip(query.doc_ids, query.scores.tolist(), strict=True))
    if not run:
        raise ValueError("`queries` must contain at least one query, got none.")
    return run, labels


def _from_run(run: Any, qrels: Qrels) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Returns the scores and labels of a run as Python numbers, without the queries that have no labels."""
    if not isinstance(run, Mapping):
        raise ValueError(f"`queries` must be a run as returned by `read_run` with `qrels`, got {type(run).__name__}.")
    if not set(run) & set(qrels):
        raise ValueError(f"`qrels` must have labels for a query of the run, got queries {_few(qrels)} for {_few(run)}.")
    # No measure distinguishes labels below 0 from 0, and pytrec_eval may never return if there are no others.
    labels = {query: np.maximum([*of_query.values()], 0) for query, of_query in qrels.items()}
    scores = {query: np.array([*run[query].values()]) for query in qrels if run.get(query)}
    judged = [ScoredQuery(query, [*qrels[query]], of, np.zeros(len(of))) for query, of in labels.items()]
    scored = [ScoredQuery(query, [*run[query]], np.zeros(len(of)), of) for query, of in scores.items()]
    return _from_queries(scored)[0], _from_queries(judged)[1]


def _few(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:3])) + ", ..." * (len(names) > 3)


def document_names(doc_ids: Sequence[str | bytes]) -> list[str]:
    """Returns unique names for the documents of a query.

    The names are the ids if every document has one and all are unique. Otherwise (LETOR files may lack `#docid`
    comments), they are the positions, padded with zeros so that they sort numerically.

    Args:
      doc_ids: The ids of a query's documents, "" for no id; bytes are decoded as UTF-8.

    Returns:
      One name per document, in the same order.

    Raises:
      ValueError: If bytes are not UTF-8.

    Linear time. trec_eval ranks ties by decreasing name, so with positions the last document comes first.

    Example:
      >>> document_names(["d7", "d3"]), document_names(["d7", ""]), document_names([""] * 11)[-2:]
      (['d7', 'd3'], ['0', '1'], ['09', '10'])
    """
    try:
        names = [doc_id.decode() if isinstance(doc_id, bytes) else doc_id for doc_id in doc_ids]
    except UnicodeDecodeError as error:
        raise ValueError(f"`doc_ids` must be UTF-8 text, got {error.object!r}.") from None
    if all(names) and len(set(names)) == len(names):
        return names
    digits = len(str(len(names) - 1))
    return [f"{position:0{digits}d}" for position in range(len(names))]


def parted(name: str) -> tuple[str, int | None]:
    """Returns a measure without its cutoff, and the cutoff or None: ("ndcg_cut", 10) for "ndcg_cut_10"."""
    measure, _, digits = name.rpartition("_")
    return (measure, int(digits)) if digits.isdigit() else (name, None)


def checked_measures(measures: str | Iterable[str], *, argument: str = "measures", more: str = "") -> list[str]:
    """Returns the names of measures; raises a `ValueError`, which also lists `more` names, for unknown ones."""
    names = [measures] if isinstance(measures, str) else list(measures)
    for name in names:
        if not isinstance(name, str) or _MEASURE.fullmatch(name) is None:
            raise ValueError(f"`{argument}` must be {more}{_MEASURES}, got {name!r}.")
    if not names:
        raise ValueError(f"`{argument}` must name at least one measure, got none.")
    return names


def checked(queries: Iterable[ScoredQuery], *, in_file: bool) -> Iterator[ScoredQuery]:
    """Yields the validated queries with int64 labels and float32 scores; raises for an invalid query.

    Ids in files contain no whitespace.
    """
    seen: set[str] = set()
    for query_id, doc_ids, labels, scores in queries:
        check_field("query_id", query_id, in_file=in_file)
        where = f"of query {query_id!r} must"
        if query_id in seen:
            raise ValueError(f"`queries` must contain each query once, got {query_id!r} twice.")
        seen.add(query_id)
        if len(doc_ids) == 0:
            raise ValueError(f"`doc_ids` {where} name at least one document, got none.")
        names: set[str] = set()
        for doc_id in doc_ids:
            check_field("doc_ids", doc_id, f" of query {query_id!r}", in_file=in_file)
            if doc_id in names:
                raise ValueError(f"`doc_ids` {where} be unique, got {doc_id!r} twice.")
            names.add(doc_id)
        labels, scores = np.asarray(labels), np.asarray(scores)
        for name, values in (("labels", labels), ("scores", scores)):
            if values.shape != (len(doc_ids),) or values.dtype.kind not in "biuf":
                expected = f"{len(doc_ids)} numbers, one for each document"
                raise ValueError(f"`{name}` {where} be {expected}, got {values.dtype} of shape {values.shape}.")
        with np.errstate(over="ignore"):
            rounded = scores.astype(np.float32)
        # Comparisons with NaN are false.
        whole = (labels >= 0) & (labels <= _MAX_LABEL) & (labels == np.floor(labels))
        _refuse_first(~whole, "labels", f"{where} be whole numbers from 0 to {_MAX_LABEL}", labels, doc_ids)
        _refuse_first(~np.isfinite(rounded), "scores", f"{where} be finite in float32", scores, doc_ids)
        yield ScoredQuery(query_id, doc_ids, labels.astype(np.int64), rounded)


def _refuse_first(wrong: np.ndarray, name: str, expected: str, values: np.ndarray, doc_ids: Sequence[str]) -> None:
    if wrong.any():
        first = int(wrong.argmax())
        raise ValueError(f"`{name}` {expected}, got {values[first]} for document {doc_ids[first]!r}.")


def check_field(name: str, text: str, where: str = "", *, in_file: bool = True) -> None:
    """Raises a `ValueError` if the text cannot be an id of trec_eval, or a field of a TREC file."""
    separators, expected = (_SEPARATORS, "whitespace or NUL") if in_file else ("\0", "NUL")
    try:
        wrong = not isinstance(text, str) or not text.encode() or any(each in text for each in separators)
    except UnicodeEncodeError:
        wrong = True  # a lone surrogate
    if wrong:
        raise ValueError(f"`{name}`{where} must be non-empty text without {expected}, got {text!r}.")


class Estimate(NamedTuple):
    """A mean over queries and its standard error.

    Attributes:
      mean: The mean.
      standard_error: The standard deviation over queries divided by the square root of their number; NaN for one query.

    Example:
      >>> print(Estimate(0.5, 0.02))
      0.5000 ± 0.0200
    """

    mean: float
    standard_error: float

    def __str__(self) -> str:
        """Returns both with four digits, or only the mean of one query."""
        return f"{self.mean:.4f}" + ("" if math.isnan(self.standard_error) else f" ± {self.standard_error:.4f}")


def evaluate_rows(
    labels: Any, scores: Any, queries: Any, measures: Sequence[str] = DEFAULT_MEASURES, *, by_query: bool = False
) -> dict[str, Any]:
    """Computes trec_eval's measures of a column of scores, such as those of a ranker in production.

    Args:
      labels: Whole numbers from 0 to 1023, [rows].
      scores: Finite numbers, [rows]; higher is better. Later rows come first among ties, as in trec_eval.
      queries: The query of each row, [rows]. The rows of a query need not be adjacent.
      measures: Names of measures, as for `trec_eval`.
      by_query: Whether to return the value of each query.

    Returns:
      The mean over queries and its standard error, an `Estimate` by measure, printed with one line per measure; or the
      values by measure and by query, as text, which `randomization_test` compares with those of another ranker.

    Raises:
      ValueError: If a measure is unknown, labels or scores are invalid, a query is missing, or the lengths differ.
      ImportError: If pytrec_eval is not installed; the extra `tfr_smooth[evaluation]` includes it.

    Example:
      >>> print(evaluate_rows([1, 0, 0, 1], [0.9, 0.2, 0.3, 0.1], ["a", "a", "b", "b"], ["map", "recall_1"]))
      map       0.7500 ± 0.2500
      recall_1  0.5000 ± 0.5000
    """
    check_index(labels, {"scores": scores, "queries": queries}, "labels")
    labels, scores = np.asarray(labels), np.asarray(scores)
    if labels.shape != scores.shape or scores.ndim != 1 or not len(scores):
        expected = "one value per row, as many as `scores` and at least one"
        raise ValueError(f"`labels` must have {expected}, got shapes {labels.shape} and {scores.shape}.")
    codes = query_ids(Where("`queries`"), column("queries", queries, len(scores))).dictionary_encode()
    inverse, names = codes.indices.to_numpy(), [str(value) for value in codes.dictionary.to_pylist()]
    order = np.argsort(inverse, kind="stable")
    scored = [
        ScoredQuery(names[inverse[rows[0]]], document_names([""] * len(rows)), labels[rows], scores[rows])
        for rows in np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)
    ]
    values = trec_eval_by_query(scored, measures)
    if not by_query:
        return estimates(values)
    return {name: {query: of_query[name] for query, of_query in values.items()} for name in values[names[0]]}


def estimates(by_query: dict[str, dict[str, float]]) -> ByMeasure[Estimate]:
    """Returns the mean and standard error of each measure over queries."""
    names = next(iter(by_query.values()))
    return ByMeasure({name: estimate(np.array([values[name] for values in by_query.values()])) for name in names})


def estimate(values: np.ndarray) -> Estimate:
    """Returns the mean and standard error of the values of queries."""
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Estimate(float(values.mean()), float(error))

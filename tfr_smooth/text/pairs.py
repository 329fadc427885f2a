"""Files of pairs: one query, one candidate document and its label per line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tfr_smooth.data.text_files import numbered_lines
from tfr_smooth.text.collection import Collection, Document

_COLUMNS = ("query", "document", "label")
_OPTIONAL = ("query_id", "document_id", "score")


class Pairs(NamedTuple):
    """Queries with their candidate documents.

    Attributes:
      collection: The queries, documents and labels.
      candidates: For each query id, the doc ids of its candidates, in the order of the file.
      scores: For each query id with scores in the file, its run: a dict of doc id to score.
      parts: The query ids of each file, by the file's name in the call of `read_pairs`.

    Example:
      >>> from tfr_smooth import text
      >>> collection = text.Collection({"d1": text.Document("", "lift")}, {"q1": "lift"}, {"q1": {"d1": 1}}, {})
      >>> text.Pairs(collection, {"q1": ["d1"]}, {}, {"train": ["q1"]}).parts
      {'train': ['q1']}
    """

    collection: Collection
    candidates: dict[str, list[str]]
    scores: dict[str, dict[str, float]]
    parts: dict[str, list[str]]


def read_pairs(files: Mapping[str, str | os.PathLike[str]], *, answered_only: bool = False) -> Pairs:
    r"""Reads files of pairs of a query and a document with a label.

    A file is one of

    - JSON lines (`.jsonl`): objects with "query", "document" and "label", and optionally "query_id", "document_id" and
      the "score" of a first stage;
    - tab-separated values (any other extension): query, document and label. A first line with other columns of these
      names is a header.

    Both may be compressed (`.gz`, `.bz2`, `.zst`). Rows of a query need not be adjacent. Without ids, equal texts of a
    file are one query or document. Of equal pairs, the one with the highest label counts.

    Args:
      files: Paths by the names of the parts, such as {"train": .., "valid": .., "test": ..}. The ids of a part start
        with its name and a slash.
      answered_only: Whether to leave out queries without a label > 0, as published results on WikiQA do.

    Returns:
      The pairs.

    Raises:
      ValueError: Bad input, as `path:line: what is wrong`: no pair, invalid JSON, a missing value, a label that is not
        an integer >= 0, an id with two texts, or a query with and without scores.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import text
      >>> path = pathlib.Path(tempfile.mkdtemp(), "train.tsv")
      >>> _ = path.write_text("what is lift ?\tlift is a force\t1\nwhat is lift ?\tdrag is a force\t0\n")
      >>> pairs = text.read_pairs({"train": path})
      >>> pairs.candidates
      {'train/0': ['train/0', 'train/1']}
      >>> pairs.collection.labels
      {'train/0': {'train/0': 1, 'train/1': 0}}
    """
    documents: dict[str, Document] = {}
    queries: dict[str, str] = {}
    labels: dict[str, dict[str, int]] = {}
    scores: dict[str, dict[str, float]] = {}
    parts = {}
    for part, path in files.items():
        ids: dict[str, dict[str, str]] = {"query": {}, "document": {}}
        texts: dict[str, dict[str, str]] = {"query": {}, "document": {}}
        for place, row in _rows(os.fspath(path)):
            pair = []
            for kind, by_id in texts.items():
                content = row[kind]
                found = row.get(f"{kind}_id")
                if found is None:
                    found = ids[kind].setdefault(content, str(len(ids[kind])))
                if by_id.setdefault(str(found), content) != content:
                    raise ValueError(f"{place}: the {kind} id {found!r} has two texts")
                pair.append(f"{part}/{found}")
            query, document = pair
            judged = labels.setdefault(query, {})
            judged[document] = max(row["label"], judged.get(document, 0))
            if row.get("score") is not None:
                scores.setdefault(query, {})[document] = row["score"]
            if len(scores.get(query, judged)) != len(judged):
                raise ValueError(f"{place}: a query must have a score for each document or for none")
        if not texts["query"]:
            raise ValueError(f"{os.fspath(path)}:1: expected a pair of a query and a document, got an empty file")
        documents |= {f"{part}/{name}": Document("", content) for name, content in texts["document"].items()}
        kept = [name for name in texts["query"] if not answered_only or any(labels[f"{part}/{name}"].values())]
        queries |= {f"{part}/{name}": texts["query"][name] for name in kept}
        parts[part] = [f"{part}/{name}" for name in kept]
    labels = {query: labels[query] for query in queries}
    candidates = {query: list(judged) for query, judged in labels.items()}
    scores = {query: found for query, found in scores.items() if query in queries}
    return Pairs(Collection(documents, queries, labels, {}), candidates, scores, parts)


def _rows(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields `path:line` and the values of each line."""
    is_json = ".jsonl" in os.path.basename(path)
    columns: list[str] = list(_COLUMNS)
    for number, line in numbered_lines(path):
        place = f"{path}:{number}"
        try:
            content = line.decode("utf-8").rstrip("\r\n")
            if is_json:
                row = json.loads(content)
            else:
                values = content.split("\t")
                if number == 1 and set(_COLUMNS) <= set(values) <= {*_COLUMNS, *_OPTIONAL}:
                    columns = values
                    continue
                row = dict(zip(columns, values, strict=True))
        except ValueError as error:
            kind = "a JSON object" if is_json else f"{len(columns)} values separated by tabs in UTF-8"
            raise ValueError(f"{place}: expected {kind}, got {line[:80]!r}") from error
        yield place, _checked(place, row)


def _checked(place: str, row: Any) -> dict[str, Any]:
    for name in _COLUMNS:
        value = row.get(name) if isinstance(row, dict) else None
        if value is None or not str(value).strip():
            raise ValueError(f"{place}: {name!r} is missing or empty")
        if name != "label" and not isinstance(value, str):
            raise ValueError(f"{place}: {name!r} must be a string, got {value!r}")
    for name, what in (("label", "an integer >= 0"), ("score", "a finite number")):
        if (value := row.get(name)) is None:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or (name == "label" and (number < 0 or number % 1)):
            raise ValueError(f"{place}: {name!r} must be {what}, got {value!r}")
        row[name] = int(number) if name == "label" else number
    return row

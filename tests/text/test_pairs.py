"""Reading files of pairs."""

import gzip
import json

import pytest

from tfr_smooth import text

TSV = "what is lift ?\ta force\t1\nheat\ta force\t0\nwhat is lift ?\ta gas\t0\nheat\tenergy\t2\nheat\tenergy\t0\n"


def write(folder, content, name="train.tsv"):
    path = folder / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    return path


def as_json(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_equal_texts_are_one_query_or_document_and_the_highest_label_counts(tmp_path):
    pairs = text.read_pairs({"train": write(tmp_path, TSV)})
    assert pairs.collection.queries == {"train/0": "what is lift ?", "train/1": "heat"}
    contents = {name: document.content for name, document in pairs.collection.documents.items()}
    assert contents == {"train/0": "a force", "train/1": "a gas", "train/2": "energy"}
    assert pairs.collection.labels == {"train/0": {"train/0": 1, "train/1": 0}, "train/1": {"train/0": 0, "train/2": 2}}
    assert pairs.candidates == {"train/0": ["train/0", "train/1"], "train/1": ["train/0", "train/2"]}
    assert pairs.parts == {"train": ["train/0", "train/1"]} and pairs.scores == {}


def test_formats_agree(tmp_path):
    rows = [dict(zip(("query", "document", "label"), line.split("\t"), strict=True)) for line in TSV.splitlines()]
    expected = text.read_pairs({"train": write(tmp_path, TSV)})
    names = ("label", "query", "document")
    turned = "".join("\t".join(row) + "\n" for row in [names, *([row[name] for name in names] for row in rows)])
    for content, name in (
        (TSV, "a.txt.gz"),
        (turned, "b.tsv"),
        (as_json({**row, "label": int(row["label"])} for row in rows), "c.jsonl"),
        (as_json({**row, "other": None} for row in rows), "d.jsonl.gz"),
    ):
        assert text.read_pairs({"train": write(tmp_path, content, name)}) == expected


def test_ids_and_scores_are_taken_and_parts_are_apart(tmp_path):
    row = {"query": "lift", "document": "a force", "label": 0, "query_id": 7, "document_id": "d1", "score": 2}
    others = [{**row, "document": "a gas", "document_id": "d2", "score": -1.5, "label": 3}]
    first = write(tmp_path, as_json([row, *others]), "first.jsonl")
    second = write(tmp_path, "lift\tother\t0\n")
    pairs = text.read_pairs({"first": first, "second": second})
    assert pairs.parts == {"first": ["first/7"], "second": ["second/0"]}
    assert pairs.scores == {"first/7": {"first/d1": 2.0, "first/d2": -1.5}}
    assert pairs.collection.labels["first/7"] == {"first/d1": 0, "first/d2": 3}
    answered = text.read_pairs({"first": first, "second": second}, answered_only=True)
    assert answered.parts == {"first": ["first/7"], "second": []} and set(answered.candidates) == {"first/7"}


ROW = {"query": "lift", "document": "a force", "label": 0}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "a.tsv:1: expected a pair of a query and a document, got an empty file"),
        ("a.tsv", TSV + "heat\tenergy\n", "a.tsv:6: expected 3 values separated by tabs in UTF-8, got b'heat"),
        ("a.tsv", TSV + "heat\t \t1\n", "a.tsv:6: 'document' is missing or empty"),
        ("a.tsv", TSV + "heat\tenergy\t-1\n", "a.tsv:6: 'label' must be an integer >= 0, got '-1'"),
        ("a.jsonl", as_json([ROW]) + "{\n", "a.jsonl:2: expected a JSON object, got b'{"),
        ("a.jsonl", "[1]\n", "a.jsonl:1: 'query' is missing or empty"),
        ("a.jsonl", as_json([{**ROW, "query": 3}]), "a.jsonl:1: 'query' must be a string, got 3"),
        ("a.jsonl", as_json([{**ROW, "label": 0.5}]), "a.jsonl:1: 'label' must be an integer >= 0, got 0.5"),
        ("a.jsonl", as_json([{**ROW, "score": float("nan")}]), "a.jsonl:1: 'score' must be a finite number, got nan"),
        ("a.jsonl", as_json([{**ROW, "query_id": 1}, {**ROW, "query": "x", "query_id": 1}]), "a.jsonl:2: the query id"),
        ("a.jsonl", as_json([ROW, {**ROW, "document": "b", "score": 1}]), "a.jsonl:2: a query must have a score for"),
    ],
)
def test_errors_name_file_and_line(tmp_path, name, content, message):
    with pytest.raises(ValueError) as caught:
        text.read_pairs({"train": write(tmp_path, content, name)})
    assert message in str(caught.value)

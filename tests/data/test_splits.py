"""`scan_split` checks the files of a training run before it starts."""

import pytest

from tfr_smooth.data import LetorFormat, scan_split


@pytest.fixture
def files(tmp_path):
    for part, labels in (("train", [0.5, 0]), ("valid", [2, 0]), ("test", [0, 0])):
        rows = (f"{label} qid:{part}{query} 1:1 {query + 1}:2\n" for query, label in enumerate(labels, 1))
        (tmp_path / part).write_text("".join(rows))
    return {part: tmp_path / part for part in ("train", "valid", "test")}


@pytest.mark.parametrize(("num_features", "width"), [(None, 3), (7, 7)])
def test_all_parts_get_the_same_number_of_features(files, num_features, width):
    found = scan_split(files, num_features=num_features)
    assert {part: (each.queries, each.num_features) for part, each in found.items()} == dict.fromkeys(files, (2, width))


@pytest.mark.parametrize(
    ("part", "row", "num_features", "message"),
    [
        ("test", "1 qid:x 4:1", None, "`test` must have at most 3 features, as in the training files, got 4; "),
        ("valid", "1 qid:x 9:1", 8, "`valid` must have at most 8 features, as set by `num_features=8`, got 9; "),
        ("train", "1 qid:x 9:1", 8, "`train` must have at most 8 features, as set by `num_features=8`, got 9; "),
        ("test", "1.5 qid:x 1:1", None, "`test` must have labels that are whole numbers from 0 to 1023, "),
        ("valid", "1024 qid:x 1:1", None, "`valid` must have labels that are whole numbers from 0 to 1023, "),
        ("valid", "x qid:x 1:1", None, "valid: {path}:3: label 'x' is not a finite float32 number"),
        ("train", None, None, "`train` must have a label above 0, got 0 for all 1 documents."),
        ("valid", None, None, "`valid` must have a label above 0, got 0 for all 1 documents."),
    ],
)
def test_files_that_would_fail_later_are_refused(files, part, row, num_features, message):
    text = "0 qid:x 3:1\n" if row is None else files[part].read_text() + row
    files[part].write_text(text)
    with pytest.raises(ValueError) as raised:
        scan_split(files, num_features=num_features)
    assert str(raised.value).startswith(message.format(path=files[part]))


def test_format_options_apply_to_all_parts(files):
    for path in files.values():
        path.write_text("1 0:NULL 1:2 # 7\n")
    found = scan_split(files, format=LetorFormat(first_index=0, query_ids="comment", missing={"NULL": 0}))
    assert [each.num_features for each in found.values()] == [2, 2, 2]


def test_files_without_features_are_refused(files):
    files["train"].write_text("1 qid:a\n")
    with pytest.raises(ValueError, match="`train` must have features, got none"):
        scan_split(files)

"""The flags that describe the format of files."""

import runpy

import pytest

from tests.documents import ROOT
from tfr_smooth.data import LetorFormat

letor_format = runpy.run_path(str(ROOT / "examples" / "format_flags.py"))["letor_format"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"first_index": "0", "labeled": "False"}, LetorFormat(first_index=0, labeled=False)),
        ({"missing": "NULL=query_min,NaN=0"}, LetorFormat(missing={"NULL": "query_min", "NaN": 0.0})),
        ({"group_sizes": f"{__file__},{ROOT}/BUILD"}, LetorFormat(group_sizes=[__file__, f"{ROOT}/BUILD"])),
    ],
)
def test_the_texts_of_flags_define_a_format(texts, expected):
    assert letor_format(texts) == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"labeled": "no"}, "`labeled` must be True or False, got 'no'."),
        ({"missing": "NULL"}, "`missing` must be comma-separated TOKEN=VALUE pairs, got 'NULL'."),
    ],
)
def test_texts_that_define_no_format_are_refused(texts, message):
    with pytest.raises(ValueError) as raised:
        letor_format(texts)
    assert str(raised.value) == message

"""What the scripts share: the flags that describe the format of files, and errors in one line."""

import runpy

import pytest
import tensorflow as tf

from tests.helpers.documents import ROOT
from tfr_smooth.data import LetorFormat

letor_format = runpy.run_path(f"{ROOT}/examples/format_flags.py")["letor_format"]
errors_in_one_line = runpy.run_path(f"{ROOT}/examples/command_line.py")["errors_in_one_line"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"first_index": "0", "labeled": "False"}, LetorFormat(first_index=0, labeled=False)),
        ({"missing": "NULL=-1,NaN=0"}, LetorFormat(missing={"NULL": -1.0, "NaN": 0.0})),
    ],
)
def test_the_texts_of_flags_define_a_format(texts, expected):
    assert letor_format(texts) == expected


def test_texts_that_define_no_format_are_refused():
    with pytest.raises(ValueError, match="^`labeled` must be True or False, got 'no'.$"):
        letor_format({"labeled": "no"})
    with pytest.raises(ValueError, match="^`missing` must be comma-separated TOKEN=NUMBER pairs, got 'NULL'.$"):
        letor_format({"missing": "NULL"})


def test_an_interruption_inside_a_dataset_is_not_an_error():
    with pytest.raises(KeyboardInterrupt), errors_in_one_line():
        raise tf.errors.UnknownError(None, None, "KeyboardInterrupt: \nTraceback (most recent call last): ...")

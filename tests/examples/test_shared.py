"""What the scripts share: the flags that describe the format of files, and errors in one line."""

import runpy

import pytest
import tensorflow as tf

from tests.helpers.documents import ROOT
from tfr_smooth.data import LetorFormat

letor_format = runpy.run_path(f"{ROOT}/examples/format_flags.py")["letor_format"]
errors_in_one_line = runpy.run_path(f"{ROOT}/examples/command_line.py")["errors_in_one_line"]


def test_an_interruption_inside_a_dataset_is_not_an_error():
    with pytest.raises(KeyboardInterrupt), errors_in_one_line():
        raise tf.errors.UnknownError(None, None, "KeyboardInterrupt: \nTraceback (most recent call last): ...")


def test_the_texts_of_flags_define_a_format_or_are_refused():
    texts = {"first_index": "0", "labeled": "False", "missing": "NULL=-1,NaN=0"}
    expected = LetorFormat(first_index=0, labeled=False, missing={"NULL": -1.0, "NaN": 0.0})
    assert letor_format(texts) == expected
    with pytest.raises(ValueError, match="^`missing` must be comma-separated TOKEN=NUMBER pairs, got 'NULL'.$"):
        letor_format({"missing": "NULL"})

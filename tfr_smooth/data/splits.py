"""The files of a training, all checked before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfr_smooth import _arguments
from tfr_smooth.data.letor import scan_letor
from tfr_smooth.data.letor_parser import LetorSummary
from tfr_smooth.data.text_files import FilePattern

_MAX_LABEL = 1023  # trec_eval's


def scan_split(
    files: Mapping[str, FilePattern], *, num_features: int | None = None, **format: Any
) -> dict[str, LetorSummary]:
    r"""Reads the files of a training once, and checks what would else fail after hours of it.

    Args:
      files: Files of "train", "valid" and "test", each as for `read_letor`.
      num_features: The width of the feature matrix; None for that of the training files.
      **format: How the files are written: arguments of `scan_letor`.

    Returns:
      What the files hold, part by part; `num_features` is the width of the matrix in each.

    Raises:
      ValueError: With the name of the part: bad files or rows; features of a part that the matrix has no place for;
        training or validation labels that are all 0, from which nothing can be learned or told; labels of the
        validation or test files that trec_eval cannot take, as they are fractions or over 1023.

    Example:
      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> _ = (folder / "a").write_text("1 qid:1 1:1\n"), (folder / "b").write_text("1 qid:1 3:1\n")
      >>> scan_split({"train": folder / "a", "valid": folder / "a", "test": folder / "b"})
      Traceback (most recent call last):
      ValueError: `test` must have features up to 1, as the training files, got 3; `num_features=3` would admit them.
    """
    num_features = _arguments.integer_or_none("num_features", num_features, least=1)
    found = {}
    for part, pattern in files.items():
        try:
            found[part] = scan_letor(pattern, **format)
        except ValueError as error:
            raise ValueError(f"{part}: {error}") from None
    width = num_features or found["train"].num_features
    given = "as the training files" if num_features is None else f"by `num_features={num_features}`"
    if width == 0:
        raise ValueError("`train` must have features, got none.")
    for part, summary in found.items():
        if summary.num_features > width:
            raise ValueError(
                f"`{part}` must have features up to {width}, {given}, got {summary.num_features}; "
                f"`num_features={summary.num_features}` would admit them."
            )
        if part != "test" and summary.highest_label == 0:
            raise ValueError(f"`{part}` must have a label above 0, got 0 for all {summary.documents} documents.")
        if part != "train" and not (summary.whole_labels and summary.highest_label <= _MAX_LABEL):
            kind = f"up to {summary.highest_label:g}" if summary.whole_labels else "that are fractions"
            raise ValueError(
                f"`{part}` must have labels that are whole numbers from 0 to {_MAX_LABEL}, for trec_eval's figures, "
                f"got labels {kind}."
            )
    return {part: summary._replace(num_features=width) for part, summary in found.items()}

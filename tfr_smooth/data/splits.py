"""Checks the files of a training run before it starts."""

from __future__ import annotations

from collections.abc import Mapping

from tfr_smooth import _arguments
from tfr_smooth.data.letor import scan_letor
from tfr_smooth.data.letor_format import LetorFormat
from tfr_smooth.data.letor_parser import LetorSummary
from tfr_smooth.data.text_files import FilePattern

_MAX_LABEL = 1023  # the limit for trec_eval


def scan_split(
    files: Mapping[str, FilePattern], *, num_features: int | None = None, format: LetorFormat | None = None
) -> dict[str, LetorSummary]:
    r"""Scans training, validation and test files for errors that would otherwise appear hours later.

    Args:
      files: The files of "train", "valid" and "test", each as for `read_letor`.
      num_features: The width of the feature matrix, >= 1. None uses that of the training files.
      format: The format of the files. None uses the defaults of `LetorFormat`.

    Returns:
      A `LetorSummary` for each part; `num_features` is the width of the matrix in each.

    Raises:
      ValueError: If files or rows of a part are malformed, a part has more features than the matrix, all training or
        all validation labels are 0, or validation or test labels are fractions or exceed 1023, which trec_eval does not
        support. The message names the part.

    Example:
      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> _ = (folder / "a").write_text("1 qid:1 2:1\n"), (folder / "b").write_text("1 qid:1 3:1\n")
      >>> scan_split({"train": folder / "a", "valid": folder / "a", "test": folder / "b"})
      Traceback (most recent call last):
      ValueError: `test` must have at most 2 features, as in the training files, got 3; `num_features=3` allows them.
    """
    num_features = _arguments.integer_or_none("num_features", num_features, least=1)
    found = {}
    for part, pattern in files.items():
        try:
            found[part] = scan_letor(pattern, format=format)
        except ValueError as error:
            raise ValueError(f"{part}: {error}") from None
    width = num_features or found["train"].num_features
    given = "as in the training files" if num_features is None else f"as set by `num_features={num_features}`"
    if width == 0:
        raise ValueError("`train` must have features, got none.")
    for part, summary in found.items():
        if summary.num_features > width:
            raise ValueError(
                f"`{part}` must have at most {width} features, {given}, got {summary.num_features}; "
                f"`num_features={summary.num_features}` allows them."
            )
        if part != "test" and summary.highest_label == 0:
            raise ValueError(f"`{part}` must have a label above 0, got 0 for all {summary.documents} documents.")
        if part != "train" and not (summary.whole_labels and summary.highest_label <= _MAX_LABEL):
            kind = f"labels up to {summary.highest_label:g}" if summary.whole_labels else "fractional labels"
            raise ValueError(
                f"`{part}` must have labels that are whole numbers from 0 to {_MAX_LABEL}, for trec_eval, got {kind}."
            )
    return {part: summary._replace(num_features=width) for part, summary in found.items()}

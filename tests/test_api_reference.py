"""Every public class, function and method has a complete docstring: arguments, returned value and example."""

import sys
import types

import pytest

from tests import api_reference, documents
from tests.helpers import tf_ranking


@pytest.mark.parametrize("package", documents.PACKAGES)
def test_public_docstrings_are_complete(package):
    if package == "tf_ranking":
        tf_ranking()
    name = f"tfr_smooth.{package}"
    lines = set(api_reference.missing_in_package(name))
    exceptions = {line for line in api_reference.EXCEPTIONS if line.startswith(f"{name}.")}
    assert lines - exceptions == set()
    assert exceptions - lines == set(), "remove these from EXCEPTIONS"


def undocumented(value): ...


def incomplete(value: int, other: int) -> int:
    """Returns a sum.

    Args:
      value: A number.
      *rest: Other: numbers.

    Raises:
      ValueError: Never.
    """


def complete(value: int, *others: int) -> int:
    """Adds numbers.

    Args:
      value: A number.
      *others: More numbers.

    Returns:
      The sum.

    Example:
      >>> 1 + 1
      2
    """


class Base:
    """Adds numbers.

    Args:
      value: A number.

    Example:
      >>> Base(1).add(2)
      3
    """

    def __init__(self, value: int) -> None: ...

    def add(self, other: int) -> int:
        """Adds a number.

        Args:
          other: A number.

        Returns:
          The sum.
        """
        return 1 + other

    @property
    def total(self) -> int:
        """The sum so far."""

    def _hidden(self, other: int) -> int: ...


class Derived(Base):
    """Adds numbers."""

    def add(self, other: int) -> int:
        """Returns the sum."""

    def scale(self, factor: float) -> float:
        """Multiplies by a number."""

    @property
    def total(self) -> int: ...


def test_missing_parts_of_docstrings_are_reported(monkeypatch):
    package = types.ModuleType("tfr_smooth.example")
    named = {
        "undocumented": undocumented,
        "incomplete": incomplete,
        "complete": complete,
        "Base": Base,
        "Derived": Derived,
    }
    vars(package).update(named, __all__=[*named, "NUMBER"], NUMBER=3)
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setattr(Base, "__module__", package.__name__)
    assert api_reference.missing_in_package(package.__name__) == [
        "tfr_smooth.example.undocumented: docstring",
        "tfr_smooth.example.incomplete: argument `other`",
        "tfr_smooth.example.incomplete: Returns",
        "tfr_smooth.example.incomplete: Example",
        "tfr_smooth.example.Derived: argument `value`",
        "tfr_smooth.example.Derived: Example",
        "tfr_smooth.example.Derived.scale: argument `factor`",
        "tfr_smooth.example.Derived.scale: Returns",
        "tfr_smooth.example.Derived.total: docstring",
    ]


def test_member_options_are_read_from_the_documentation():
    filters, listed = api_reference.member_options()
    assert "^_" in filters
    assert listed["tfr_smooth.losses.RankingLoss"] == ["__call__", "compute", "counts"]

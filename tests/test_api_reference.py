"""The public names are those in `__all__`, and each has a complete docstring.

The docstring of a class or function must describe all parameters and the returned value, and contain an example that
runs. Methods shown in the API reference need the same except for the example. Properties need a docstring.
"""

import dataclasses
import functools
import importlib
import inspect
import re
import types

import pytest

from tests import documents
from tests.helpers import tf_ranking
from tfr_smooth import _keras


@pytest.fixture(params=["", *documents.PACKAGES])
def package(request):
    if request.param == "tf_ranking":
        tf_ranking()
    if request.param == "text" and not _keras.IS_KERAS_3:
        pytest.skip("text reranking needs Keras 3")
    return importlib.import_module(f"tfr_smooth.{request.param}".rstrip("."))


def test_public_names_are_listed_in_all(package):
    assert len(set(package.__all__)) == len(package.__all__)
    others = {name: getattr(package, name) for name in set(dir(package)) - set(package.__all__) if name[0] != "_"}
    # Python adds imported submodules to their package.
    assert [
        name
        for name, value in others.items()
        if not isinstance(value, types.ModuleType) or value.__name__ != f"{package.__name__}.{name}"
    ] == []


def test_public_docstrings_are_complete(package):
    assert missing_in_package(package) == []


def add(value: int, *others: int) -> int:
    """Adds numbers.

    Args:
      value: A number.
    """


class Adder:
    """Adds numbers.

    Example:
      >>> 1 + 2
      3
    """

    def __init__(self, value: int) -> None: ...

    def plus(self, other: int) -> int:
        """Adds a number."""

    @property
    def total(self) -> int: ...


def test_missing_parts_of_docstrings_are_reported(monkeypatch):
    module = types.ModuleType("tfr_smooth.example")
    vars(module).update(__all__=["NUMBER", "add", "Adder"], NUMBER=3, add=add, Adder=Adder)
    monkeypatch.setattr(Adder, "__module__", module.__name__)
    lacking = ["add: argument `others`", "add: Returns", "add: Example", "Adder: argument `value`"]
    lacking += ["Adder.plus: argument `other`", "Adder.plus: Returns", "Adder.total: docstring"]
    assert missing_in_package(module) == [f"tfr_smooth.example.{line}" for line in lacking]


def sections(docstring):
    """Returns the text of each section of a Google-style docstring, by title."""
    parts = re.split(r"^([A-Z]\w+):\n(?=  )", docstring, flags=re.M)
    # A section ends at the next line that is not indented.
    return {
        title: inspect.cleandoc(re.split(r"^\S", text, maxsplit=1, flags=re.M)[0])
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def documented_parameters(docstring):
    """Returns the names described in `Args` or, for tuples and dataclasses, in `Attributes`."""
    parts = sections(docstring)
    text = "\n".join(parts.get(title, "") for title in ("Args", "Attributes"))
    names = re.findall(r"^((?:\*{0,2}\w+(?:, )?)+)(?: \([^)]*\))?:", text, re.M)
    return {name.lstrip("*") for group in names for name in group.split(", ")}


def parameters(described):
    """Returns the parameters of a function or constructor, except those that other libraries define."""
    target = described
    if inspect.isclass(described):
        owner = next(owner for owner in described.__mro__ if {"__init__", "__new__"} & set(vars(owner)))
        if getattr(described, "_is_protocol", False) or not ours(owner):
            return []
        target = vars(owner).get("__init__", described)  # A NamedTuple has only __new__.
    names = [name for name in inspect.signature(target).parameters if name not in ("self", "cls")]
    if dataclasses.is_dataclass(described):
        fields = {name for owner in described.__mro__ if ours(owner) for name in vars(owner).get("__annotations__", ())}
        names = [name for name in names if name in fields]
    return names


def ours(owner):
    return owner.__module__.split(".")[0] == "tfr_smooth"


def returns_a_value(function):
    return inspect.signature(function).return_annotation not in (inspect.Signature.empty, None, "None", "NoReturn")


def missing(described):
    """Returns the missing parts of the docstring of a public class or function; a base class may describe arguments."""
    docstring = inspect.cleandoc(described.__doc__ or "")
    if not docstring:
        return ["docstring"]
    parts = sections(docstring)
    owners = described.__mro__ if inspect.isclass(described) else [described]
    documented = set().union(*(documented_parameters(inspect.cleandoc(owner.__doc__ or "")) for owner in owners))
    found = [name for name in parameters(described) if name not in documented]
    lacking = [f"argument `{name}`" for name in found]
    if not inspect.isclass(described) and returns_a_value(described) and not {"Returns", "Yields"} & set(parts):
        lacking.append("Returns")
    if ">>> " not in parts.get("Example", ""):
        lacking.append("Example")
    return lacking


def missing_in_method(owner, name):
    """Returns the missing parts of the docstring of a method or property; a base class may describe the parameters."""
    method = inspect.getattr_static(owner, name)
    docstring = inspect.cleandoc(method.__doc__ or "")
    if not docstring:
        return ["docstring"]
    if isinstance(method, property | functools.cached_property):
        return []
    method = getattr(method, "__func__", method)
    described = set()
    for base in owner.__mro__:
        described |= documented_parameters(inspect.cleandoc(getattr(vars(base).get(name), "__doc__", None) or ""))
    lacking = [f"argument `{parameter}`" for parameter in parameters(method) if parameter not in described]
    returns = {"Returns", "Yields"} & set(sections(docstring)) or re.match(r"(Returns|Yields)\b", docstring)
    if returns_a_value(method) and not returns:
        lacking.append("Returns")
    return lacking


@functools.cache
def member_options():
    """Returns the member filters of mkdocs.yml, and the members that pages list explicitly, by object name."""
    filters = re.findall(r'- "!(.+)"', (documents.ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = {}
    for page in (documents.ROOT / "docs").rglob("*.md"):
        blocks = re.findall(r"^::: (\S+)\n((?:    .*\n)+)", page.read_text(encoding="utf-8"), re.M)
        for name, options in blocks:
            for members in re.findall(r"^ +members: \[(.*)\]", options, re.M):
                listed[name] = [member for member in re.split(r",\s*", members) if member]
    return filters, listed


def members(name, described):
    """Returns the methods and properties defined in the class that the API reference shows."""
    filters, listed = member_options()
    own = [
        member
        for member, value in vars(described).items()
        if inspect.isfunction(value)
        or isinstance(value, property | functools.cached_property | classmethod | staticmethod)
    ]
    if name in listed:
        return [member for member in own if member in listed[name]]
    return [member for member in own if not any(re.search(pattern, member) for pattern in filters)]


def missing_in_package(module):
    """Returns lines such as `tfr_smooth.losses.get: argument `name``."""
    lines = []
    for name in module.__all__:
        described, path = getattr(module, name), f"{module.__name__}.{name}"
        if inspect.isclass(described) or inspect.isfunction(described):
            lines += [f"{path}: {lacking}" for lacking in missing(described)]
        if inspect.isclass(described):
            for member in members(path, described):
                lines += [f"{path}.{member}: {lacking}" for lacking in missing_in_method(described, member)]
    return lines

"""Hooks of MkDocs and mkdocstrings for building the site (see mkdocs.yml).

Tables and reference sections are generated from the registry, so that they are always up to date. A page contains a
comment instead:
    <!-- losses -->            the table of losses, from losses.TABLE
    <!-- metrics -->           the table of metrics, from metrics.TABLE
    <!-- names: PACKAGE -->    all public names of a package, linked to their documentation
    <!-- classes: RANKING -->  the reference of a ranking's losses and metrics, from registry.PAIRS
A name without documentation becomes a broken link, so that `mkdocs build --strict` fails.
"""

from __future__ import annotations

import html
import importlib
import inspect
import re
from collections.abc import Iterable
from typing import Any

import griffe
import latex2mathml.converter

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
# Package -> suffix of the names of its classes.
_ENDINGS = {"losses": "Loss", "metrics": "Metric"}


class RuntimeNames(griffe.Extension):
    """Adds the names that exist only at run time to mkdocstrings, which only parses the source."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        for package in (pkg["losses"], pkg["metrics"]):
            add_named_classes(package)
        rename_examples(pkg)
        for package in (pkg["functional"], pkg["ops"]):
            prefer_functions_to_modules(package)


def add_named_classes(package: griffe.Module) -> None:
    """Adds the classes generated from the registry, with the signatures of the stubs and the classes' docstrings."""
    stubs, named = package["named"], importlib.import_module(f"{package.path}.named")
    for name in named.__all__:
        stubs[name].docstring.value = inspect.getdoc(getattr(named, name))
        package.set_member(name, griffe.Alias(name, stubs[name], parent=package))


def rename_examples(owner: griffe.Object) -> None:
    """Renames the section "Example:" of all docstrings, since griffe only recognizes "Examples:"."""
    if owner.docstring:
        owner.docstring.value = re.sub(r"^Example:$", "Examples:", owner.docstring.value, flags=re.M)
    for member in owner.members.values():
        if not member.is_alias:
            rename_examples(member)


def prefer_functions_to_modules(package: griffe.Module) -> None:
    """Documents the function if a function and its module have the same name, such as `functional.list_net`.

    All names are looked up first, since the members of such a module become unreachable when the function replaces it.
    """
    members = {name: package[name] for name in package.exports}
    targets = {name: member.final_target if member.is_alias else member for name, member in members.items()}
    for name, target in targets.items():
        public = target[name] if target.is_module else target
        package.set_member(name, griffe.Alias(name, public, parent=package))


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Inserts tables and reference sections."""
    markdown = re.sub(r"^<!-- losses -->$", lambda _: losses_table(), markdown, flags=re.M)
    markdown = re.sub(r"^<!-- metrics -->$", lambda _: metrics_table(), markdown, flags=re.M)
    markdown = re.sub(r"^<!-- classes: (\w+) -->$", lambda match: classes(match[1]), markdown, flags=re.M)
    return re.sub(r"^<!-- names: ([\w.]+) -->$", lambda match: names(match[1]), markdown, flags=re.M)


def on_page_content(html: str, **kwargs: Any) -> str:
    """Renders formulas as MathML, which browsers display without scripts."""
    return _FORMULA.sub(lambda match: formula(match[2], "inline" if match[1] == "span" else "block"), html)


def formula(latex: str, display: str) -> str:
    return latex2mathml.converter.convert(html.unescape(latex).strip(), display=display)


def losses_table() -> str:
    from tfr_smooth import losses

    rows = []
    for name, entry in losses.TABLE.items():
        arguments = [
            f"`{argument}={default!r}`"
            + (f" {{{values(entry.searched[argument])}}}" if argument in entry.searched else "")
            for argument, default in entry.defaults.items()
        ]
        citation = re.sub(r"arXiv:([\d.]+\d)", r"[arXiv:\1](https://arxiv.org/abs/\1)", entry.citation)
        cost = [re.sub(r"\^([\d.]+)", r"<sup>\1</sup>", order) for order in (entry.time, entry.memory)]
        rows.append([f"`{name}`<br>{reference(losses, entry.loss)}", "<br>".join(arguments), citation, *cost])
    return table(["name and class", "hyperparameters {searched}", "paper and equation", "time", "memory"], rows)


def metrics_table() -> str:
    from tfr_smooth import metrics

    rows = [[f"`{name}`", reference(metrics, metric), first_line(metric)] for name, metric in metrics.TABLE.items()]
    return table(["name", "class", "what"], rows)


def classes(ranking: str) -> str:
    from tfr_smooth import registry

    pairs = [registry.PAIRS[f"{ranking}_{metric}"] for metric in registry.METRICS]
    return "\n".join(f"::: tfr_smooth.{kind}.{pair.stem}{end}" for kind, end in _ENDINGS.items() for pair in pairs)


def names(package: str) -> str:
    module = importlib.import_module(package)
    public = [name for name in module.__all__ if callable(getattr(module, name))]
    return "\n".join(f"- [`{name}`][{package}.{name}]: {first_line(getattr(module, name))}" for name in public)


def reference(module: Any, member: type) -> str:
    """A link to the documentation of the member."""
    return f"[`{member.__name__}`][{module.__name__}.{member.__name__}]"


def first_line(member: Any) -> str:
    return (member.__doc__ or "").strip().partition("\n")[0]


def values(searched: Iterable[Any]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in searched)


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

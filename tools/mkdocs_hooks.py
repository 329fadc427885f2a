"""What MkDocs and mkdocstrings call while they build the site (mkdocs.yml names this file).

Tables come from the code, so that they cannot fall behind it: a page says where with a comment,
    <!-- losses -->            the table of losses, from losses.TABLE
    <!-- metrics -->           the table of metrics, from metrics.TABLE
    <!-- names: PACKAGE -->    all public names of a package, linked to where they are documented
A name that is documented nowhere is a link to nothing, with which `mkdocs build --strict` fails.
"""

from __future__ import annotations

import html
import importlib
import re
from collections.abc import Iterable
from typing import Any

import griffe
import latex2mathml.converter

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)


class Examples(griffe.Extension):
    """Lets mkdocstrings show our docstrings' section "Example:" as the code that it is: it knows "Examples:" only."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.M)


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Fills in the tables."""
    markdown = re.sub(r"^<!-- losses -->$", lambda _: losses_table(), markdown, flags=re.M)
    markdown = re.sub(r"^<!-- metrics -->$", lambda _: metrics_table(), markdown, flags=re.M)
    return re.sub(r"^<!-- names: ([\w.]+) -->$", lambda found: names(found[1]), markdown, flags=re.M)


def on_page_content(html: str, **kwargs: Any) -> str:
    """Renders formulas as MathML, which browsers show without a script."""
    return _FORMULA.sub(lambda found: formula(found[2], "inline" if found[1] == "span" else "block"), html)


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
        equation = re.sub(r"arXiv:([\d.]+\d)", r"[arXiv:\1](https://arxiv.org/abs/\1)", entry.equation)
        cost = [order.replace("^2", "²") for order in (entry.time, entry.memory)]
        rows.append([f"`{name}`<br>{reference(losses, entry.loss)}", "<br>".join(arguments), equation, *cost])
    return table(["name and class", "hyperparameters {searched}", "equation", "time", "memory"], rows)


def metrics_table() -> str:
    from tfr_smooth import metrics

    rows = [[f"`{name}`", reference(metrics, metric), first_line(metric)] for name, metric in metrics.TABLE.items()]
    return table(["name", "metric", "what"], rows)


def names(package: str) -> str:
    module = importlib.import_module(package)
    public = [name for name in module.__all__ if callable(getattr(module, name))]
    return "\n".join(f"- [`{name}`][{package}.{name}]: {first_line(getattr(module, name))}" for name in public)


def reference(module: Any, member: type) -> str:
    """A link to where mkdocstrings documents the member."""
    return f"[`{member.__name__}`][{module.__name__}.{member.__name__}]"


def first_line(member: Any) -> str:
    return (member.__doc__ or "").strip().partition("\n")[0]


def values(found: Iterable[Any]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in found)


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

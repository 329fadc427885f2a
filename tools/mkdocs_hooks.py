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

import importlib
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import griffe

# Matches an image in Markdown: the part before the path, and the path without ".png)".
_IMAGE = re.compile(r"(!\[[^\]]*\]\()([^)#]+)\.png\)")
# Matches inline code that starts with a flag: the tag, and the flag without its value.
_FLAG = re.compile(r"(<code>)(--[\w-]+)")
# Hyperparameters for which the papers searched a range, not a set of values.
_SEARCHED_RANGES = {"sigma"}
# Imports TF-Ranking, which is not installed where the site is built.
_NOT_IMPORTABLE = "tfr_smooth.tf_ranking"
# Package -> suffix of the names of its classes.
_ENDINGS = {"losses": "Loss", "metrics": "Metric"}


class RuntimeNames(griffe.Extension):
    """Adds the names that exist only at run time to mkdocstrings, which only parses the source."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        for package in (pkg["losses"], pkg["metrics"]):
            add_named_classes(package)
        rename_examples(pkg)
        hide_defaults_of_variadics(pkg)
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


def hide_defaults_of_variadics(owner: griffe.Object) -> None:
    """Removes the default `{}` that griffe assigns to `**kwargs`, and `()` of `*args`."""
    variadic = (griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword)
    for parameter in owner.parameters if owner.is_function else ():
        if parameter.kind in variadic:
            parameter.default = None
    for member in owner.members.values():
        if not member.is_alias:
            hide_defaults_of_variadics(member)


def prefer_functions_to_modules(package: griffe.Module) -> None:
    """Documents the function if a function and its module have the same name, such as `functional.list_net`.

    All names are looked up first, since the members of such a module become unreachable when the function replaces it.
    """
    members = {name: package[name] for name in package.exports}
    targets = {name: member.final_target if member.is_alias else member for name, member in members.items()}
    for name, target in targets.items():
        public = target[name] if target.is_module else target
        package.set_member(name, griffe.Alias(name, public, parent=package))


def on_page_markdown(markdown: str, *, page: Any, **kwargs: Any) -> str:
    """Inserts tables, reference sections and the dark variants of images."""
    markdown = re.sub(r"^<!-- losses -->$", lambda _: losses_table(), markdown, flags=re.M)
    markdown = re.sub(r"^<!-- metrics -->$", lambda _: metrics_table(), markdown, flags=re.M)
    markdown = re.sub(r"^<!-- classes: (\w+) -->$", lambda match: classes(match[1]), markdown, flags=re.M)
    markdown = re.sub(r"^<!-- names: ([\w.]+) -->$", lambda match: names(match[1]), markdown, flags=re.M)
    markdown = re.sub(r"^\|.*", lambda row: row[0].replace("± ", "±\u00a0"), markdown, flags=re.M)  # no line break
    return _IMAGE.sub(lambda match: image(match, Path(page.file.abs_src_path).parent), markdown)


def on_page_content(html: str, **kwargs: Any) -> str:
    """Marks flags in inline code, which browsers would otherwise break after the hyphens."""
    return _FLAG.sub(r'\1<span class="flag">\2</span>', html)


def on_post_page(output: str, **kwargs: Any) -> str:
    """Removes the mark by which the theme's script finds the repository, to request its stars from GitHub."""
    return output.replace(' data-md-component="source"', "")


def image(match: re.Match[str], folder: Path) -> str:
    """Returns the image for the light scheme and NAME_dark.png for the dark scheme, if that file exists."""
    before, path = match.groups()
    if not (folder / f"{path}_dark.png").exists():
        return match[0]
    return f"{before}{path}.png#only-light){before}{path}_dark.png#only-dark)"


def losses_table() -> str:
    from tfr_smooth import losses

    rows = []
    for name, entry in losses.TABLE.items():
        arguments = [
            f"`{argument}={default!r}`"
            + (f" {{{searched(argument, entry.searched[argument])}}}" if argument in entry.searched else "")
            for argument, default in entry.defaults.items()
        ]
        citation = re.sub(r"arXiv:([\d.]+\d)", r"[arXiv:\1](https://arxiv.org/abs/\1)", entry.citation)
        cost = [re.sub(r"\^([\d.]+)", r"<sup>\1</sup>", order) for order in (entry.time, entry.memory)]
        rows.append([f"`{name}`<br>{reference(losses, entry.loss)}", "<br>".join(arguments), citation, *cost])
    return table(["name and class", "hyperparameters {searched}", "paper and equation", "time", "memory"], rows)


def metrics_table() -> str:
    from tfr_smooth import metrics

    rows = [
        [f"`{name}`", reference(metrics, metric), first_line(metric.__doc__)] for name, metric in metrics.TABLE.items()
    ]
    return table(["name", "class", "what"], rows)


def classes(ranking: str) -> str:
    from tfr_smooth import registry

    pairs = [registry.PAIRS[f"{ranking}_{metric}"] for metric in registry.METRICS]
    return "\n".join(f"::: tfr_smooth.{kind}.{pair.stem}{end}" for kind, end in _ENDINGS.items() for pair in pairs)


def names(package: str) -> str:
    """A list of the public names, and below one per relaxation with its losses or metrics."""
    from tfr_smooth import registry

    kind = package.rpartition(".")[2]
    groups: dict[str, list[str]] = {}
    if kind in _ENDINGS:
        for pair in registry.PAIRS.values():
            groups.setdefault(pair.ranking.title, []).append(pair.stem + _ENDINGS[kind])
    if kind == "losses":
        groups["Baselines"] = [entry.loss for entry in registry.BASELINES.values()]
    elif kind == "metrics":
        groups = {"Exact metrics": [entry.exact for entry in registry.METRICS.values()], **groups}
    public = summaries(package)
    grouped = {name for members in groups.values() for name in members}
    lines = [f"- [`{name}`][{package}.{name}]: {public[name]}" for name in public if name not in grouped]
    for title, members in groups.items():
        lines += ["", f"## {title}", "", *(f"- [`{name}`][{package}.{name}]: {public[name]}" for name in members)]
    return "\n".join(lines)


def summaries(package: str) -> dict[str, str]:
    """The first lines of the docstrings of a package's public classes and functions."""
    if package == _NOT_IMPORTABLE:
        module = griffe.load(package, search_paths=["."])
        members = {name: module[name].final_target for name in module.exports}
        public = {name: member for name, member in members.items() if member.is_class or member.is_function}
        return {name: first_line(member.docstring.value) for name, member in public.items()}
    imported = importlib.import_module(package)
    members = {name: getattr(imported, name) for name in imported.__all__}
    return {name: first_line(member.__doc__) for name, member in members.items() if callable(member)}


def reference(module: Any, member: type) -> str:
    """A link to the documentation of the member."""
    return f"[`{member.__name__}`][{module.__name__}.{member.__name__}]"


def first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


def searched(argument: str, values: Iterable[Any]) -> str:
    shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return f"{shown[0]} to {shown[-1]}" if argument in _SEARCHED_RANGES else ", ".join(shown)


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

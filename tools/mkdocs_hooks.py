"""Hooks of MkDocs and mkdocstrings for building the site (see mkdocs.yml).

Tables and reference sections are generated from the registry, so that they are always up to date. A page contains a
comment instead:
    <!-- losses -->             the table of losses, from losses.TABLE
    <!-- metrics -->            the table of metrics, from metrics.TABLE
    <!-- rankings -->           the table of rankings with their loss classes, arguments and papers
    <!-- measures -->           the same of measures
    <!-- relaxations -->        the table of relaxations with what they compute and their papers
    <!-- comparison -->         the table of relaxations with their temperatures and costs
    <!-- relaxations: KIND -->  links to the relaxations of a kind: indicators, distributions or positions
    <!-- names: PACKAGE -->     all public names of a package, linked to their documentation
    <!-- classes: RANKING -->   the reference of a ranking's losses and metrics, from registry.PAIRS
    <!-- reference: KIND -->    the reference of all measures or exact metrics
A name without documentation becomes a broken link, so that `mkdocs build --strict` fails.

A relaxation's page is relaxations/CLASS.md, with the name of its class in lower case. It is generated if docs/ does not
contain it. The pages of all relaxations are added to the navigation.
"""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File

# Matches a comment of a page: what to insert, and its argument.
_COMMENT = re.compile(r"<!-- (\w+)(?:: ([\w. ]+))? -->")
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
# The page that compares the relaxations.
_OVERVIEW = "relaxations/index.md"


class RuntimeNames(griffe.Extension):
    """Adds the names that exist only at run time to mkdocstrings, which only parses the source."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        for package in (pkg["losses"], pkg["metrics"]):
            add_named_classes(package)
        rename_examples(pkg)
        tidy_parameters(pkg)


def add_named_classes(package: griffe.Module) -> None:
    """Adds the classes generated from the registry, with the signatures of the stubs and the classes' docstrings."""
    module = f"measure_{package.name}"
    stubs, named = package[module], importlib.import_module(f"{package.path}.{module}")
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


def tidy_parameters(owner: griffe.Object) -> None:
    """Removes what griffe adds: the defaults `{}` of `**kwargs` and `()` of `*args`, and `about` as a field."""
    variadic = (griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword)
    for parameter in owner.parameters if owner.is_function else ():
        if parameter.kind in variadic:
            parameter.default = None
    if owner.is_function and "about" in owner.parameters:
        del owner.parameters["about"]
    for member in owner.members.values():
        if not member.is_alias:
            tidy_parameters(member)


def on_config(config: Any) -> None:
    """Names the version, and adds the pages of the relaxations to the navigation, after the page that compares them."""
    from tfr_smooth import __version__

    config.copyright = f"Version {__version__}"
    for section in config.nav:
        for entries in section.values():
            if isinstance(entries, list) and _OVERVIEW in entries:
                place = entries.index(_OVERVIEW) + 1
                entries[place:place] = [{ranking.__name__: page_of(ranking)} for ranking in relaxations()]


def on_files(files: Any, *, config: Any) -> None:
    """Adds a page for each relaxation without a page in docs/."""
    for ranking in relaxations():
        if files.get_file_from_path(page_of(ranking)) is None:
            files.append(File.generated(config, page_of(ranking), content=relaxation_page(ranking, config.docs_dir)))


def on_page_markdown(markdown: str, *, page: Any, config: Any, **kwargs: Any) -> str:
    """Inserts tables, reference sections and the dark variants of images."""
    folder = posixpath.dirname(page.file.src_uri)

    def inserted(comment: re.Match[str]) -> str:
        insert = INSERTED.get(comment[1])
        return insert(folder, *filter(None, [comment[2]])) if insert else comment[0]

    markdown = _COMMENT.sub(inserted, markdown)
    markdown = re.sub(r"^\|.*", lambda row: row[0].replace("± ", "±\u00a0"), markdown, flags=re.M)  # no line break
    return _IMAGE.sub(lambda match: image(match, Path(config.docs_dir) / folder), markdown)


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


def relaxations() -> list[Any]:
    from tfr_smooth import registry

    return list(registry.RANKINGS.values())


def page_of(ranking: Any) -> str:
    return f"relaxations/{ranking.__name__.lower()}.md"


def relaxation_page(ranking: Any, docs: str) -> str:
    """Returns the page of a relaxation from its class, with those of its plots that exist."""
    about, title, temperature = ranking.about, ranking.__name__, ranking.about.temperature
    arguments = [
        [f"`{argument}`", f"`{literal(default)}`", searched(argument, about.searched.get(argument, ()))]
        for argument, default in hyperparameters(ranking).items()
    ]
    plots = {
        "ranking": f"{title}'s ranking of five documents",
        "error": f"Mean absolute error of {title}'s metrics, and norm of the gradient of its NDCG, by {temperature}",
    }
    paths = {kind: f"images/{title.lower()}_{kind}.png" for kind in plots}
    parts = [
        f"# {title}",
        first_line(ranking.__doc__),
        f"Paper: {linked(about.citation)}.",
        "## Definition",
        f"$${about.formula}$$",
        "[Metrics](../metrics.md#formulas) lists the formulas of the metrics for each kind of ranking. [Relaxations]"
        "(index.md) compares the costs and errors of all relaxations.",
        *(f"![{text}](../{paths[kind]})" for kind, text in plots.items() if (Path(docs) / paths[kind]).exists()),
        "## Hyperparameters",
        table(["argument", "default", "searched in the papers"], arguments),
        "## Reference",
        f"::: tfr_smooth.rankings.{title}",
        f"<!-- classes: {about.name} -->",
    ]
    return "\n\n".join(parts) + "\n"


def hyperparameters(part: type) -> dict[str, Any]:
    from tfr_smooth import registry

    return registry.defaults(part)


def losses_table(folder: str) -> str:
    from tfr_smooth import losses

    rows = []
    for name, entry in losses.TABLE.items():
        arguments = [
            f"`{argument}={literal(default)}`"
            + (f" {{{searched(argument, entry.searched[argument])}}}" if argument in entry.searched else "")
            for argument, default in entry.defaults.items()
        ]
        cost = [powers(order) for order in (entry.time, entry.memory)]
        rows.append(
            [f"`{name}`<br>{reference(losses, entry.loss)}", "<br>".join(arguments), linked(entry.citation), *cost]
        )
    return table(["name and class", "hyperparameters {searched}", "paper and equation", "time", "memory"], rows)


def metrics_table(folder: str) -> str:
    from tfr_smooth import metrics

    rows = [
        [f"`{name}`", reference(metrics, metric), first_line(metric.__doc__)] for name, metric in metrics.TABLE.items()
    ]
    return table(["name", "class", "what"], rows)


def parts_table(package: str) -> str:
    """A row for each ranking or measure."""
    from tfr_smooth import registry

    parts = registry.RANKINGS if package == "rankings" else registry.MEASURES
    rows = []
    for part in parts.values():
        classes = f"{part.about.prefix}...Loss" if package == "rankings" else f"...{part.about.suffix}Loss"
        arguments = ", ".join(f"{name}={literal(default)}" for name, default in hyperparameters(part).items())
        link = f"[`{package}.{part.__name__}`][tfr_smooth.{package}.{part.__name__}]"
        rows.append([link, f"`{classes}`", f"`{arguments}`" if arguments else "", linked(part.about.citation)])
    return table([package.removesuffix("s"), "classes", "arguments", "paper and equation"], rows)


def relaxation_link(ranking: Any, folder: str) -> str:
    return f"[{ranking.__name__}]({posixpath.relpath(page_of(ranking), folder or '.')})"


def relaxations_of(folder: str, kind: str = "") -> str:
    """Links to the relaxations of a kind; without one, a table of all relaxations."""
    from tfr_smooth import rankings

    def kind_of(ranking: type) -> str:
        if issubclass(ranking, rankings.PositionRanking):
            return "positions"
        return "distributions" if issubclass(ranking, rankings.ranking.DocumentRanking) else "indicators"

    if kind:
        return ", ".join(relaxation_link(ranking, folder) for ranking in relaxations() if kind_of(ranking) == kind)
    rows = []
    for ranking in relaxations():
        # "The NAME ranking: what it computes (paper)."
        what = re.sub(r"^The \w+ ranking: |( \(.*\))?\.$", "", first_line(ranking.__doc__))
        rows.append([relaxation_link(ranking, folder), what, linked(ranking.about.citation)])
    return table(["relaxation", "smooth ranking", "paper and equation"], rows)


def comparison_table(folder: str) -> str:
    rows = []
    for ranking in relaxations():
        about = ranking.about
        default = hyperparameters(ranking)[about.temperature]
        sharper = "larger" if about.sharp[about.temperature] > default else "smaller"
        rows.append([relaxation_link(ranking, folder), f"{sharper} `{about.temperature}`", f"{default:g}"])
        rows[-1] += [powers(order) for order in about.costs["ndcg"]]
    return table(["relaxation", "sharper with", "default", "time per list", "memory"], rows)


def classes(folder: str, ranking: str) -> str:
    """The losses and metrics of a relaxation. What they share is said once, by the first loss and the first metric."""
    from tfr_smooth import registry

    stems = [pair.stem for pair in registry.PAIRS.values() if pair.ranking is registry.RANKINGS[ranking]]
    shared = ("parameters", "raises", "examples")
    brief = "\n    options:" + "".join(f"\n      show_docstring_{section}: false" for section in shared)
    measures = posixpath.relpath("api/measures.md", folder or ".")
    lines = []
    for kind, end in _ENDINGS.items():
        first = f"[`{stems[0]}{end}`][tfr_smooth.{kind}.{stems[0]}{end}]"
        lines += [f"{first} describes the arguments of all {kind}, except those of other [measures]({measures}).", ""]
        for number, stem in enumerate(stems):
            lines.append(f"::: tfr_smooth.{kind}.{stem}{end}{brief if number else ''}")
    return "\n".join(lines)


def references(folder: str, kind: str) -> str:
    from tfr_smooth import registry

    measures = registry.EXACT.values()
    names = {
        "measures": [f"measures.{measure.__name__}" for measure in measures],
        "exact metrics": [f"metrics.{measure.about.exact}" for measure in measures],
    }
    return "\n".join(f"::: tfr_smooth.{name}" for name in names[kind])


def names(folder: str, package: str) -> str:
    """A list of the public names, and below one per relaxation with its losses or metrics."""
    from tfr_smooth import registry
    from tfr_smooth.losses import baselines

    kind = package.rpartition(".")[2]
    groups: dict[str, list[str]] = {}
    if kind in _ENDINGS:
        for pair in registry.PAIRS.values():
            groups.setdefault(pair.ranking.about.title, []).append(pair.stem + _ENDINGS[kind])
    if kind == "losses":
        groups["Baselines"] = [loss.__name__ for loss in baselines.BASELINES.values()]
    elif kind == "metrics":
        groups = {"Exact metrics": [measure.about.exact for measure in registry.EXACT.values()], **groups}
    public = summaries(package)
    grouped = {name for members in groups.values() for name in members}
    lines = [f"- [`{name}`][{package}.{name}]: {public[name]}" for name in public if name not in grouped]
    for title, members in groups.items():
        lines += ["", f"## {title}", "", *(f"- [`{name}`][{package}.{name}]: {public[name]}" for name in members)]
    return "\n".join(lines)


# What a comment inserts -> the function of the page's folder and the argument of the comment that returns it.
INSERTED = {
    "classes": classes,
    "comparison": comparison_table,
    "losses": losses_table,
    "measures": lambda folder: parts_table("measures"),
    "metrics": metrics_table,
    "names": names,
    "rankings": lambda folder: parts_table("rankings"),
    "reference": references,
    "relaxations": relaxations_of,
}


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


def literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def linked(citation: str) -> str:
    return re.sub(r"arXiv:([\d.]+\d)", r"[arXiv:\1](https://arxiv.org/abs/\1)", citation)


def powers(order: str) -> str:
    return re.sub(r"\^([\d.]+)", r"<sup>\1</sup>", order)


def first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


def searched(argument: str, values: Iterable[Any]) -> str:
    shown = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return f"{shown[0]} to {shown[-1]}" if shown and argument in _SEARCHED_RANGES else ", ".join(shown)


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

"""Hooks of MkDocs and mkdocstrings for building the site (see mkdocs.yml).

A page contains <!-- names: PACKAGE --> where all public names of a package are listed, linked to their documentation.
A name without documentation becomes a broken link, so that `mkdocs build --strict` fails. It documents with
<!-- reference: PACKAGE --> the names that no page documents by itself.
"""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

import griffe

# Matches the comment for the names of a package.
_NAMES = re.compile(r"<!-- names: ([\w.]+) -->")
# Matches the comment for the reference of a package, and a name that a page documents.
_REFERENCE = re.compile(r"<!-- reference: ([\w.]+) -->")
_DOCUMENTED = re.compile(r"^::: ([\w.]+)$", re.M)
# Imports TF-Ranking, which is not installed where the site is built.
_NOT_IMPORTABLE = "tfr_smooth.tf_ranking"
# Matches an image in Markdown: the part before the path, and the path without ".png)".
_IMAGE = re.compile(r"(!\[[^\]]*\]\()([^)#]+)\.png\)")
_IN_MOTION = '<picture><source srcset="{name}.webp" media="(prefers-reduced-motion: no-preference)">{still}</picture>'
# Matches inline code that starts with a flag: the tag, and the flag without its value.
_FLAG = re.compile(r"(<code>)(--[\w-]+)")


class TidyDocstrings(griffe.Extension):
    """Corrects what griffe does not understand: the section "Example:", and `*args` and `**kwargs`."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        tidy(pkg)


def tidy(owner: griffe.Object) -> None:
    if owner.docstring:
        owner.docstring.value = re.sub(r"^Example:$", "Examples:", owner.docstring.value, flags=re.M)
    for parameter in owner.parameters if owner.is_function else ():
        if parameter.kind in (griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword):
            parameter.default = None  # griffe's is () or {}
    for member in owner.members.values():
        if not member.is_alias:
            tidy(member)


def on_config(config: Any) -> None:
    """Names the version at the foot of each page."""
    from tfr_smooth import __version__

    config.copyright = f"Version {__version__}"


def on_page_markdown(markdown: str, *, page: Any, config: Any, **kwargs: Any) -> str:
    """Inserts names of packages, no-break spaces before standard errors, and the dark variants of images."""
    markdown = _NAMES.sub(lambda found: names(found[1]), markdown)
    markdown = _REFERENCE.sub(lambda found: reference(found[1], Path(config.docs_dir)), markdown)
    markdown = re.sub(r"^\|.*", lambda row: row[0].replace("± ", "±\u00a0"), markdown, flags=re.M)
    return _IMAGE.sub(
        lambda found: image(*found.groups(), Path(config.docs_dir, posixpath.dirname(page.file.src_uri))), markdown
    )


def on_page_content(html: str, **kwargs: Any) -> str:
    """Marks flags in inline code, which browsers would otherwise break after the hyphens."""
    return _FLAG.sub(r'\1<span class="flag">\2</span>', html)


def on_post_page(output: str, **kwargs: Any) -> str:
    """Removes the mark by which the theme's script finds the repository, to request its stars from GitHub."""
    return output.replace(' data-md-component="source"', "")


def image(before: str, path: str, folder: Path) -> str:
    """Returns the image for the light scheme and NAME_dark.png for the dark scheme, if that file exists.

    NAME.webp and NAME_dark.webp, if they exist, are the same in motion. They take its place, unless the reader prefers
    less motion.
    """
    if not (folder / f"{path}_dark.png").exists():
        return f"{before}{path}.png)"
    images = {
        name: f"{before}{name}.png#only-{scheme})" for name, scheme in ((path, "light"), (f"{path}_dark", "dark"))
    }
    if (folder / f"{path}.webp").exists():
        images = {name: _IN_MOTION.format(name=name, still=still) for name, still in images.items()}
    return "".join(images.values())


def names(package: str) -> str:
    """Returns a list of the public classes and functions with the first lines of their docstrings."""
    documented = described(package)
    return "\n".join(
        f"- [`{name}`][{package}.{name}]: {text.partition(chr(10))[0]}" for name, text in documented.items()
    )


def reference(package: str, docs: Path) -> str:
    """Returns the documentation of the public classes and functions that no page documents by itself."""
    elsewhere = {name for page in docs.rglob("*.md") for name in _DOCUMENTED.findall(page.read_text(encoding="utf-8"))}
    return "\n".join(f"::: {package}.{name}" for name in described(package) if f"{package}.{name}" not in elsewhere)


def described(package: str) -> dict[str, str]:
    """Returns the docstrings of the public classes and functions of a package."""
    if package == _NOT_IMPORTABLE:
        module = griffe.load(package, search_paths=["."])
        members = {name: module[name].final_target for name in module.exports}
        return {name: member.docstring.value for name, member in members.items() if not member.is_attribute}
    imported = importlib.import_module(package)
    members = {name: getattr(imported, name) for name in imported.__all__}
    return {name: inspect.getdoc(member) or "" for name, member in members.items() if callable(member)}

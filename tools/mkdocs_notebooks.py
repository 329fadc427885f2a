"""Shows the notebooks below docs/ as pages of the site (mkdocs.yml names this file).

A notebook becomes Markdown: its text, its code and its stored outputs. So search, links to other pages and their check
work as on any other page. Nothing is executed; `make notebooks` does that.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# Matches an image from another site, such as the badge of Colab: its alternative text.
_BADGE = re.compile(r"!\[([^\]]*)\]\(https?://[^)]*\)")


class Notebook(File):
    """A notebook as a page, to which others link as NAME.ipynb."""

    def is_documentation_page(self) -> bool:
        return True

    @property
    def content_string(self) -> str:
        return markdown(json.loads(super().content_string))


def on_files(files: Files, config: MkDocsConfig) -> None:
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            files.remove(file)
            files.append(Notebook(file.src_uri, file.src_dir, file.dest_dir, file.use_directory_urls))


def markdown(notebook: dict[str, Any]) -> str:
    parts, heading = [], ""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            source = _BADGE.sub(r"\1", source)
            heading = (re.findall(r"^#+ (.+)$", source, re.M) or [heading])[-1]
            parts.append(source)
        else:
            parts += [fenced(source, "python"), *(shown(output, heading) for output in cell["outputs"])]
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def shown(output: dict[str, Any], heading: str) -> str:
    """An output in the richest form that it is stored in; an image is described by the heading above it."""
    if output["output_type"] == "stream":
        return fenced("".join(output["text"]), "text")
    data = output["data"]
    if "image/png" in data:
        image = "".join(data["image/png"]).replace("\n", "")
        return f"![{heading}](data:image/png;base64,{image})"
    if "text/html" in data:
        # pandas styles its tables; the site's own style is for tables without a class.
        (table,) = re.findall(r"<table.*</table>", "".join(data["text/html"]), re.S)
        return re.sub(r"<(table|tr)\b[^>]*>", r"<\1>", table)
    return fenced("".join(data["text/plain"]), "text")

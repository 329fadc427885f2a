"""Shows Markdown files from outside of docs/ as pages of the site: a page with `<!-- file: PATH -->` has the file.

Links of the file, which are relative to it, lead to the same pages and images in the site, and otherwise to the
repository.
"""

from __future__ import annotations

import os
import pathlib
import posixpath
import re
from typing import Any

_DIRECTIVE = re.compile(r"^<!-- file: (\S+) -->$", re.M)
_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([\w./-]+)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replaces the comment with the file."""
    # The files that are pages, by path -> the page that has it.
    pages = {
        found[1]: file.src_uri
        for file in files.documentation_pages()
        if file.abs_src_path
        and (found := _DIRECTIVE.search(pathlib.Path(file.abs_src_path).read_text(encoding="utf-8")))
    }
    root = pathlib.Path(config.config_file_path).parent
    docs = pathlib.Path(config.docs_dir).relative_to(root).as_posix() + "/"

    def included(directive: re.Match[str]) -> str:
        def link(found: re.Match[str]) -> str:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(directive[1]), found[1]))
            if target in pages:
                target = docs + pages[target]
            if target.startswith(docs):
                return os.path.relpath(target.removeprefix(docs), posixpath.dirname(page.file.src_uri) or ".")
            return f"{config.repo_url}/blob/main/{target}"

        return _LINK.sub(link, (root / directive[1]).read_text(encoding="utf-8"))

    return _DIRECTIVE.sub(included, markdown)

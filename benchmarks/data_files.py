"""The files of public data sets in a folder."""

from __future__ import annotations

import pathlib


def find(folder: pathlib.Path, *names: str) -> list[pathlib.Path]:
    """Returns the paths of files, as published or gzipped.

    Raises:
      FileNotFoundError: If files are missing, with the names of all of them.
    """
    paths = [folder / name if (folder / name).exists() else folder / f"{name}.gz" for name in names]
    if missing := [name for name, path in zip(names, paths, strict=True) if not path.exists()]:
        expected = f"{', '.join(names)}, as published or gzipped"
        source = "docs/data_sets.md tells where they come from"
        raise FileNotFoundError(f"{folder} must contain {expected}, got none named {', '.join(missing)}; {source}.")
    return paths

"""Files of MovieLens-100K, as published or gzipped."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pandas as pd


def path(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / name if (folder / name).exists() else folder / f"{name}.gz"


def read_ratings(folder: pathlib.Path) -> pd.DataFrame:
    return pd.read_csv(path(folder, "u.data"), sep="\t", names=["user", "item", "rating", "time"])


def read_items(folder: pathlib.Path) -> pd.DataFrame:
    """Returns the item, title, year and genres, separated by |, of each row."""
    genres = [line.split("|")[0] for line in path(folder, "u.genre").read_text().splitlines() if line]
    table = pd.read_csv(path(folder, "u.item"), sep="|", header=None, encoding="latin-1")
    titles = [re.sub(r"\s*\(\d{4}\)\s*$", "", title) for title in table[1]]
    chosen = ["|".join(np.array(genres)[row]) for row in table.loc[:, 5:].to_numpy().astype(bool)]
    years = pd.to_numeric(table[2].str[-4:])
    return pd.DataFrame({"item": table[0], "title": titles, "year": years, "genres": chosen})

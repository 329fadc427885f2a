"""Files of MovieLens-100K, as published or gzipped."""

from __future__ import annotations

import pathlib
import re

import pandas as pd
from data_files import find


def read_ratings(folder: pathlib.Path) -> pd.DataFrame:
    return pd.read_csv(*find(folder, "u.data"), sep="\t", names=["user", "item", "rating", "time"])


def read_items(folder: pathlib.Path) -> pd.DataFrame:
    """Returns the item, title, year and genres, separated by |, of each row."""
    genre, items = find(folder, "u.genre", "u.item")
    genres = pd.read_csv(genre, sep="|", header=None)[0].to_numpy()
    table = pd.read_csv(items, sep="|", header=None, encoding="latin-1")
    titles = [re.sub(r"\s*\(\d{4}\)\s*$", "", title) for title in table[1]]
    chosen = ["|".join(genres[row]) for row in table.loc[:, 5:].to_numpy().astype(bool)]
    years = pd.to_numeric(table[2].str[-4:])
    return pd.DataFrame({"item": table[0], "title": titles, "year": years, "genres": chosen})

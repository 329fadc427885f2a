"""Small made-up tables, each with one difficulty that real tables have."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd

from tables.table import Table, split

_CUTS = (0.6, 0.8, 0.92, 0.98)  # the quantiles of the relevance at which the labels 1 to 4 begin


def _labels(relevance: np.ndarray, cuts: tuple[float, ...] = _CUTS) -> np.ndarray:
    return np.digitize(relevance, np.quantile(relevance, cuts))


def _table(columns: dict[str, np.ndarray], relevance: np.ndarray, length: int, **options: object) -> Table:
    """Returns the table of lists of one length, in their order: 60, 15 and 25% of them are the parts."""
    rows = pd.DataFrame(columns)
    rows["query"] = np.arange(len(rows)) // length
    rows["label"] = _labels(relevance)
    return Table(rows.assign(part=split(rows["query"])), [*columns], **options)


def _numbers(values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"number_{place}": column for place, column in enumerate(values.T)}


def _zipf(random: np.random.Generator, values: int, size: int | tuple[int, ...], power: float = 1.0) -> np.ndarray:
    """Returns values from 0, the probability of the k-th proportional to 1 / k^power."""
    probabilities = np.arange(1, values + 1) ** -power
    return random.choice(values, size, p=probabilities / probabilities.sum())


def web10k(random: np.random.Generator) -> Table:
    """The shape of MSLR-WEB10K: 136 numbers, of which 6 matter; the last 200 of 1,200 lists are the test."""
    x = random.gamma(1, 1, (1200 * 120, 136))
    x[:, ::3] = np.round(2 * x[:, ::3])
    x[:, 5] *= 100
    relevance = np.floor(x[:, 0]) * 0.4 + (x[:, 1] > 1.2) * np.log1p(x[:, 2]) + 0.5 * np.minimum(x[:, 3], 1.5)
    relevance += -0.3 * (x[:, 4] > 2) + 0.1 * np.log1p(x[:, 5]) + 0.8 * random.normal(size=len(x))
    rows = pd.DataFrame(_numbers(x)).assign(query=np.arange(len(x)) // 120)
    rows["label"] = _labels(relevance, (0.55, 0.8, 0.93, 0.98))
    rows["part"] = split(rows["query"], 850 / 1200, 1000 / 1200)
    return Table(rows, [*_numbers(x)], linear=True, trees={"n_estimators": 300, "num_leaves": 63})


def zeros(random: np.random.Generator) -> Table:
    """Numbers that are mostly zero and else log-normal."""
    x = random.lognormal(0, 1.5, (800 * 20, 30)) * (random.random((800 * 20, 30)) < 0.07)
    relevance = np.log1p(x) @ np.where(np.arange(30) < 12, random.normal(size=30), 0)
    return _table(_numbers(x), relevance + 0.3 * random.normal(size=len(x)), 20)


def heavy(random: np.random.Generator) -> Table:
    """Numbers with heavy tails."""
    latent = random.normal(size=(600 * 20, 12))
    x = np.sign(latent) * np.expm1(np.abs(latent) * np.linspace(0.5, 8, 12))
    relevance = latent @ random.normal(size=12) + (latent[:, 11] > 0.5) * latent[:, 0]
    return _table(_numbers(x), relevance + random.normal(size=len(x)), 20)


def long_tail_id(random: np.random.Generator) -> Table:
    """An id with a long tail, whose latent effect decides, and weak numbers."""
    ids = _zipf(random, 5000, 1000 * 15)
    x = random.normal(size=(len(ids), 3))
    relevance = random.normal(size=5000)[ids] + x @ [0.4, -0.3, 0.2] + 0.5 * random.normal(size=len(ids))
    shop = np.char.add("shop_", ids.astype(str))
    return _table({"shop": shop, **_numbers(x)}, relevance, 15, kinds={"shop": "id"})


def noise_id(random: np.random.Generator) -> Table:
    """Ids that do not matter, one of them almost unique, and numbers that do."""
    rows = 600 * 15
    ids = {"shop": _zipf(random, 500, rows), "product": random.integers(0, 8000, rows)}
    x = random.normal(size=(rows, 6))
    relevance = x[:, 0] + np.abs(x[:, 1]) + x[:, 2] * x[:, 3] + random.normal(size=rows)
    columns = {name: np.char.add(f"{name}_", values.astype(str)) for name, values in ids.items()}
    return _table({**columns, **_numbers(x)}, relevance, 15, kinds=dict.fromkeys(columns, "id"))


def list_ranks(random: np.random.Generator) -> Table:
    """Prices and ratings whose rank in their list decides, with a level and spread of each list."""
    lists, length = 800, 15
    x = random.normal(size=(lists, length, 4))
    ranks = x.argsort(axis=1).argsort(axis=1) / (length - 1)
    relevance = (ranks[..., 0] < 0.2) + ranks[..., 1] * ranks[..., 2] + 0.15 * random.normal(size=(lists, length))
    x = x * random.lognormal(0, 0.7, (lists, 1, 4)) + 3 * random.normal(size=(lists, 1, 4))
    return _table(_numbers(np.exp(x).reshape(-1, 4)), relevance.ravel(), length)


def rare_words(random: np.random.Generator) -> Table:
    """Search terms and titles: a common word counts as much as it is rare."""
    lists, length, vocabulary = 600, 15, 3000
    searches = np.repeat(_zipf(random, vocabulary, (lists, 4)), length, axis=0)
    titles = _zipf(random, vocabulary, (lists * length, 9))
    is_copied = random.random(searches.shape) < 0.3
    titles[:, :4] = np.where(is_copied, searches, titles[:, :4])
    is_common = (searches[:, :, np.newaxis] == titles[:, np.newaxis, :]).any(axis=2)
    frequency = np.bincount(titles.ravel(), minlength=vocabulary) + 1
    relevance = (is_common * np.log(titles.size / frequency)[searches]).sum(axis=1) + random.normal(size=len(titles))
    columns = {
        name: np.array([" ".join(f"w{word}" for word in random.permutation(words)) for words in values])
        for name, values in {"search": searches, "title": titles}.items()
    }
    return _table(columns, relevance, length, kinds=dict.fromkeys(columns, "text"), matches=[("title", "search")])


def lists_of_2(random: np.random.Generator) -> Table:
    """Pairs with numbers and a category."""
    return _mixed(random, lists=3000, length=2)


def lists_of_500(random: np.random.Generator) -> Table:
    """Few lists of 500 with numbers and a category."""
    return _mixed(random, lists=60, length=500)


def _mixed(random: np.random.Generator, lists: int, length: int) -> Table:
    color = random.integers(0, 12, lists * length)
    x = random.normal(size=(lists * length, 8))
    relevance = x[:, 0] + np.sin(2 * x[:, 1]) + x[:, 2] * x[:, 3] + random.normal(size=12)[color]
    relevance += np.repeat(random.normal(size=lists), length) + random.normal(size=len(x))
    return _table({"color": np.char.add("color_", color.astype(str)), **_numbers(x)}, relevance, length)


def drift(random: np.random.Generator) -> Table:
    """Weights, levels and the effects of an id change over time."""
    lists, length, ids = 800, 15, 300
    time = np.repeat(np.arange(lists) / lists, length)[:, np.newaxis]
    shop = _zipf(random, ids, lists * length)
    x = random.normal(size=(lists * length, 6))
    early, late = random.normal(size=(2, 6))
    first, second = random.normal(size=(2, ids))
    relevance = (x * ((1 - time) * early + time * late)).sum(axis=1) + random.normal(size=len(x))
    relevance += (1 - time[:, 0]) * first[shop] + time[:, 0] * second[shop]
    x += 2 * time * random.normal(size=6)
    return _table(
        {"shop": np.char.add("shop_", shop.astype(str)), **_numbers(x)}, relevance, length, kinds={"shop": "id"}
    )


def solvers(random: np.random.Generator) -> Table:
    """The same 11 names in each list, and 60 numbers of the list: thresholds of these decide which name is good."""
    lists, names, numbers = 900, 11, 60
    z = random.lognormal(0, 1.5, (lists, numbers)) * (random.random((lists, numbers)) > 0.2)
    level = 0.3 * random.normal(size=(lists, names))
    for name, _ in itertools.product(range(names), range(3)):
        first, second = z[:, random.integers(0, numbers, 2)].T
        is_high = first > np.quantile(first, random.uniform(0.2, 0.8))
        level[:, name] += 1.5 * random.normal() * (is_high & (second > np.quantile(second, random.uniform(0.1, 0.6))))
    rows = pd.DataFrame(_numbers(np.repeat(z, names, axis=0)))
    rows.insert(0, "solver", np.tile([f"solver_{name}" for name in range(names)], lists))
    features = [*rows]
    rows["query"] = np.repeat(np.arange(lists), names)
    rows["label"] = np.clip(4 - (-level).argsort(axis=1).argsort(axis=1), 0, 4).ravel()
    return Table(rows.assign(part=split(rows["query"], 520 / 900, 650 / 900)), features)


def families(random: np.random.Generator) -> Table:
    """Solvers as above of instances of 24 families, by which the table is sorted; a quarter at random is the test."""
    count, size, names, numbers = 24, 16, 10, 40
    z = np.repeat(2 * random.normal(size=(count, numbers)), size, axis=0) + random.normal(size=(count * size, numbers))
    level = 0.2 * random.normal(size=(len(z), names))
    for name, _ in itertools.product(range(names), range(6)):
        first, second = z[:, random.integers(0, numbers, 2)].T
        is_high = first > np.quantile(first, random.uniform(0.2, 0.8))
        level[:, name] += 1.5 * random.normal() * (is_high & (second > np.quantile(second, random.uniform(0.2, 0.8))))
    rows = pd.DataFrame(_numbers(np.repeat(z, names, axis=0)))
    rows.insert(0, "solver", np.tile([f"solver_{name}" for name in range(names)], len(z)))
    features = [*rows]
    rows["query"] = np.repeat(np.arange(len(z)), names)
    rows["label"] = np.clip(4 - (-level).argsort(axis=1).argsort(axis=1), 0, 4).ravel()
    part = random.permutation(np.repeat(["train", "valid", "test"], [len(z) * 9 // 16, len(z) * 3 // 16, len(z) // 4]))
    return Table(rows.assign(part=np.repeat(part, names)), features)


def shuffled_families(random: np.random.Generator) -> Table:
    """The same table in random order."""
    table = families(random)
    order = pd.Series(random.permutation(table.rows["query"].nunique()))
    rows = table.rows.assign(query=table.rows["query"].map(order)).sort_values("query", kind="stable")
    return table._replace(rows=rows.reset_index(drop=True))


def noisy_clicks(random: np.random.Generator) -> Table:
    """Clicks on a tenth of the documents of 3,165 lists of 16, mostly by chance."""
    lists, length = 3165, 16
    count = lists * length
    age, price, category = random.integers(0, 500, count), random.gamma(2, 40, count), random.integers(0, 8, count)
    x = random.normal(size=(count, 8))
    utility = age / 500 - price / 150 + (category == 0) + 0.3 * x[:, 0] * (x[:, 1] > 0)
    utility += 2.5 * random.gumbel(size=count)
    rows = pd.DataFrame(
        {
            "brand": np.char.add("b", random.integers(0, 300, count).astype(str)),
            "price": price,
            "category": np.array(list("abcdefgh"))[category],
            "age": age,
            **_numbers(x),
        }
    )
    features = [*rows]
    rows["query"] = np.repeat(np.arange(lists), length)
    rows["label"] = (utility > np.quantile(utility, 0.9)).astype(int)
    return Table(rows.assign(part=split(rows["query"], 2000 / lists, 2500 / lists)), features, kinds={"brand": "id"})


def clicks(random: np.random.Generator) -> Table:
    """A log of 50,000 documents with one click per list, mostly by chance, and a host with a long tail."""
    lists, length = 5000, 10
    host, x = _zipf(random, 3000, lists * length, 1.3), random.normal(size=(lists * length, 6))
    utility = 0.5 * random.normal(size=3000)[host] + x @ [0.4, -0.3, 0.2, 0.1, 0.0, 0.0]
    noisy = (utility + random.gumbel(size=len(x))).reshape(lists, length)
    rows = pd.DataFrame({"host": np.char.add("host_", host.astype(str)), **_numbers(x)})
    features = [*rows]
    rows["query"] = np.repeat(np.arange(lists), length)
    rows["label"] = (noisy == noisy.max(axis=1, keepdims=True)).astype(int).ravel()
    return Table(rows.assign(part=split(rows["query"])), features, kinds={"host": "id"})


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    make.__name__: make
    for make in (
        web10k,
        zeros,
        heavy,
        long_tail_id,
        noise_id,
        list_ranks,
        rare_words,
        lists_of_2,
        lists_of_500,
        drift,
        solvers,
        families,
        shuffled_families,
        clicks,
        noisy_clicks,
    )
}

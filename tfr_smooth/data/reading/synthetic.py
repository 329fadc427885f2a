"""A seeded synthetic learning-to-rank data set, written as LETOR text files.

The bytes must not depend on the NumPy version. The code therefore uses `RandomState`, whose streams NumPy has frozen
(those of `Generator` may change), and only operations that IEEE 754 rounds exactly: no `exp` or `log`, whose last bit
differs between NumPy builds, and no sums over an axis.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tfr_smooth import _arguments, _files

Array = NDArray[np.float64]

# The file names in LETOR folds.
_FILES = {"train": "train.txt", "valid": "vali.txt", "test": "test.txt"}
_CORE = 8  # features 1..8 have specific roles, see `write_synthetic_letor`
_FILLERS = ("copy", "mix", "noise", "heavy", "misleading", "copy", "mix", "constant")
_MAX_SEED = 2**32 - 1  # the limit of RandomState
# A document's label is the number of these thresholds that its noisy relevance reaches.
_THRESHOLDS = (1.3, 2.1, 2.9, 3.7)


def write_synthetic_letor(
    directory: str | os.PathLike[str],
    *,
    seed: int = 0,
    num_queries: tuple[int, int, int] = (800, 200, 300),
    num_features: int = 32,
    max_documents: int = 200,
) -> dict[str, Path]:
    """Writes a synthetic train, valid and test set in the LETOR text format.

    The data test code and quickly show differences between losses; they do not predict results on real collections. By
    design, linear scorers perform poorly on them, and losses that regress on the labels spend effort on differences
    between queries.

    For a query, `t` (its intent) and `g` (its generosity) are drawn, and for each of its documents
    `z0` to `z4`, all with mean 0 and variance 1 (sums of four uniforms, close to normal). Then

        rel   = 3 / (1 + 6 (z0 - 0.7)^2) + z1 z2 + t z3 + 0.4 z4
        label = how many of 1.3, 2.1, 2.9, 3.7 are <= rel + 1.5 g - 0.7 + 0.4 noise

    No weighted sum of the features ranks by `rel`, and `g` moves the labels of a whole query
    without changing its ranking. The features, each with its own `noise` per document and `offset`
    per query (both with mean 0 and variance 1), are:

        1 to 4   z0, z1, z2, z3, each + 0.2 offset
        5        50 z4 |z4| + 50 offset: another scale, heavier tails
        6        t
        7        g + offset; like feature 6, the same for all documents of a query
        8        2 (g + offset) - 0.5 z4 + 0.5 noise: misleading, as it increases with the label over
                 all documents but decreases with it within a query

    From feature 9 on, these eight kinds repeat (`a` and `b` cycle through features 1 to 5, scaled to a similar spread):
    near copy `a + 0.1 noise`; mix `a + b + 0.3 noise`; `noise + offset`; heavy-tailed noise `u / (1.001 - u)` with
    uniform `u`; misleading, as feature 8; copy; mix; constant 1.

    A query has `1 + floor(0.6 max_documents u v)` documents for uniform `u` and `v`, so most queries have few. The
    first query of each file has one document, the second has `max_documents`.

    Args:
      directory: Output directory, created if missing. Existing files with the same names are replaced, each
        atomically.
      seed: Integer in [0, 2^32 - 1]. The same seed writes the same bytes with every NumPy version.
      num_queries: Number of queries in train, valid and test, each >= 2.
      num_features: Features per document, >= 16; all are written.
      max_documents: Documents of the longest list, >= 2.

    Returns:
      The paths of the three files under the keys "train", "valid" and "test". A line is
      `2 qid:q17 1:0.0312 ... 32:1.0000 #docid = q17-d003`, with labels 0 to 4. No two files share a query id.

    Raises:
      ValueError: If an argument is out of range.

    Time and memory are linear in documents times features. The defaults take about one second and 15 MB on disk.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     paths = write_synthetic_letor(folder, num_queries=(20, 5, 5))
      ...     line = paths["valid"].read_text().splitlines()[0]
      >>> line.split()[1]
      'qid:q20'
    """
    seed = _arguments.integer("seed", seed, least=0, most=_MAX_SEED)
    if not isinstance(num_queries, (tuple, list)) or len(num_queries) != 3:
        raise ValueError(f"`num_queries` must be three integers (train, valid, test), got {num_queries!r}.")
    counts = [_arguments.integer("num_queries", count, least=2) for count in num_queries]
    num_features = _arguments.integer("num_features", num_features, least=_CORE + len(_FILLERS))
    max_documents = _arguments.integer("max_documents", max_documents, least=2)

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / file for name, file in _FILES.items()}
    first_query = 0
    for index, (path, count) in enumerate(zip(paths.values(), counts, strict=True)):
        # One random stream per file: the size of a file does not change the numbers in the other files.
        random = np.random.RandomState([seed, index])
        _files.write_text(path, _lines(*_sample(random, count, num_features, max_documents), first_query))
        first_query += count
    return paths


def _bell(random: np.random.RandomState, size: int) -> Array:
    """Draws approximately normal values with mean 0 and variance 1."""
    u = random.random_sample((4, size))
    return (u[0] + u[1] + u[2] + u[3] - 2.0) * np.sqrt(3.0)


def _sample(
    random: np.random.RandomState, queries: int, num_features: int, max_documents: int
) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Returns features [documents, features], labels [documents] and the documents of each query of one file."""
    u, v = random.random_sample((2, queries))
    lengths = 1 + np.floor(0.6 * max_documents * u * v).astype(np.int64)
    lengths[:2] = 1, max_documents
    query = np.repeat(np.arange(queries), lengths)
    documents = len(query)

    def noise() -> Array:
        return _bell(random, documents)

    def offset() -> Array:
        return _bell(random, queries)[query]

    def misleading() -> Array:
        return 2.0 * (generosity + offset()) - 0.5 * z[4] + 0.5 * noise()

    intent, generosity = offset(), offset()
    z = [noise() for _ in range(5)]
    bump = 1.0 / (1.0 + 6.0 * (z[0] - 0.7) * (z[0] - 0.7))
    relevance = 3.0 * bump + z[1] * z[2] + intent * z[3] + 0.4 * z[4]
    graded = relevance + 1.5 * generosity - 0.7 + 0.4 * noise()
    labels = np.searchsorted(_THRESHOLDS, graded, side="right").astype(np.int64)

    columns = [z[i] + 0.2 * offset() for i in range(4)]
    columns.append(50.0 * z[4] * np.abs(z[4]) + 50.0 * offset())
    columns += [intent, generosity + offset(), misleading()]
    scale = (1.0, 1.0, 1.0, 1.0, 100.0)
    for i in range(num_features - _CORE):
        kind = _FILLERS[i % len(_FILLERS)]
        a, b = i % 5, (i + 2) % 5
        if kind == "copy":
            column = columns[a] + 0.1 * scale[a] * noise()
        elif kind == "mix":
            column = columns[a] / scale[a] + columns[b] / scale[b] + 0.3 * noise()
        elif kind == "noise":
            column = noise() + offset()
        elif kind == "heavy":
            u = random.random_sample(documents)
            column = u / (1.001 - u)
        elif kind == "misleading":
            column = misleading()
        else:
            column = np.ones(documents)
        columns.append(column)
    return np.stack(columns, axis=1), labels, lengths


def _lines(features: Array, labels: NDArray[np.int64], lengths: NDArray[np.int64], first_query: int) -> Iterator[str]:
    """Yields the text of each query."""
    # Formatting one document at a time is much faster than one value at a time.
    row = " ".join(f"{i}:%.4f" for i in range(1, features.shape[1] + 1))
    start = 0
    for query, length in enumerate(lengths.tolist(), first_query):
        rows = zip(labels[start : start + length].tolist(), features[start : start + length].tolist(), strict=True)
        start += length
        yield "".join(
            f"{label} qid:q{query} {row % tuple(values)} #docid = q{query}-d{document:03d}\n"
            for document, (label, values) in enumerate(rows)
        )

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

from tfr_smooth import _arguments, _files

# The file names in LETOR folds.
_FILES = {"train": "train.txt", "valid": "vali.txt", "test": "test.txt"}


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
    seed = _arguments.integer("seed", seed, least=0, most=2**32 - 1)  # the limit of RandomState
    if not isinstance(num_queries, (tuple, list)) or len(num_queries) != 3:
        raise ValueError(f"`num_queries` must be three integers (train, valid, test), got {num_queries!r}.")
    counts = [_arguments.integer("num_queries", count, least=2) for count in num_queries]
    num_features = _arguments.integer("num_features", num_features, least=16)
    max_documents = _arguments.integer("max_documents", max_documents, least=2)

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {part: folder / file for part, file in _FILES.items()}
    for number, path in enumerate(paths.values()):
        # One random stream per file: the size of a file does not change the numbers in the other files.
        random = np.random.RandomState([seed, number])
        queries = np.arange(counts[number]) + sum(counts[:number])
        _files.write_text(path, _lines(random, queries, num_features, max_documents))
    return paths


def _lines(random: np.random.RandomState, queries: np.ndarray, num_features: int, max_documents: int) -> Iterator[str]:
    """Yields the documents of queries with these numbers."""
    u, v = random.random_sample((2, len(queries)))
    lengths = 1 + np.floor(0.6 * max_documents * u * v).astype(int)
    lengths[:2] = 1, max_documents
    places = np.concatenate([np.arange(length) for length in lengths])

    def noise(size: int = len(places)) -> np.ndarray:
        u = random.random_sample((4, size))
        return (u[0] + u[1] + u[2] + u[3] - 2.0) * np.sqrt(3.0)

    def offset() -> np.ndarray:
        return np.repeat(noise(len(queries)), lengths)

    intent, generosity = offset(), offset()
    z = [noise() for _ in range(5)]
    relevance = 3.0 / (1.0 + 6.0 * (z[0] - 0.7) * (z[0] - 0.7)) + z[1] * z[2] + intent * z[3] + 0.4 * z[4]
    graded = relevance + 1.5 * generosity - 0.7 + 0.4 * noise()
    labels = np.searchsorted((1.3, 2.1, 2.9, 3.7), graded, side="right")

    x = [z[i] + 0.2 * offset() for i in range(4)] + [50.0 * z[4] * np.abs(z[4]) + 50.0 * offset()]
    scales = (1.0, 1.0, 1.0, 1.0, 100.0)

    def copy(a: int, _: int) -> np.ndarray:
        return x[a] + 0.1 * scales[a] * noise()

    def mix(a: int, b: int) -> np.ndarray:
        return x[a] / scales[a] + x[b] / scales[b] + 0.3 * noise()

    def misleading(*_: int) -> np.ndarray:
        return 2.0 * (generosity + offset()) - 0.5 * z[4] + 0.5 * noise()

    def heavy(*_: int) -> np.ndarray:
        u = random.random_sample(len(places))
        return u / (1.001 - u)

    others = (copy, mix, lambda *_: noise() + offset(), heavy, misleading, copy, mix, lambda *_: np.ones(len(places)))
    x += [intent, generosity + offset(), misleading()]
    x += [others[i % 8](i % 5, (i + 2) % 5) for i in range(num_features - 8)]
    # Formatting one document at a time is much faster than one value at a time.
    line = "%d qid:q%d " + " ".join(f"{i}:%.4f" for i in range(1, num_features + 1)) + " #docid = q%d-d%03d\n"
    rows = zip(np.repeat(queries, lengths), places, labels, np.stack(x, axis=1).tolist(), strict=True)
    return (line % (label, query, *values, query, place) for query, place, label, values in rows)

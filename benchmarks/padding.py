"""Measures the fraction of padding with and without `group_by_length` of `read_letor`, and its effect on the order.

    python benchmarks/padding.py --output=padding.json

The list lengths resemble MSLR-WEB30K's: a gamma distribution with mean 120, standard deviation 75 and a first
percentile of 13, and one list of 1,251 documents. The lists are shuffled. 6,000 queries is the size of the training set
of an MSLR-WEB10K fold. No times are measured; the results are the same on every machine.

The script checks that each epoch contains every query once and that epochs have different orders. It prints the
correlation between the mean length of a batch and its position in the epoch, with the standard deviation expected for
random positions. It also prints the fraction of query pairs in a batch that are together again in the next epoch, which
is about the batch size divided by the number of queries without grouping.
"""

from __future__ import annotations

import collections
import math
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

import harness
import numpy as np
from absl import app, flags

from tfr_smooth import data

_QUERIES = flags.DEFINE_integer("queries", 6000, "Number of queries.", lower_bound=2)
_BATCH_SIZES = flags.DEFINE_list("batch_sizes", ["32", "64", "128"], "Queries per batch.")
_EPOCHS = flags.DEFINE_integer("epochs", 5, "Number of epochs.", lower_bound=2)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the lengths and of the orders.", lower_bound=0)

MEAN, DEVIATION, LONGEST = 120.0, 75.0, 1251


def some_lengths(queries: int, seed: int) -> np.ndarray:
    """The number of documents of each query."""
    random = np.random.RandomState(seed)
    drawn = random.gamma((MEAN / DEVIATION) ** 2, DEVIATION**2 / MEAN, queries)
    lengths = np.clip(drawn.round(), 1, LONGEST).astype(int)
    lengths[random.randint(queries)] = LONGEST
    return lengths


def write_file(path: pathlib.Path, lengths: np.ndarray) -> None:
    """Writes a LETOR file with two features; the id of a query is its number."""
    with open(path, "w", encoding="ascii") as file:
        for query, length in enumerate(lengths):
            file.write(f"1 qid:{query} 1:{query} 2:1\n" * length)


def epochs(path: pathlib.Path, batch_size: int, **kwargs: Any) -> Iterator[tuple[list[list[int]], float]]:
    """Yields the queries of each batch and the fraction of padding, per epoch."""
    for epoch in range(_EPOCHS.value):
        batches, places, documents = [], 0, 0
        lists = data.read_letor(path, cache_dir=path.parent / "cache")
        dataset = lists.batches(batch_size, shuffle=True, seed=_SEED.value, first_epoch=epoch, ids=True, **kwargs)
        for inputs, labels in dataset:
            batches.append([int(query) for query in inputs["query_id"].numpy()])
            places += labels.numpy().size
            documents += int(inputs["mask"].numpy().sum())
        yield batches, 1.0 - documents / places


def together_again(before: list[list[int]], batches: list[list[int]]) -> float:
    """The fraction of the query pairs in a batch that are in the same batch again."""
    batch_of = {query: number for number, batch in enumerate(batches) for query in batch}
    pairs = again = 0
    for batch in before:
        pairs += len(batch) * (len(batch) - 1)
        again += sum(count * (count - 1) for count in collections.Counter(batch_of[query] for query in batch).values())
    return again / pairs


def measure(path: pathlib.Path, lengths: np.ndarray, batch_size: int, grouped: bool) -> dict[str, Any]:
    padding, correlations, again, before = [], [], [], []
    for batches, share in epochs(path, batch_size, group_by_length=grouped):
        if sorted(sum(batches, [])) != list(range(len(lengths))):
            raise AssertionError("An epoch does not contain each query once.")
        if batches == before:
            raise AssertionError("Two epochs have the same order.")
        if before:
            again.append(together_again(before, batches))
        before = batches
        padding.append(share)
        means = [lengths[batch].mean() for batch in batches]
        correlations.append(np.corrcoef(means, np.arange(len(batches)))[0, 1])
    return {
        "batch_size": batch_size,
        "group_by_length": grouped,
        "batches": len(batches),
        "padding": float(np.mean(padding)),
        "most_padding_of_an_epoch": float(max(padding)),
        "correlation_of_length_and_place": float(np.mean(correlations)),
        "its_deviation_by_chance": 1.0 / math.sqrt(_EPOCHS.value * (len(batches) - 1)),
        "together_again": float(np.mean(again)),
    }


def table(results: list[dict[str, Any]]) -> str:
    rows = []
    for found in results:
        cells = [str(found["batch_size"]), "yes" if found["group_by_length"] else "no", str(found["batches"])]
        cells += [f"{100 * found[name]:.1f}%" for name in ("padding", "most_padding_of_an_epoch")]
        correlation, deviation = found["correlation_of_length_and_place"], found["its_deviation_by_chance"]
        rows.append([*cells, f"{correlation:+.2f} ± {deviation:.2f}", f"{100 * found['together_again']:.1f}%"])
    columns = ["batch size", "grouped", "batches", "padding", "at most", "length and place", "together again"]
    return harness.markdown(columns, rows, left=2)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    if any(2 * int(size) >= _QUERIES.value for size in _BATCH_SIZES.value):
        raise app.UsageError("--queries must be more than twice the batch size.")
    lengths = some_lengths(_QUERIES.value, _SEED.value)
    about = {
        "queries": len(lengths),
        "mean": float(lengths.mean()),
        "deviation": float(lengths.std()),
        "hundredth": float(np.quantile(lengths, 0.01)),
        "longest": int(lengths.max()),
    }
    print(f"Lengths: {about}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "lists.txt"
        write_file(path, lengths)
        results = []
        for batch_size in map(int, _BATCH_SIZES.value):
            for grouped in (False, True):
                results.append(measure(path, lengths, batch_size, grouped))
                print(results[-1], flush=True)
    print(f"\nMean over {_EPOCHS.value} epochs:\n\n{table(results)}")
    harness.write(results, lengths=about, epochs=_EPOCHS.value)


if __name__ == "__main__":
    app.run(main)

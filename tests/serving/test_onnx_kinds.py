"""ONNX Runtime returns the scores of the model for every kind of column that a file can have, alone and in pairs."""

import itertools

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from tfr_smooth import models, serving
from tfr_smooth.columns import Boolean, Category, Date, Id, Number, Statistic, TableFeatures, Vector

RANDOM = np.random.default_rng(0)
LISTS, DAY = 3, 86400


def words(*known):
    """Texts [LISTS, size], some of them missing or new."""
    return lambda size: RANDOM.choice(["", "new", *known], (LISTS, size))


def numbers(*shape, missing=0.2):
    return lambda size: np.where(
        RANDOM.random((LISTS, size, *shape)) < missing, np.nan, RANDOM.normal(size=(LISTS, size, *shape))
    ).astype(np.float32)


def statistic(name, *values):
    return Statistic(columns=(name,), values=values, means=[0.3] * len(values), counts=[9] * len(values))


# By kind: the column of a name, its statistics, and random values.
KINDS = {
    "number": (lambda name: Number(name=name, fill=0.5), numbers(missing=0.0)),
    "number with missing": (lambda name: Number(name=name, has_missing=True), numbers()),
    "boolean": (
        lambda name: Boolean(name=name, has_missing=True),
        lambda size: RANDOM.choice([0.0, 1.0, np.nan], (LISTS, size)).astype(np.float32),
    ),
    "date": (
        lambda name: Date(name=name, fill=19000.0, has_missing=True),
        lambda size: RANDOM.choice([Date.missing_value, 0, 19000 * DAY, 19001 * DAY + 61], (LISTS, size)),
    ),
    "category": (lambda name: Category(name=name, categories=("a", "é"), has_missing=True), words("a", "é")),
    # Statistics know more values than the column.
    "id": (lambda name: Id(name=name, categories=("7", "8"), has_missing=True), words("7", "8", "9", "9.0")),
    "vector": (lambda name: Vector(name=name, length=3, has_missing=True), numbers(3)),
}
ORDERED = ("number", "number with missing", "boolean", "date")
PAIRS = [(kind,) for kind in KINDS] + list(itertools.combinations_with_replacement(KINDS, 2))
# One column with ranks beside one of each other kind runs always; the others take minutes.
FAST = [("number", "id"), ("date", "category"), ("boolean", "vector"), ("number with missing",)]


def inputs_of(kinds, size):
    """Random values of the columns of these kinds in lists of a size."""
    return {f"{kind} {place}": KINDS[kind][1](size) for place, kind in enumerate(kinds)}


def model_of(kinds, ranks):
    """A model as of a default `Ranker`, but smaller, with random weights."""
    columns = [KINDS[kind][0](f"{kind} {place}") for place, kind in enumerate(kinds)]
    statistics = [statistic(column.name, "7", "9") for column in columns if column.kind == "id"]
    names = [column.name for kind, column in zip(kinds, columns, strict=True) if kind in ORDERED]
    layer = TableFeatures(columns, statistics=statistics, list_ranks=names if ranks else ())
    options = {"embeddings": layer.embeddings, "vectors": layer.vectors, "normalization": "quantiles", "members": 2}
    scorer = models.FeedForwardScorer(hidden=[8], seed=1, **options)
    scorer.build([None, None, layer.num_features])
    scorer.adapt([({"features": layer(inputs_of(kinds, 50))}, None)])
    return models.TableScorer(layer, scorer)


@pytest.mark.parametrize(
    ("kinds", "ranks"),
    [
        pytest.param(kinds, ranks, marks=[] if kinds in FAST and ranks else pytest.mark.slow, id=f"{kinds} {ranks}")
        for kinds in PAIRS
        for ranks in (True, False)[0 if set(kinds) & set(ORDERED) else 1 :]
    ],
)
def test_lists_of_any_length_have_the_scores_of_the_model(kinds, ranks, tmp_path):
    model = model_of(kinds, ranks)
    session = onnxruntime.InferenceSession(serving.export_onnx(model, tmp_path / "ranker.onnx"))
    for size in (1, 2, 50):
        inputs = inputs_of(kinds, size)
        for mask in (np.ones([LISTS, size], bool), np.arange(size) < np.array([[size], [1], [(size + 1) // 2]])):
            (scores,) = session.run(["scores"], {**inputs, "mask": mask})
            expected = model({**{name: tf.constant(of) for name, of in inputs.items()}, "mask": mask}).numpy()
            np.testing.assert_allclose(scores, np.where(mask, expected, models.PADDING_SCORE), rtol=1e-5, atol=1e-5)
    assert expected[mask].std() > 1e-3

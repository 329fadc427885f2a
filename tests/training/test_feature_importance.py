"""Permutation importance: the drops of rankers with known weights, the table and the plot."""

import numpy as np
import pytest
import tensorflow as tf
from matplotlib.image import imread

from tfr_smooth import data, metrics, models
from tfr_smooth.training import FeatureImportance, feature_importance, permutation_importance

WEIGHTS = np.array([0.5, 2.0, 0.0, 1.0], np.float32)


class Linear(tf.keras.Model):
    """A ranker with known weights."""

    def call(self, inputs, training=None):
        assert not training
        return tf.linalg.matvec(inputs["features"], WEIGHTS)


def a_dataset(lists=120, batch_size=50, longest=9):
    """Batches whose labels follow from the weighted sum; lists of 3 to `longest` documents."""
    random = np.random.RandomState(0)
    queries = np.repeat(np.arange(lists), random.randint(3, longest + 1, lists))
    features = random.randn(len(queries), 4).astype(np.float32)
    labels = np.clip(np.round(features @ WEIGHTS), 0, 4)
    return data.from_arrays(features, labels, queries).batches(batch_size)


def test_drops_are_sorted_and_follow_the_known_weights():
    importance = permutation_importance(Linear(), a_dataset(), names=["a", "b", "unused", "d"], repeats=4)
    assert list(importance.drops) == ["b", "d", "a", "unused"] == list(importance.means)
    has_relevant = np.concatenate([labels.numpy().max(axis=1) > 0.0 for _, labels in a_dataset()])
    assert importance.baseline == pytest.approx(has_relevant.mean())  # of a perfect ranking
    means, errors = importance.means, importance.standard_errors
    for better, worse in (("b", "d"), ("d", "a"), ("a", "unused")):
        assert means[better] - means[worse] > 3 * (errors[better] + errors[worse])


@pytest.mark.slow
def test_the_drops_of_an_unused_feature_are_exactly_0():
    assert permutation_importance(Linear(), a_dataset()).drops["3"].tolist() == [0.0] * 5
    # Also in a trained network, which multiplies it by 0.
    model = models.FeedForwardScorer(hidden=[8], normalization="log1p")
    model.compile("adam", "smoothi_ndcg")
    model.fit(a_dataset(), verbose=0)
    kernel = model.tower[1].kernel
    kernel.assign(tf.constant([[1.0], [1.0], [0.0], [1.0]]) * kernel)
    drops = permutation_importance(model, a_dataset()).drops
    assert drops["3"].tolist() == [0.0] * 5
    assert all((drops[name] != 0.0).any() for name in ("1", "2", "4"))


def test_the_drop_is_the_change_of_the_metric_with_a_shuffled_feature():
    """Computed by hand: over all documents of all lists, for any batches."""
    real = np.arange(5) < np.random.RandomState(0).randint(2, 6, [40, 1])
    queries, _ = np.nonzero(real)
    features = np.random.RandomState(1).randn(len(queries), 4).astype(np.float32)
    labels = np.clip(np.round(features @ WEIGHTS), 0, 4)

    def ndcg(scored):
        padded = np.full([2, *real.shape], -1.0, np.float32)
        padded[:, real] = labels, scored @ WEIGHTS
        return float(metrics.NDCGMetric(topn=3)(*padded))

    expected = {}
    for feature in range(4):
        random = np.random.default_rng([7, feature])
        drops = []
        for _ in range(3):
            shuffled = features.copy()
            shuffled[:, feature] = random.permutation(shuffled[:, feature])
            drops.append(ndcg(features) - ndcg(shuffled))
        expected[str(feature + 1)] = drops
    for batch_size in (7, 40):
        dataset = data.from_arrays(features, labels, queries).batches(batch_size)
        found = permutation_importance(Linear(), dataset, metrics.NDCGMetric(topn=3), repeats=3, seed=7)
        assert {name: pytest.approx(drops, abs=1e-6) for name, drops in expected.items()} == found.drops


def test_printed_names_stay_in_their_line():
    importance = FeatureImportance("ndcg", baseline=0.5, drops={"a\nb\x1b[31m": [0.1]})
    assert str(importance).splitlines()[1].split()[0] == r"a\nb\x1b[31m"


def test_standard_errors_and_the_printed_table():
    drops = {"long name": np.array([0.3, 0.1]), "x": np.array([0.0, 0.0])}
    importance = FeatureImportance("ndcg", 0.8, drops)
    assert importance.standard_errors == {"long name": pytest.approx(0.1), "x": 0.0}
    assert str(importance).splitlines() == [
        "feature    drop in ndcg from 0.8000",
        "long name   0.2000 ± 0.1000",
        "x           0.0000 ± 0.0000",
    ]
    once = FeatureImportance("ndcg", 0.8, {"x": np.array([0.1])})
    assert np.isnan(once.standard_errors["x"]) and str(once).endswith("\nx         0.1000")


def test_a_seed_determines_the_drops_and_progress_is_reported():
    calls = []
    runs = [
        permutation_importance(Linear(), a_dataset(), seed=seed, progress=lambda *call: calls.append(call))
        for seed in (0, 0, 1)
    ]
    same, other = ({name: drops.tolist() for name, drops in run.drops.items()} for run in runs[1:])
    assert {name: drops.tolist() for name, drops in runs[0].drops.items()} == same != other
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)] * 3


def test_features_with_the_same_name_are_shuffled_together():
    """The scores compare two equal columns: shuffled together, nothing changes."""
    column = np.random.default_rng(0).random([20, 5, 1], np.float32)
    dataset = [(np.concatenate([column, column, 1.0 - column], axis=2), np.tile([[1.0, 0.0, 0.0, 0.0, 0.0]], [20, 1]))]
    scorer = lambda features: features[:, :, 0] - features[:, :, 1] + 0.0 * features[:, :, 2]  # noqa: E731
    together = permutation_importance(scorer, dataset, names=["a", "a", "b"], repeats=3)
    assert list(together.drops) == ["a", "b"] and together.drops["a"].tolist() == [0.0, 0.0, 0.0]
    apart = permutation_importance(scorer, dataset, repeats=3)
    assert abs(apart.drops["1"]).min() > 0.0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"repeats": 0}, "`repeats` must be an integer >= 1, got 0."),
        ({"seed": -1}, "`seed` must be an integer >= 0, got -1."),
        ({"names": ["a", "b"]}, "`names` must be 4 names, got ['a', 'b']."),
        ({"dataset": []}, "`dataset` must contain at least one batch, got none."),
        (
            {"dataset": [({"x": 1}, [1])]},
            "`dataset` must have features [batch, list, num_features], got no `features`.",
        ),
        ({"dataset": [(tf.ones([2, 3]), 1)]}, "got shape (2, 3)."),
    ],
)
def test_bad_arguments_are_refused(arguments, problem):
    dataset = arguments.pop("dataset", None)
    with pytest.raises(ValueError) as raised:
        permutation_importance(Linear(), a_dataset(lists=3) if dataset is None else dataset, **arguments)
    assert problem in str(raised.value)


DROPS = {"c": [-0.1, -0.1], "a": [0.3, 0.5], "b": [0.1, 0.1]}


def test_the_most_important_features_are_on_top(monkeypatch, tmp_path):
    drawn = []
    draw = feature_importance.draw
    monkeypatch.setattr(feature_importance, "draw", lambda *arguments: drawn.append(draw(*arguments)) or drawn[-1])
    importance = FeatureImportance("ndcg@5", 0.8, DROPS)
    for top, names in ((20, ["a", "b", "c"]), (2, ["a", "b"])):
        importance.plot(tmp_path / "importance.png", top=top)
        (axes,) = drawn[-1].axes
        assert [label.get_text() for label in axes.get_yticklabels()] == names and axes.yaxis_inverted()
        assert [bar.get_width() for bar in axes.patches] == pytest.approx([np.mean(DROPS[name]) for name in names])
        assert "ndcg@5" in axes.get_xlabel()
        assert axes.get_title("left") == "Feature importance, mean and standard error of 2 repeats"
        (bars,) = axes.collections  # the error bars
        lengths = [segment[1][0] - segment[0][0] for segment in bars.get_segments()]
        assert lengths == pytest.approx([0.2, 0.0, 0.0][: len(names)])
    assert imread(tmp_path / "importance.png").ndim == 3
    with pytest.raises(ValueError, match="`top` must be an integer >= 1, got 0"):
        importance.plot(tmp_path / "other.png", top=0)
    assert [path.name for path in tmp_path.iterdir()] == ["importance.png"]


@pytest.mark.parametrize("drops", [{}, {"a": []}, {"a": [[1.0]]}, {"a": [1.0], "b": [1.0, 2.0]}])
def test_features_have_the_same_number_of_drops(drops):
    with pytest.raises(ValueError) as raised:
        FeatureImportance("ndcg", 0.8, drops)
    shapes = {name: np.shape(values) for name, values in drops.items()}
    assert str(raised.value).endswith(f"the same number of values for each feature, at least one, got shapes {shapes}.")

"""`tfr_smooth.Ranker` trained on several labels."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers
from tfr_smooth import _keras, data, evaluation, losses, metrics

SMALL = {"loss": "softmax", "hidden": [4], "epochs": 2, "batch_size": 16, "members": 1, "verbose": False}
LABELS = {"relevance": 1.0, "purchase": 0.3}


def table(queries=30, seed=0):
    """Documents whose labels depend on different features."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"query": np.repeat(np.arange(queries), 5)})
    frame["price"], frame["rating"] = random.normal(size=[2, len(frame)])
    frame["relevance"] = (frame["rating"] > 0.0) * 1 + (frame["rating"] > 1.0)
    frame["purchase"] = ((frame["price"] < -0.5) & (random.random(len(frame)) < 0.8)) * 1
    return frame


FRAME, NEW = table(), table(12, seed=1)
FEATURES = ["price", "rating"]


@pytest.fixture(scope="module")
def ranker():
    return tfr_smooth.Ranker(**SMALL).fit(FRAME, label=LABELS, query="query")


@pytest.mark.slow
def test_each_label_is_measured_also_after_a_file(ranker, tmp_path):
    found = ranker.evaluate(NEW, measures=["ndcg", "map"])
    assert list(found) == ["relevance/ndcg", "relevance/map", "purchase/ndcg", "purchase/map"]
    for label in LABELS:
        expected = evaluation.evaluate_rows(NEW[label], ranker.predict(NEW), NEW["query"], ["ndcg", "map"])
        assert {measure: found[f"{label}/{measure}"] for measure in expected} == expected
    weighted = (found["relevance/ndcg"].mean + 0.3 * found["purchase/ndcg"].mean) / 1.3
    assert ranker.score(NEW) == pytest.approx(weighted, rel=1e-12)
    np.testing.assert_array_equal(ranker.predict(NEW.drop(columns="purchase")), ranker.predict(NEW))
    ranker.save(tmp_path / "ranker.keras")
    again = tfr_smooth.Ranker.load(tmp_path / "ranker.keras")
    assert again.evaluate(NEW) == ranker.evaluate(NEW) and again.loss_.weights == [1.0, 0.3]


@pytest.mark.slow
def test_the_validation_metric_is_the_weighted_mean_over_labels():
    further_metrics = [metrics.MRRMetric()]
    options = {"query": "query", "validation": NEW, "further_metrics": further_metrics}
    ranker = tfr_smooth.Ranker(**{**SMALL, "loss": "approx_ndcg"}, patience=1).fit(FRAME, label=LABELS, **options)
    assert set(ranker.history_) == {"loss", "val_ndcg", "val_approx_ndcg", "val_mrr"}
    best = ranker.history_["val_ndcg"][ranker.best_epoch_ - 1]
    assert best == pytest.approx(ranker.score(NEW), rel=1e-5)
    assert ranker.history_["val_approx_ndcg"][ranker.best_epoch_ - 1] == max(ranker.history_["val_approx_ndcg"])
    assert isinstance(ranker.loss_, losses.MultiObjectiveLoss) and ranker.loss_.weights == [1.0, 0.3]


@pytest.mark.slow
def test_arrays_train_like_the_table(ranker):
    arrays = tfr_smooth.Ranker(**SMALL).fit(
        FRAME[FEATURES].to_numpy(), FRAME[list(LABELS)].to_numpy(), qid=FRAME["query"], label=LABELS
    )
    scores = arrays.predict(NEW[FEATURES].to_numpy(), qid=NEW["query"])
    np.testing.assert_allclose(scores, ranker.predict(NEW), rtol=1e-5, atol=1e-6)
    found = arrays.evaluate(NEW[FEATURES].to_numpy(), NEW[list(LABELS)].to_numpy(), qid=NEW["query"])
    assert found.keys() == ranker.evaluate(NEW).keys()
    given = tfr_smooth.Ranker(**SMALL).fit(FRAME, FRAME[list(LABELS)], label=LABELS, query="query")
    np.testing.assert_array_equal(given.predict(NEW), ranker.predict(NEW))


@pytest.mark.slow
def test_a_resumed_training_draws_the_same_labels(tmp_path, monkeypatch):
    still = {**SMALL, "dropout": 0.5 if _keras.IS_KERAS_3 else 0.0, "label_aggregation": "stochastic"}
    still |= {"schedule": "constant", "softmax_epochs": 0}
    firsts = []
    draw = data.draw_labels

    def recorded(dataset, weights, **options):
        firsts.append(options["first_batch"])
        return draw(dataset, weights, **options)

    monkeypatch.setattr(data, "draw_labels", recorded)

    def fit(epochs, folder, **changes):
        ranker = tfr_smooth.Ranker(**{**still, "epochs": epochs})
        return ranker.fit(FRAME, **{"label": LABELS, "query": "query", "checkpoint_dir": tmp_path / folder, **changes})

    fit(1, "interrupted")
    resumed, whole = fit(3, "interrupted"), fit(3, "whole")
    assert firsts.count(2) == 1  # batches in the first epoch: 24 queries
    assert resumed.history_ == {name: pytest.approx(values, rel=1e-5) for name, values in whole.history_.items()}
    for message, change in {
        r"label_weights=\[1.0, 0.5\] .was \[1.0, 0.3\]": {"label": {"relevance": 1.0, "purchase": 0.5}},
        "validation='[0-9a-f]{16}' .was None": {"validation": NEW},
    }.items():
        with pytest.raises(ValueError, match=message):
            fit(3, "whole", **change)


def fit_with(frame=FRAME, y=None, label=None, **options):
    return lambda: tfr_smooth.Ranker(**{**SMALL, **options}).fit(frame, y, label=label, query="query")


def test_bad_arguments_are_named():
    cases = [
        (fit_with(label={"relevance": 1.0, "clicks": 1.0}), "got 'clicks'"),
        (fit_with(label={"relevance": 1.0, "purchase": -1.0}), "`label['purchase']` must be "),
        (fit_with(y=FRAME["relevance"], label=LABELS), "`y` must have one value per row and label, shape (150, 2)"),
        (fit_with(label=LABELS, loss=tf.keras.losses.MeanSquaredError()), "`loss` must be a `losses.RankingLoss`"),
        (fit_with(label=LABELS, label_aggregation="mean"), "`label_aggregation` must be one of 'sum', 'stochastic'"),
    ]
    helpers.assert_refused(cases)

"""The loss of a training that starts on softmax: weights, gradients, and the model that its checkpoints hold."""

import itertools

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests.helpers import assert_same, checks, value_and_gradient
from tests.helpers.modes import quick_or_slow
from tfr_smooth import losses, training

LABELS, SCORES = checks.SUBJECTS["softmax"].batch
RANDOM = np.random.RandomState(2)
WEIGHTS = {
    "none": None,
    "lists": np.float32([1.0, 0.0, 2.0, 0.5, 3.0]),
    "documents": RANDOM.randint(1, 4, LABELS.shape).astype(np.float32),
}


def each(name, reduction="none"):
    seed = {"seed": 3} if "seed" in losses.hyperparameters(name) else {}
    return checks.SUBJECTS[name].make(reduction=reduction, **seed)


# One of each kind of weights: of documents, pairs, labels, lists, and with noise.
@quick_or_slow(["mean_squared", "rank_net", "softmax", "smoothi_ndcg", "yeti_logistic"], quick=["rank_net"])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_each_stage_has_the_value_and_the_gradient_of_its_loss(name, weights):
    for is_first, reduction in itertools.product([True, False], ["none", "mean_with_sample_weight"]):
        loss = training.SoftmaxFirstLoss(each(name, reduction), is_first=is_first)
        found = []
        for one in (loss, losses.SoftmaxLoss(reduction=reduction) if is_first else loss.loss):
            tf.random.set_seed(0)
            found.append(value_and_gradient(one, LABELS, SCORES, weights))
        assert_same(*found, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["rank_net", "list_net"])
def test_stages_switch_in_a_graph_and_take_all_weights(name):
    for weights in WEIGHTS.values():
        loss = training.SoftmaxFirstLoss(each(name, "sum"))
        traced = tf.function(lambda loss=loss, weights=weights: loss(LABELS, SCORES, weights))
        for current in (losses.SoftmaxLoss(reduction="sum"), loss.loss):
            loss.is_first.assign(current is not loss.loss)
            np.testing.assert_allclose(traced(), current(LABELS, SCORES, weights), rtol=1e-6)


def test_documents_of_weight_0_are_padding_of_the_first_stage():
    loss = training.SoftmaxFirstLoss(each("mean_squared"))
    weights = np.where(RANDOM.rand(*LABELS.shape) < 0.4, 0.0, WEIGHTS["documents"])
    wrong = np.where(weights == 0.0, RANDOM.choice([0.0, 9.0, 1e9], LABELS.shape), LABELS)
    found = value_and_gradient(loss, wrong.astype(np.float32), SCORES, weights)
    absent = np.where(weights == 0.0, -1.0, LABELS)
    assert_same(found, value_and_gradient(losses.SoftmaxLoss(reduction="none"), absent, SCORES, weights), rtol=1e-6)


def noisy(wrong=None, seed=0, queries=200):
    """Returns lists of 6 documents, of which a fourth is marked, and has a wrong label and the weight 0."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame({"query": np.repeat(np.arange(queries), 6), "a": random.normal(size=6 * queries)})
    marked = random.random(len(table)) < 0.24
    label = (table["a"] + 0.3 * random.normal(size=len(table)) > 0.5).astype(float)
    table = table.assign(marked=marked.astype(float), label=label, weight=1.0 - marked)
    return table.assign(label=label.mask(marked, wrong)) if wrong is not None else table


# Weights of documents and of pairs. Not losses of which a document of weight 0 is a part: the terms of others depend on
# it, as in TF-Ranking.
@pytest.mark.slow
@pytest.mark.parametrize(("name", "softmax_epochs"), [("mean_squared", 2 / 3), ("rank_net", 0), ("lambda_loss", 0)])
def test_documents_of_weight_0_with_wrong_labels_do_no_harm(name, softmax_epochs):
    options = {"members": 1, "hidden": [8], "epochs": 12, "learning_rate": 0.02, "trees": False, "verbose": False}
    ranker = tfr_smooth.Ranker(loss=name, softmax_epochs=softmax_epochs, **options)
    ranker.fit(noisy(wrong=3.0), label="label", query="query", weight="weight")
    assert ranker.score(noisy(seed=1).drop(columns="weight")) > 0.79  # .816 without these documents


def test_the_best_model_of_a_checkpoint_folder_has_the_stage(tmp_path):
    options = {"members": 1, "hidden": [2], "epochs": 2, "select_by": "last", "verbose": False}
    ranker = tfr_smooth.Ranker(loss=losses.SmoothINDCGLoss(alpha=2.0), softmax_epochs=1, **options)
    parts = {"validation": noisy(seed=1, queries=20), "checkpoint_dir": tmp_path}
    ranker.fit(noisy(queries=20), label="label", query="query", weight="weight", **parts)
    loss = tf.keras.models.load_model(tmp_path / "best.keras").loss
    assert not loss.is_first and repr(loss.loss).startswith("SmoothINDCGLoss(alpha=2.0, ")


def test_the_config_has_the_loss_and_the_stage():
    loss = training.SoftmaxFirstLoss(losses.RankNetLoss(sigma=2.0, name="mine", reduction="sum"))
    loss.is_first.assign(False)
    again = tf.keras.losses.deserialize(tf.keras.losses.serialize(loss))
    assert repr(again) == repr(loss) and not again.is_first and again.loss.get_config() == loss.loss.get_config()
    assert (again.name, again.reduction, again.shift_invariant) == ("mine", "sum", True)
    with pytest.raises(ValueError, match="`is_first` must be"):
        training.SoftmaxFirstLoss(loss.loss, is_first=2)


@pytest.mark.parametrize(("softmax_epochs", "verbose", "lines"), [(1, True, 1), (1, False, 0), (3, True, 0)])
def test_a_line_tells_where_the_values_of_the_loss_change(softmax_epochs, verbose, lines, capsys):
    features, labels, queries = np.arange(24.0).reshape(12, 2) % 7, np.arange(12) % 2, np.arange(12) // 4
    options = {"hidden": [4], "members": 1, "epochs": 3, "trees": False, "verbose": verbose}
    ranker = tfr_smooth.Ranker(softmax_epochs=softmax_epochs, **options)
    ranker.fit(features, labels, qid=queries)
    line = "From this epoch on, the loss is smoothi_ndcg_loss; before, it was softmax\n"
    printed = capsys.readouterr().out
    assert printed.count(line) == printed.count(line + "Epoch 2 of 3") == lines

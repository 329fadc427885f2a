"""Properties of every named loss, checked by the functions in `tests/helpers/checks.py`."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, assert_same, checks, pad, references, value_and_gradient
from tests.helpers.facts import BASELINES, COMBINATIONS, RELAXATIONS
from tests.helpers.modes import COVERING, quick_or_slow
from tfr_smooth import losses, rankings

MULTI_SCORE = ("click_em", "dual_learning", "mixture_em", "ordinal")
SLOW = ("yeti_logistic", "gumbel_approx_ndcg", "pl_rank_ndcg", "approx_spearman")
FAST = [name for name in COVERING if name in BASELINES or name.startswith(("softsort", "approx"))]


def checks_of(subject):
    return checks.COMMON_CHECKS + (checks.METRIC_CHECKS if subject.measure else ())


@quick_or_slow(COVERING, quick={*FAST} - {*SLOW})
def test_registered_loss(name):
    subject = checks.SUBJECTS[name]
    for check in checks_of(subject):
        print(check.__name__)  # shown if it fails
        fails = (name, check) in checks.EXPECTED_FAILURES
        with pytest.raises(AssertionError) if fails else contextlib.nullcontext():
            check(subject)


def test_every_named_loss_is_made_and_described():
    """What takes milliseconds is checked for all names."""
    for name, subject in checks.SUBJECTS.items():
        print(name)  # shown if it fails
        assert set(subject.changed) == set(subject.hyperparameters)
        assert all(subject.changed[key] != default for key, default in subject.hyperparameters.items())
        checks.check_config(subject)
        checks.check_invalid_arguments(subject)
    known = {(name, check) for name, subject in checks.SUBJECTS.items() for check in checks_of(subject)}
    assert known >= checks.EXPECTED_FAILURES


def a_model(loss):
    tf.keras.utils.set_random_seed(0)  # From some initial weights, the gradient of some losses vanishes.
    inputs = tf.keras.Input((8, 2))
    outputs = tf.keras.layers.Reshape((8,))(tf.keras.layers.Dense(1)(inputs))
    model = tf.keras.Model(inputs, outputs)
    model.compile(optimizer=tf.keras.optimizers.Adam(0.05), loss=loss, jit_compile=False)
    labels, scores = a_batch(batch=8, length=8)
    return model, np.stack([labels * 0.3 + scores, scores], axis=-1).astype(np.float32), labels


@quick_or_slow(["softsort_err", "smoothi_map", "list_ap", "yeti_logistic"], quick=())
def test_fit_lowers_the_loss_and_a_keras_file_restores_it(name, tmp_path):
    subject = checks.SUBJECTS[name]
    model, features, labels = a_model(subject.loss())
    weights = np.ones(8, np.float32)
    history = model.fit(features, labels, sample_weight=weights, epochs=12, batch_size=8, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    loss = subject.make(**subject.changed)
    model, features, labels = a_model(loss)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.loss) is type(loss) and loaded.loss.get_config() == loss.get_config()
    np.testing.assert_array_equal(loaded(features), model(features))
    loaded.fit(features, labels, batch_size=8, verbose=0)


# ---- The base class, tested on a custom loss and one loss of each kind.


class Deviation(losses.RankingLoss):
    """A custom loss: the sum over documents of the label times the squared score."""

    def compute(self, labels, scores, mask):
        return tf.reduce_sum(labels * tf.square(scores), axis=1)


BASE = {
    "custom": checks.Subject("custom", Deviation, {}, {}, reference=lambda y, s: (np.asarray(y) * np.square(s)).sum()),
    "softsort_ndcg": checks.SUBJECTS["softsort_ndcg"],
    "list_net": checks.SUBJECTS["list_net"],
}
every_base = pytest.mark.parametrize("name", BASE)


@every_base
def test_base_class(name):
    for check in checks.BASE_CLASS_CHECKS:
        check(BASE[name])


def test_custom_losses_receive_clean_lists_and_must_define_compute():
    for check in (checks.check_padding, checks.check_nan, checks.check_skipped_lists):
        check(BASE["custom"])
    with pytest.raises(TypeError, match="must override `compute"):

        class OverridesCall(losses.RankingLoss):
            def call(self, y_true, y_pred):
                return y_pred

    with pytest.raises(NotImplementedError, match="RankingLoss does not define `compute`"):
        losses.RankingLoss()(*a_batch())


@every_base
def test_document_weights_are_averaged_like_in_tf_ranking(name):
    labels, scores = BASE[name].batch
    weights = np.random.RandomState(2).rand(*labels.shape).astype(np.float32)
    of_lists = (weights * labels).sum(axis=1) / labels.sum(axis=1)
    expected = BASE[name].each()(labels, scores, of_lists)
    found = BASE[name].each()(pad(labels, 2, -1.0), pad(scores, 2, 0.0), pad(weights, 2, np.nan))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@every_base
def test_half_precision_is_computed_in_float32_float64_in_float64_and_labels_may_have_any_type(name):
    (labels, scores), loss = BASE[name].batch, BASE[name].each()
    for dtype in (tf.float16, tf.bfloat16):
        half = tf.cast(scores, dtype)
        value, gradient = value_and_gradient(loss, labels, half)
        expected = value_and_gradient(loss, labels, tf.cast(half, tf.float32))
        assert value.dtype == np.float32 and gradient.dtype == dtype.as_numpy_dtype
        np.testing.assert_array_equal(value, expected[0])
        np.testing.assert_allclose(gradient.astype(np.float32), expected[1], rtol=1e-2, atol=1e-3)
    value, gradient = value_and_gradient(loss, labels, scores.astype(np.float64))
    assert value.dtype == gradient.dtype == np.float64
    np.testing.assert_allclose(value, BASE[name].expected[0], rtol=2e-6, atol=1e-6)
    for dtype in (np.int32, np.int8, np.float64):
        assert_same(value_and_gradient(loss, labels.astype(dtype), scores), BASE[name].expected)


@every_base
def test_ragged_lists_equal_padded_lists(name):
    labels, scores = BASE[name].batch
    lengths = [6, 1, 4, 5, 3]
    ragged = [tf.RaggedTensor.from_tensor(tf.constant(array), lengths=lengths) for array in (labels, scores)]
    mask = np.arange(6) < np.array(lengths)[:, None]
    expected = BASE[name].each()(np.where(mask, labels, -1.0).astype("f"), scores)
    loss = BASE[name].each(ragged=True)
    np.testing.assert_allclose(loss(*ragged), expected, rtol=1e-6)
    np.testing.assert_allclose(loss(tf.cast(ragged[0], tf.int32), ragged[1]), expected, rtol=1e-6)
    np.testing.assert_allclose(tf.function(lambda *batch: loss(*batch))(*ragged), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="`ragged` must be True for labels or scores in a tf.RaggedTensor"):
        BASE[name].loss()(*ragged)
    with pytest.raises(ValueError, match="`labels` must be a tf.RaggedTensor for `ragged=True`"):
        loss(labels, scores)


def test_invalid_shapes_raise():
    of_labels, of_weights = "`labels` must have the shape of the scores, ", "`sample_weight` must have the shape "
    for labels, scores, weights, message in (
        ([2, 3], [2, 4], None, of_labels + r"\(2, 4\), got \(2, 3\)"),
        ([2, 3], [2, 3, 2], None, r"`scores` must have the shape \[batch, list\] or .*, got \(2, 3, 2\)"),
        ([3], [3], None, r"`scores` must have the shape \[batch, list\] or \[batch, list, 1\], got \(3,\)"),
        ([2, 3], [2, 3], [3], of_weights + r"\[batch\], \[batch, 1\] or \[batch, list\]"),
        ([2, 3], [2, 3], [2, 2], of_weights),
    ):
        weights = None if weights is None else tf.ones(weights)
        for run in (Deviation(), tf.function(Deviation().__call__)):
            with pytest.raises(ValueError, match=message):
                run(tf.ones(labels), tf.ones(scores), weights)
    with pytest.raises(ValueError, match="`scores` must be floats, got int32"):
        Deviation()(tf.ones([2, 3]), tf.ones([2, 3], tf.int32))
    with pytest.raises(ValueError, match="`labels` must be numbers, got string"):
        Deviation()(tf.constant([["1", "0"]]), tf.ones([1, 2]))


# ---- The table.


def test_the_table_contains_every_public_loss():
    public = {
        value for value in vars(losses).values() if isinstance(value, type) and issubclass(value, losses.RankingLoss)
    }
    of_parts = {losses.GumbelLoss, losses.PLRankLoss, losses.WeightedSumLoss, losses.MultiObjectiveLoss}
    assert public - of_parts == {losses.RankingLoss, losses.MeasureLoss, *losses.LOSSES.values()}
    assert {*losses.NAMES, *MULTI_SCORE} == {*COMBINATIONS, *losses.LOSSES}


def test_the_table_describes_the_constructor():
    for name in losses.NAMES:
        print(name)  # shown if it fails
        loss = losses.get(name)
        config = loss.get_config()
        assert config["name"].replace("_", "") == name.removesuffix("_loss").replace("_", "") + "loss"
        assert (config["reduction"], config["ragged"]) == ("sum_over_batch_size", False)
        defaults = losses.hyperparameters(name)
        assert {**checks.arguments_in(config), **defaults} == checks.arguments_in(config)
        for key, values in RELAXATIONS[name.split("_")[0]].searched.items() if name in COMBINATIONS else ():
            for value in values:  # Values searched in papers are valid.
                assert checks.arguments_in(losses.get(name, **{key: value}).get_config())[key] == value
        again = losses.get(tf.keras.losses.serialize(loss))
        assert type(again) is type(loss) and again.get_config() == config
        assert losses.get(again) is again
        if type(loss) is not losses.MeasureLoss:
            assert losses.get(type(loss).__name__).get_config() == config


def test_an_unknown_name_raises():
    assert losses.get(None) is None
    for bad in (3, {"class_name": "Other", "config": {}}):
        with pytest.raises(ValueError):
            losses.get(bad)
    for bad, near in (("smothi_ndcg", "smoothi_ndcg"), ("lambdarank", "lambda_loss"), ("Softmax", "softmax")):
        with pytest.raises(ValueError, match=f"got '{bad}'. Did you mean '{near}'"):
            losses.get(bad)
    with pytest.raises(ValueError, match=f"must be one of 'approx_.* and {len(losses.NAMES) - 10} others, got 'zzz'"):
        losses.hyperparameters("zzz")
    with pytest.raises(ValueError, match="`arguments` must be empty unless `identifier` is a name"):
        losses.get(losses.get("list_net"), temperature=2.0)


def test_every_ranking_and_baseline_has_a_reference():
    assert {*references.RANKINGS} == {*rankings.RANKINGS} == {*RELAXATIONS}
    assert {*references.BASELINES} == {*BASELINES}

"""Properties of every named loss, checked by the functions in `tests/helpers/checks.py`."""

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import GRAPH_MODES, a_batch, checks, in_graph, pad, references, value_and_gradient
from tests.helpers.facts import BASELINES, COMBINATIONS, RELAXATIONS
from tests.helpers.modes import ONE_OF_EACH, SAMPLE, quick_or_slow
from tfr_smooth import _keras, losses, rankings

MULTI_SCORE = ("click_em", "dual_learning", "mixture_em", "ordinal")
# The rankings have tests of their own in tests/rankings.
FAST = {*ONE_OF_EACH, *SAMPLE} - {name for name in COMBINATIONS if not name.startswith(("softsort", "approx"))}
OF_RANKINGS = (checks.check_reference, checks.check_gradient)


def cases():
    found = []
    for name, subject in checks.SUBJECTS.items():
        for check in checks.COMMON_CHECKS + (checks.METRIC_CHECKS if subject.measure else ()):
            if check is checks.check_reference and subject.reference is None:
                continue  # test_every_ranking_and_baseline_has_a_reference names it
            reason = checks.EXPECTED_FAILURES.get((name, check))
            marks = [] if reason is None else [pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)]
            in_short = name in ONE_OF_EACH or name.startswith(("approx", "smoothi_map"))
            if name not in FAST and not (check in OF_RANKINGS and in_short):
                marks.append(pytest.mark.slow)
            found.append(pytest.param(name, check, id=f"{name}-{check.__name__.removeprefix('check_')}", marks=marks))
    return found


@pytest.mark.parametrize(("name", "check"), cases())
def test_registered_loss(name, check):
    check(checks.SUBJECTS[name])


def test_every_expected_failure_names_an_existing_loss_and_check():
    known = {(case.values[0], case.values[1]) for case in cases()}
    assert set(checks.EXPECTED_FAILURES) <= known


def test_every_hyperparameter_has_a_changed_value():
    for name in losses.NAMES:
        subject = checks.SUBJECTS[name]
        assert set(subject.changed) == set(subject.hyperparameters)
        assert all(subject.changed[key] != default for key, default in subject.hyperparameters.items()), name


def a_model(loss):
    tf.keras.utils.set_random_seed(0)  # From some initial weights, the gradient of some losses vanishes.
    inputs = tf.keras.Input((8, 2))
    outputs = tf.keras.layers.Reshape((8,))(tf.keras.layers.Dense(1)(inputs))
    model = tf.keras.Model(inputs, outputs)
    model.compile(optimizer=tf.keras.optimizers.Adam(0.05), loss=loss, jit_compile=False)
    labels, scores = a_batch(batch=8, length=8)
    return model, np.stack([labels * 0.3 + scores, scores], axis=-1).astype(np.float32), labels


@quick_or_slow(losses.NAMES, quick=())  # tests/losses/test_keras_contract.py fits
def test_fit_lowers_the_loss(name):
    model, features, labels = a_model(checks.SUBJECTS[name].loss())
    weights = np.ones(8, np.float32)
    history = model.fit(features, labels, sample_weight=weights, epochs=12, batch_size=8, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]


@quick_or_slow(losses.NAMES, quick=())  # tests/losses/test_keras_users.py restores a loss
def test_a_keras_file_restores_the_loss(name, tmp_path):
    subject = checks.SUBJECTS[name]
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
@pytest.mark.parametrize("check", checks.BASE_CLASS_CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_base_class(name, check):
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
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_half_precision_scores_are_computed_in_float32(name, dtype):
    labels, scores = BASE[name].batch
    half = tf.cast(scores, dtype)
    value, gradient = value_and_gradient(BASE[name].each(), labels, half)
    expected = value_and_gradient(BASE[name].each(), labels, tf.cast(half, tf.float32))
    assert value.dtype == np.float32 and gradient.dtype == dtype.as_numpy_dtype
    np.testing.assert_array_equal(value, expected[0])
    np.testing.assert_allclose(gradient.astype(np.float32), expected[1], rtol=1e-2, atol=1e-3)


@every_base
def test_float64_scores_are_computed_in_float64(name):
    labels, scores = BASE[name].batch
    value, gradient = value_and_gradient(BASE[name].each(), labels, scores.astype(np.float64))
    assert value.dtype == gradient.dtype == np.float64
    np.testing.assert_allclose(value, BASE[name].expected[0], rtol=2e-6, atol=1e-6)


@every_base
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64, np.int8])
def test_labels_may_have_any_dtype(name, dtype):
    labels, scores = BASE[name].batch
    found = value_and_gradient(BASE[name].each(), labels.astype(dtype), scores)
    np.testing.assert_array_equal(found[0], BASE[name].expected[0])
    np.testing.assert_array_equal(found[1], BASE[name].expected[1])


@pytest.mark.parametrize("name", ["custom", "list_net"])
@pytest.mark.parametrize("mode", [None, "unknown shapes", "xla"])
def test_weights_and_reduction_in_graphs_equal_eager(name, mode):
    labels, scores = BASE[name].batch
    weights = np.array([1.0, 0.0, 2.0, 0.5, 3.0], np.float32)
    run = value_and_gradient if mode is None else in_graph
    found = run(BASE[name].loss(), labels, scores, weights, **GRAPH_MODES.get(mode, {}))
    np.testing.assert_allclose(found[0], (weights * BASE[name].expected[0]).mean(), rtol=1e-6)
    expected = weights[:, None] * BASE[name].expected[1] / 5.0
    np.testing.assert_allclose(found[1], expected, rtol=1e-5, atol=1e-6)


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


@pytest.mark.parametrize(
    ("labels", "scores", "weights", "message"),
    [
        ([2, 3], [2, 4], None, r"`labels` must have the shape of the scores, \(2, 4\), got \(2, 3\)"),
        ([2, 3], [2, 3, 2], None, r"`scores` must have the shape \[batch, list\] or .*, got \(2, 3, 2\)"),
        ([2], [2, 3], None, r"`labels` must have the shape of the scores, \(2, 3\), got \(2,\)"),
        ([3], [3], None, r"`scores` must have the shape \[batch, list\] or \[batch, list, 1\], got \(3,\)"),
        ([2, 3], [2, 3], [3], r"`sample_weight` must have the shape \[batch\], \[batch, 1\] or \[batch, list\]"),
        ([2, 3], [2, 3], [2, 2], r"`sample_weight` must have the shape"),
        ([2, 3], [2, 3], [2, 3, 2], r"`sample_weight` must have the shape"),
    ],
)
def test_invalid_shapes_raise(labels, scores, weights, message):
    weights = None if weights is None else tf.ones(weights)
    for run in (Deviation(), tf.function(Deviation().__call__)):
        with pytest.raises(ValueError, match=message):
            run(tf.ones(labels), tf.ones(scores), weights)
    with pytest.raises(ValueError, match="`scores` must be floats, got int32"):
        Deviation()(tf.ones([2, 3]), tf.ones([2, 3], tf.int32))
    with pytest.raises(ValueError, match="`labels` must be numbers, got string"):
        Deviation()(tf.constant([["1", "0"]]), tf.ones([1, 2]))


class Replica:
    """The context of one of two replicas, which knows the sums of the other."""

    num_replicas_in_sync = 2

    def __init__(self, other):
        self.other = other

    def all_reduce(self, _, tensors):
        return [tensor + other for tensor, other in zip(tensors, self.other, strict=True)]


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "mean_with_sample_weight"])
def test_replicas_have_the_gradient_and_the_value_of_one_device(reduction, monkeypatch):
    labels, scores = a_batch(length=6)
    weights = np.float32([1.0, 2.0, 0.5, 3.0, 1.0])
    loss = losses.ListNetLoss(reduction=reduction)
    value, gradient = value_and_gradient(loss, labels, scores, weights)
    each = losses.ListNetLoss(reduction="none")(labels, scores, weights).numpy()
    shares = weights if reduction == "mean_with_sample_weight" else np.ones_like(weights)
    parts, found, slopes = [slice(0, 2), slice(2, 5)], [], []
    for part, other in (parts, parts[::-1]):
        replica = Replica([each[other].sum(), shares[other].sum()])
        monkeypatch.setattr(tf.distribute, "get_replica_context", lambda replica=replica: replica)
        one = value_and_gradient(loss, labels[part], scores[part], weights[part])
        found.append(one[0])
        slopes.append(one[1])
    # Keras 3 adds values and gradients of replicas; Keras 2 divides both by the number of replicas in its loop.
    replicas = 1 if _keras.IS_KERAS_3 else 2
    np.testing.assert_allclose(np.concatenate(slopes), replicas * gradient, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found, [replicas * value / 2] * 2, rtol=1e-5)


# ---- The table.


def test_the_table_contains_every_public_loss():
    public = {
        value for value in vars(losses).values() if isinstance(value, type) and issubclass(value, losses.RankingLoss)
    }
    of_parts = {losses.GumbelLoss, losses.PLRankLoss, losses.WeightedSumLoss, losses.MultiObjectiveLoss}
    assert public - of_parts == {losses.RankingLoss, losses.MeasureLoss, *losses.LOSSES.values()}
    assert {*losses.NAMES, *MULTI_SCORE} == {*COMBINATIONS, *losses.LOSSES}


@pytest.mark.parametrize("name", losses.NAMES)
def test_the_table_describes_the_constructor(name):
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


def test_a_loss_in_a_file_of_any_name_is_found(tmp_path, monkeypatch):
    program = (
        "from tfr_smooth import losses\n@losses.LOSSES.register('toy')\nclass ToyLoss(losses.ListNetLoss):\n    pass\n"
    )
    (tmp_path / "z_last.py").write_text(program, encoding="utf-8")
    monkeypatch.setattr(losses, "__path__", [*losses.__path__, str(tmp_path)])
    try:
        assert "toy" in losses.table.names.__wrapped__() and losses.get("toy").name == "toy_loss"
    finally:
        losses.LOSSES.pop("toy", None)


def test_an_unknown_name_raises():
    assert losses.get(None) is None
    for bad in ("ndgc", 3, {"class_name": "Other", "config": {}}):
        with pytest.raises(ValueError):
            losses.get(bad)
    for bad, near in (("smothi_ndcg", "smoothi_ndcg"), ("lambdarank", "lambda_loss"), ("Softmax", "softmax")):
        with pytest.raises(ValueError, match=f"got '{bad}'. Did you mean '{near}'"):
            losses.get(bad)
    with pytest.raises(ValueError, match=f"must be one of 'approx_.* and {len(losses.NAMES) - 10} others, got 'zzz'"):
        losses.hyperparameters("zzz")
    with pytest.raises(ValueError, match="`identifier` must be one of 'lambda_loss', 'approx_.* and .* others, got"):
        losses.get("lambdarank")
    with pytest.raises(ValueError, match="`arguments` must be empty unless `identifier` is a name"):
        losses.get(losses.get("list_net"), temperature=2.0)


def test_every_ranking_and_baseline_has_a_reference():
    assert {*references.RANKINGS} == {*rankings.RANKINGS} == {*RELAXATIONS}
    assert {*references.BASELINES} == {*BASELINES}

"""What is true of every metric that has a name."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import losses, metrics

NAMES = sorted(metrics.NAMES)
every_metric = pytest.mark.parametrize("name", NAMES)


def a_batch(seed=0, batch=6, length=9):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, (batch, length)).astype(np.float32)
    labels[:, 0] = 2.0
    return labels, random.randn(batch, length).astype(np.float32)


def value(metric, *args):
    metric.reset_state()
    metric.update_state(*args)
    return float(metric.result())


@every_metric
def test_the_mean_does_not_depend_on_the_batches(name):
    labels, scores = a_batch(batch=7)
    metric = metrics.get(name)
    whole = value(metric, labels, scores)
    metric.reset_state()
    for rows in (slice(0, 1), slice(1, 5), slice(5, 7)):
        metric.update_state(labels[rows], scores[rows])
    assert 0.0 < whole < 1.1
    np.testing.assert_allclose(float(metric.result()), whole, rtol=1e-7)


@every_metric
def test_zero_before_any_list_and_after_reset(name):
    metric = metrics.get(name)
    assert float(metric.result()) == 0.0
    assert value(metric, *a_batch()) > 0.0
    metric.reset_state()
    assert float(metric.result()) == 0.0


@every_metric
@pytest.mark.parametrize("padding", [np.nan, 1e30, -np.inf])
def test_padding_reaches_nothing(name, padding):
    labels, scores = a_batch()
    more = [(0, 0), (0, 3)]
    padded = np.pad(labels, more, constant_values=-1), np.pad(scores, more, constant_values=padding)
    metric = metrics.get(name)
    np.testing.assert_allclose(value(metric, *padded), value(metric, labels, scores), rtol=1e-6)


@every_metric
def test_lists_of_padding_never_count(name):
    labels, scores = a_batch()
    metric = metrics.get(name)
    expected = value(metric, labels, scores)
    labels, scores = np.vstack([labels, -np.ones((3, 9), "f")]), np.vstack([scores, np.full((3, 9), np.nan, "f")])
    np.testing.assert_allclose(value(metric, labels, scores), expected, rtol=1e-7)


@every_metric
def test_lists_without_a_relevant_document_count_as_the_argument_says(name):
    labels, scores = a_batch()
    expected = value(metrics.get(name), labels, scores)
    labels, scores = np.vstack([labels, np.zeros((2, 9), "f")]), np.vstack([scores, scores[:2]])
    np.testing.assert_allclose(value(metrics.get(name, no_relevant="skip"), labels, scores), expected, rtol=1e-6)
    np.testing.assert_allclose(
        value(metrics.get(name, no_relevant="zero"), labels, scores), expected * 6 / 8, rtol=1e-6
    )


@every_metric
def test_nan_in_a_real_score_is_nan(name):
    labels, scores = a_batch()
    scores[2, 2] = np.nan
    assert np.isnan(value(metrics.get(name), labels, scores))


@every_metric
def test_permuting_lists_changes_nothing(name):
    labels, scores = a_batch()
    order = np.random.RandomState(1).permutation(9)
    metric = metrics.get(name)
    np.testing.assert_allclose(
        value(metric, labels[:, order], scores[:, order]), value(metric, labels, scores), rtol=1e-6
    )


@every_metric
def test_weights(name):
    labels, scores = a_batch()
    metric = metrics.get(name)
    each = np.array([value(metric, labels[i : i + 1], scores[i : i + 1]) for i in range(6)])
    weights = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 1.0], np.float32)
    expected = (weights * each).sum() / weights.sum()
    for given in (weights, weights[:, None], np.repeat(weights[:, None], 9, axis=1)):
        np.testing.assert_allclose(value(metric, labels, scores, given), expected, rtol=1e-6)


@every_metric
def test_ragged_equals_padded(name):
    labels, scores = a_batch()
    lengths = np.array([9, 1, 4, 7, 3, 2])
    ragged = [tf.RaggedTensor.from_tensor(tf.constant(x), lengths=lengths) for x in (labels, scores)]
    padded = np.where(np.arange(9) < lengths[:, None], labels, -1.0).astype(np.float32)
    np.testing.assert_allclose(
        value(metrics.get(name, ragged=True), *ragged), value(metrics.get(name), padded, scores), rtol=1e-6
    )


@every_metric
@pytest.mark.parametrize("jit", [False, True])
def test_same_in_a_graph_and_under_xla(name, jit):
    labels, scores = a_batch()
    metric = metrics.get(name)
    expected = value(metric, labels, scores)
    metric.reset_state()

    @tf.function(jit_compile=jit)
    def update(labels, scores):
        metric.update_state(labels, scores)

    update(tf.constant(labels), tf.constant(scores))
    np.testing.assert_allclose(float(metric.result()), expected, rtol=1e-6)


@every_metric
def test_config_round_trip(name):
    metric = metrics.get(name, name="mine", no_relevant="skip")
    config = metric.get_config()
    again = type(metric).from_config(config)
    assert again.get_config() == config and again.name == "mine"
    restored = tf.keras.metrics.deserialize(tf.keras.metrics.serialize(metric))
    assert type(restored) is type(metric) and restored.get_config() == config


@every_metric
def test_constructor_arguments_are_keyword_only_and_in_the_config(name):
    parameters = list(inspect.signature(type(metrics.get(name)).__init__).parameters.values())[1:]
    assert {p.name for p in parameters} - {"dtype"} == set(metrics.get(name).get_config())
    if name in metrics.TABLE:
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters)


@every_metric
def test_in_compile_fit_evaluate_and_a_keras_file(name, tmp_path):
    labels, scores = a_batch(batch=8)
    features = np.stack([scores, -scores], axis=-1)
    inputs = tf.keras.Input((9, 2))
    outputs = tf.keras.layers.Reshape((9,))(tf.keras.layers.Dense(1)(inputs))
    model = tf.keras.Model(inputs, outputs)
    metric = metrics.get(name)
    model.compile(optimizer="sgd", loss="mse", metrics=[metric])
    history = model.fit(features, labels, epochs=1, validation_data=(features, labels), batch_size=3, verbose=0)
    assert f"val_{metric.name}" in history.history
    figures = model.evaluate(features, labels, batch_size=3, verbose=0, return_dict=True)
    expected = value(metrics.get(name), labels, model.predict(features, verbose=0))
    np.testing.assert_allclose(figures[metric.name], expected, rtol=1e-6)
    path = str(tmp_path / "model.keras")
    model.save(path)
    loaded = tf.keras.models.load_model(path)
    figures = loaded.evaluate(features, labels, batch_size=3, verbose=0, return_dict=True)
    np.testing.assert_allclose(figures[metric.name], expected, rtol=1e-6)


@every_metric
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"no_relevant": "nan"}, "`no_relevant` must be one of 'zero', 'skip', got 'nan'."),
        ({"ragged": "no"}, "`ragged` must be True or False, got 'no'."),
    ],
)
def test_bad_arguments_are_named(name, arguments, message):
    with pytest.raises(ValueError) as error:
        metrics.get(name, **arguments)
    assert str(error.value) == message


@pytest.mark.parametrize("name", [name for name in NAMES if name in losses.NAMES])
def test_a_smooth_metric_is_one_minus_its_loss(name):
    labels, scores = a_batch()
    labels[2] = 0.0
    hyperparameters = losses.hyperparameters(name)
    metric = metrics.get(name, **hyperparameters)
    np.testing.assert_allclose(value(metric, labels, scores), 1.0 - losses.get(name)(labels, scores), rtol=1e-5)
    assert metric.name == name
    for key, default in hyperparameters.items():
        assert metric.get_config().get(key, default) == default
    with pytest.raises(TypeError, match="reduction"):
        metrics.get(name, reduction="sum")
    with pytest.raises(TypeError, match="steepness"):
        metrics.get(name, steepness=1.0)


def test_names_tell_the_cut_off():
    assert metrics.NDCGMetric().name == "ndcg"
    assert metrics.NDCGMetric(topn=5).name == "ndcg_5"
    assert metrics.PrecisionMetric(topn=1).name == "precision_1"
    assert metrics.MRRMetric(topn=5).name == "mrr_5"
    assert metrics.ERRMetric().name == "err"


def test_the_table_has_every_public_metric_and_every_loss_of_a_metric():
    public = {c for c in vars(metrics).values() if isinstance(c, type) and issubclass(c, metrics.MeanOverLists)}
    assert public - {metrics.MeanOverLists, metrics.SmoothMetric} == set(metrics.TABLE.values())
    smooth = {name for name, entry in losses.TABLE.items() if issubclass(entry.loss, losses.MetricLoss)}
    assert {name for name, metric in metrics.TABLE.items() if issubclass(metric, metrics.SmoothMetric)} == smooth
    assert set(losses.NAMES) - set(losses.TABLE) <= set(NAMES)

"""What is true of every loss that has a name."""

import numpy as np
import pytest
import tensorflow as tf

from tests import references
from tfr_smooth import losses

NAMES = sorted(losses.NAMES)
every_loss = pytest.mark.parametrize("name", NAMES)

# What is honestly not true of a loss, and why.
EXCEPTIONS = {
    **{
        name: {"ties": "the distance of two scores has a kink where they are the same; its slope there is taken as 0"}
        for name in NAMES
        if name.startswith("softsort_")
    },
    "lambda_loss": {"differences": "the weights of the pairs are held constant"},
    "mean_squared": {
        "shift": "a score is compared with its label, not with other scores",
        "ties": "the same",
        "irrelevant": "also a list without a relevant document says what its scores should be: 0",
        "overflow": "the square of 1e30 is more than float32 holds",
    },
}


def is_true_of(name, what):
    return what not in EXCEPTIONS.get(name, {})


every_loss_of_differences = pytest.mark.parametrize("name", [name for name in NAMES if is_true_of(name, "shift")])

# Where the defaults say nothing about the short lists here: P@10 of nine documents is what it is in any order.
ARGUMENTS = {name: {"topn": 3} for name in NAMES if name.endswith("_precision")}
# Nor where positions are compared sharply: the gradient of the comparison is next to 0.
for compared in ("fastsort_precision", "sinkhorn_precision", "sinkhorn_map"):
    ARGUMENTS.setdefault(compared, {})["beta"] = 1.0


def get(name, /, **kwargs):
    return losses.get(name, **{**ARGUMENTS.get(name, {}), **kwargs})


def a_batch(seed=0, batch=5, length=9):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, (batch, length)).astype(np.float32)
    labels[:, 0] = 2.0
    return labels, random.randn(batch, length).astype(np.float32)


def value_and_gradient(loss, labels, scores, sample_weight=None):
    scores = tf.convert_to_tensor(scores)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = loss(tf.convert_to_tensor(labels), scores, sample_weight)
    return value.numpy(), tape.gradient(value, scores).numpy()


def in_a_graph(loss, labels, scores, sample_weight=None, **kwargs):
    """Value and gradient from a `tf.function` with these arguments."""

    @tf.function(**kwargs)
    def step(labels, scores):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            value = loss(labels, scores, sample_weight)
        return value, tape.gradient(value, scores)

    return step(tf.constant(labels), tf.constant(scores))


def pad(array, columns, value):
    return np.pad(array, [(0, 0), (0, columns)], constant_values=value)


@every_loss
def test_defaults_follow_tf_rankings_habits(name):
    config = get(name).get_config()
    assert config["reduction"] == "sum_over_batch_size"
    assert config["ragged"] is False
    assert config["name"] == name.removesuffix("_loss") + "_loss"


@every_loss
def test_float32_in_and_out(name):
    value, gradient = value_and_gradient(get(name), *a_batch())
    assert value.dtype == np.float32 and value.shape == ()
    assert gradient.dtype == np.float32
    assert np.isfinite(value) and np.isfinite(gradient).all() and np.abs(gradient).max() > 1e-4


@every_loss
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_half_precision_scores_are_computed_in_float32(name, dtype):
    labels, scores = a_batch()
    half = tf.cast(scores, dtype)
    value, gradient = value_and_gradient(get(name), labels, half)
    expected, expected_gradient = value_and_gradient(get(name), labels, tf.cast(half, tf.float32))
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert gradient.dtype == dtype.as_numpy_dtype
    np.testing.assert_allclose(gradient.astype(np.float32), expected_gradient, atol=1e-2)


@every_loss
def test_float64_scores_give_float64(name):
    labels, scores = a_batch()
    value, gradient = value_and_gradient(get(name), labels, scores.astype(np.float64))
    expected, expected_gradient = value_and_gradient(get(name), labels, scores)
    assert value.dtype == np.float64 and gradient.dtype == np.float64
    np.testing.assert_allclose(value, expected, rtol=2e-6)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-6)


@every_loss
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_labels_of_any_type(name, dtype):
    labels, scores = a_batch()
    expected = value_and_gradient(get(name), labels, scores)
    found = value_and_gradient(get(name), labels.astype(dtype), scores)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


@every_loss
@pytest.mark.parametrize("padding", [np.nan, 1e30, -1e30, np.inf, 0.0])
def test_padding_reaches_nothing(name, padding):
    labels, scores = a_batch()
    expected, expected_gradient = value_and_gradient(get(name), labels, scores)
    value, gradient = value_and_gradient(get(name), pad(labels, 3, -1.0), pad(scores, 3, padding))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient[:, :-3], expected_gradient, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(gradient[:, -3:], 0.0)


@every_loss
def test_padding_between_documents_reaches_nothing(name):
    labels, scores = a_batch()
    expected, expected_gradient = value_and_gradient(get(name), labels, scores)
    labels, scores = np.insert(labels, [0, 4, 4], -1.0, axis=1), np.insert(scores, [0, 4, 4], 7.0, axis=1)
    value, gradient = value_and_gradient(get(name), labels, scores)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(np.delete(gradient, [0, 5, 6], axis=1), expected_gradient, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "empty"), [(n, e) for n in NAMES for e in (0.0, -1.0) if e < 0.0 or is_true_of(n, "irrelevant")]
)
def test_lists_without_relevant_documents_change_nothing(name, empty):
    labels, scores = a_batch()
    expected, expected_gradient = value_and_gradient(get(name), labels, scores)
    more = np.concatenate([np.full((2, 9), empty, np.float32), labels])
    value, gradient = value_and_gradient(get(name), more, np.concatenate([scores[:2] * 3, scores]))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_array_equal(gradient[:2], 0.0)
    np.testing.assert_allclose(gradient[2:], expected_gradient, rtol=1e-5, atol=1e-8)
    each = get(name, reduction="none")(more, np.concatenate([scores[:2], scores])).numpy()
    np.testing.assert_array_equal(each[:2], 0.0)
    assert (each[2:] != 0.0).any()


@every_loss
@pytest.mark.parametrize(
    ("labels", "scores"),
    [
        (np.zeros((2, 4)), np.ones((2, 4))),  # no relevant document
        (-np.ones((2, 4)), np.full((2, 4), np.nan)),  # all padding
        (np.ones((2, 1)), np.ones((2, 1))),  # one document
        (np.array([[2, 0, 1, 0.0]]), np.full((1, 4), 3.0)),  # ties
        (np.array([[2, 0, 1, 0.0]]), np.array([[1e30, -1e30, 0, 1e30]])),  # huge
        (np.array([[2, 0, 1, 0.0]]), np.array([[-1e30, -1e30, -1e30, -1e30]])),
        (np.array([[2, 0, 1, 0.0]]), np.array([[1e-30, -1e-38, 0, 1e-20]])),  # tiny
        (np.zeros((0, 4)), np.zeros((0, 4))),  # no lists
    ],
    ids=["irrelevant", "padding", "one", "ties", "huge", "all-low", "tiny", "empty"],
)
def test_finite_on_edge_cases(name, labels, scores):
    value, gradient = value_and_gradient(get(name), labels.astype(np.float32), scores.astype(np.float32))
    assert np.isfinite(value) or (np.isposinf(value) and not is_true_of(name, "overflow"))
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("name", [name for name in NAMES if is_true_of(name, "ties")])
def test_ties_have_a_gradient_that_tells_labels_apart(name):
    _, gradient = value_and_gradient(get(name), np.array([[2.0, 0.0, 0.0, 0.0]], np.float32), np.zeros((1, 4), "f"))
    assert gradient[0, 0] < -1e-3
    np.testing.assert_allclose(gradient[0, 1:], -gradient[0, 0] / 3, rtol=1e-5)


@every_loss
def test_nan_in_a_real_score_is_nan(name):
    labels, scores = a_batch()
    scores[1, 3] = np.nan
    assert np.isnan(get(name)(labels, scores).numpy())
    loss = get(name, reduction="none")
    np.testing.assert_array_equal(np.isnan(loss(labels, scores)), [False, True, False, False, False])

    # With the gradient, as XLA compiles the value alone in another way.
    for found in in_a_graph(loss, labels, scores, jit_compile=True):
        np.testing.assert_array_equal(np.isnan(found.numpy().reshape(5, -1)).any(axis=1), np.arange(5) == 1)


@every_loss
def test_permuting_lists_permutes_the_gradient(name):
    labels, scores = a_batch()
    scores[:, 1] = scores[:, 2]
    order = np.random.RandomState(1).permutation(9)
    expected, expected_gradient = value_and_gradient(get(name), labels, scores)
    value, gradient = value_and_gradient(get(name), labels[:, order], scores[:, order])
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient, expected_gradient[:, order], rtol=1e-4, atol=1e-7)


@every_loss_of_differences
def test_a_shift_of_the_scores_changes_nothing(name):
    labels, scores = a_batch()
    scores = np.round(scores * 64) / 64  # so that the shift is exact
    expected, expected_gradient = value_and_gradient(get(name), labels, scores)
    value, gradient = value_and_gradient(get(name), labels, scores + 8.0)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-6)


# With these the gradient is that of the value: SmoothI's default holds the products of Eq. 9 constant, and Sinkhorn
# stops where the error is under a threshold.
OF_THE_VALUE = {"smoothi": {"stop_gradient": False}, "sinkhorn": {"threshold": 1e-12}}


@pytest.mark.parametrize("name", [name for name in NAMES if is_true_of(name, "differences")])
def test_the_gradient_equals_finite_differences(name):
    loss = get(name, reduction="sum", **OF_THE_VALUE.get(name.split("_")[0], {}))
    labels, scores = a_batch(batch=2, length=6)
    labels[0, 3] = -1.0
    scores = scores.astype(np.float64)
    _, gradient = value_and_gradient(loss, labels, scores)
    for row in range(2):
        expected = references.central_differences(
            lambda s, row=row: float(loss(labels[row : row + 1], s[None])), scores[row], step=1e-5
        )
        np.testing.assert_allclose(gradient[row], expected, rtol=1e-5, atol=1e-8)


@every_loss
def test_reductions(name):
    labels, scores = a_batch()
    labels[2] = 0.0
    each = get(name, reduction="none")(labels, scores).numpy()
    assert each.shape == (5,)
    np.testing.assert_allclose(get(name, reduction="sum")(labels, scores), each.sum(), rtol=1e-6)
    counted = 4 if is_true_of(name, "irrelevant") else 5
    np.testing.assert_allclose(get(name)(labels, scores), each.sum() / counted, rtol=1e-6)
    np.testing.assert_array_equal(get(name).call(tf.constant(labels), tf.constant(scores)), each)


@every_loss
@pytest.mark.parametrize("form", ["list", "column", "document"])
def test_weights(name, form):
    labels, scores = a_batch()
    each = get(name, reduction="none")(labels, scores).numpy()
    weights = np.array([1.0, 0.0, 2.0, 0.5, 3.0], np.float32)
    given = {"list": weights, "column": weights[:, None], "document": np.repeat(weights[:, None], 9, axis=1)}[form]
    weighted = get(name, reduction="none")(labels, scores, given).numpy()
    np.testing.assert_allclose(weighted, weights * each, rtol=1e-6)
    np.testing.assert_allclose(get(name)(labels, scores, given), (weights * each).sum() / 5, rtol=1e-6)


@every_loss
def test_document_weights_follow_tf_rankings_rule(name):
    labels, scores = a_batch()
    weights = np.random.RandomState(2).rand(5, 9).astype(np.float32)
    of_lists = (weights * labels).sum(axis=1) / labels.sum(axis=1)
    expected = get(name, reduction="none")(labels, scores, of_lists)
    padded = get(name, reduction="none")(pad(labels, 2, -1.0), pad(scores, 2, 0.0), pad(weights, 2, np.nan))
    np.testing.assert_allclose(padded, expected, rtol=1e-5)


@every_loss
def test_ragged_equals_padded(name):
    labels, scores = a_batch()
    lengths = [9, 1, 4, 7, 3]
    ragged_labels = tf.ragged.constant([list(row[:n]) for row, n in zip(labels, lengths, strict=True)])
    ragged_scores = tf.ragged.constant([list(row[:n]) for row, n in zip(scores, lengths, strict=True)])
    mask = np.arange(9) < np.array(lengths)[:, None]
    expected = get(name)(np.where(mask, labels, -1.0).astype("f"), scores)
    np.testing.assert_allclose(get(name, ragged=True)(ragged_labels, ragged_scores), expected, rtol=1e-6)
    integers = tf.cast(ragged_labels, tf.int32)
    np.testing.assert_allclose(get(name, ragged=True)(integers, ragged_scores), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="`ragged` must be True for labels and scores in a tf.RaggedTensor"):
        get(name)(ragged_labels, ragged_scores)
    with pytest.raises(ValueError, match="`ragged=True` needs labels in a tf.RaggedTensor"):
        get(name, ragged=True)(labels, scores)


@every_loss
@pytest.mark.parametrize("mode", ["graph", "xla", "unknown shapes"])
def test_same_in_a_graph_and_under_xla(name, mode):
    labels, scores = pad(a_batch()[0], 2, -1.0), pad(a_batch()[1], 2, np.nan)
    loss = get(name)

    signature = [tf.TensorSpec([None, None], tf.float32)] * 2 if mode == "unknown shapes" else None
    value, gradient = in_a_graph(loss, labels, scores, jit_compile=mode == "xla", input_signature=signature)
    expected, expected_gradient = value_and_gradient(loss, labels, scores)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-5, atol=1e-5 * np.abs(expected_gradient).max())


@every_loss
def test_config_round_trip(name):
    loss = get(name, reduction="sum", name="mine", ragged=True)
    config = loss.get_config()
    again = type(loss).from_config(config)
    assert again.get_config() == config
    serialized = tf.keras.losses.serialize(loss)
    restored = tf.keras.losses.deserialize(serialized)
    assert type(restored) is type(loss) and restored.get_config() == config


@every_loss
def test_every_constructor_argument_is_in_the_config_and_keyword_only(name):
    import inspect

    parameters = list(inspect.signature(type(get(name)).__init__).parameters.values())[1:]
    assert {p.name for p in parameters} == set(get(name).get_config())
    if name in losses.TABLE:
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters)


@every_loss
def test_trains_in_compile_and_fit_and_survives_a_keras_file(name, tmp_path):
    tf.keras.utils.set_random_seed(0)  # a start where some losses are flat would say nothing
    labels, scores = a_batch(batch=8)
    features = np.stack([labels * 0.3 + scores, scores], axis=-1).astype(np.float32)
    inputs = tf.keras.Input((9, 2))
    outputs = tf.keras.layers.Reshape((9,))(tf.keras.layers.Dense(1)(inputs))
    model = tf.keras.Model(inputs, outputs)
    model.compile(optimizer=tf.keras.optimizers.Adam(0.05), loss=get(name))
    history = model.fit(features, labels, sample_weight=np.ones(8, "f"), epochs=12, batch_size=8, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    path = str(tmp_path / "model.keras")
    model.save(path)
    loaded = tf.keras.models.load_model(path)
    np.testing.assert_allclose(loaded.predict(features, verbose=0), model.predict(features, verbose=0), rtol=1e-6)
    np.testing.assert_allclose(
        loaded.evaluate(features, labels, verbose=0), model.evaluate(features, labels, verbose=0), rtol=1e-6
    )


@every_loss
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reduction": "mean"}, "`reduction` must be one of 'sum_over_batch_size', 'sum', 'none', got 'mean'."),
        ({"ragged": None}, "`ragged` must be True or False, got None."),
    ],
)
def test_bad_arguments_are_named(name, arguments, message):
    with pytest.raises(ValueError) as error:
        get(name, **arguments)
    assert str(error.value) == message


@every_loss
@pytest.mark.parametrize(
    ("labels", "scores", "weights", "message"),
    [
        ([2, 3], [2, 4], None, r"`labels` must have the shape of the scores, \(2, 4\), got \(2, 3\)"),
        ([2, 3], [2, 3, 1], None, r"`scores` must have the shape \[batch, list\], got \(2, 3, 1\)"),
        ([3], [3], None, r"`scores` must have the shape \[batch, list\], got \(3,\)"),
        ([2, 3], [2, 3], [3], r"`sample_weight` must have the shape \[batch\], \[batch, 1\] or \[batch, list\]"),
        ([2, 3], [2, 3], [2, 2], r"`sample_weight` must have the shape"),
        ([2, 3], [2, 3], [2, 3, 1], r"`sample_weight` must have the shape"),
    ],
)
def test_bad_shapes_are_named(name, labels, scores, weights, message):
    weights = None if weights is None else tf.ones(weights)
    for run in (get(name), tf.function(get(name).__call__)):
        with pytest.raises(ValueError, match=message):
            run(tf.ones(labels), tf.ones(scores), weights)


def test_the_table_has_every_public_loss():
    public = {c for c in vars(losses).values() if isinstance(c, type) and issubclass(c, losses.RankingLoss)}
    in_table = [entry.loss for entry in losses.TABLE.values()]
    assert public - {losses.RankingLoss, losses.MetricLoss} == set(in_table)
    assert len(set(in_table)) == len(in_table)
    assert set(losses.TABLE) <= set(NAMES)


@pytest.mark.parametrize("name", sorted(losses.TABLE))
def test_the_tables_hyperparameters_are_the_constructors(name):
    entry = losses.TABLE[name]
    config = losses.get(name).get_config()
    assert entry.defaults == {key: config[key] for key in config if key not in ("ragged", "name", "reduction")}
    assert losses.hyperparameters(name) == entry.defaults
    assert set(entry.searched) <= set(entry.defaults)
    for key, values in entry.searched.items():
        assert values
        for value in values:  # What a paper searched is in the range that is allowed.
            assert losses.get(name, **{key: value}).get_config()[key] == value
    assert entry.equation and entry.time and entry.memory


@pytest.mark.parametrize("name", [name for name in NAMES if name not in losses.TABLE])
def test_a_pair_without_a_class_is_a_metric_loss(name):
    loss = losses.get(name)
    assert type(loss) is losses.MetricLoss
    arguments = losses.hyperparameters(name)
    assert losses.get(name, **arguments).get_config() == loss.get_config()
    for key, value in arguments.items():
        assert (getattr(loss.ranking, key, None) or getattr(loss.metric, key, None)) == value
    with pytest.raises(TypeError, match="steepness"):
        losses.get(name, steepness=1.0)


def test_every_ranking_goes_with_every_metric_by_name():
    rankings = ("smoothi", "approx", "soft", "neuralsort", "softsort", "fastsort", "sinkhorn")
    metrics = ("ndcg", "precision", "map", "mrr", "err")
    assert {f"{ranking}_{metric}" for ranking in rankings for metric in metrics} <= set(NAMES)


def test_unknown_name():
    with pytest.raises(ValueError, match="`name` must be one of 'smoothi_ndcg'.*, got 'ndgc'"):
        losses.get("ndgc")
    with pytest.raises(ValueError, match="`name` must be one of 'smoothi_ndcg'.*, got 'ndgc'"):
        losses.hyperparameters("ndgc")

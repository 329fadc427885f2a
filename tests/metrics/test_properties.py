"""Properties of every named metric."""

import functools
import inspect
import json

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers import a_batch, checks, pad, references
from tests.helpers import metric_value as value
from tests.helpers.facts import COMBINATIONS, RELAXATIONS
from tests.helpers.modes import UNKNOWN, quick_or_slow
from tfr_smooth import _serialization, measures, metrics, rankings

EXACT = (*measures.MEASURES, *measures.EXACT_ONLY)
# Cutoffs for which the order of six documents matters, of metrics with larger default cutoffs.
TOPN = {"hits": 1, **dict.fromkeys(("precision", "recall", "precision_ia"), 3)}
UNBOUNDED = ("dcg", "alpha_dcg", "arp")
# Every exact metric, one smooth metric by indicators and one by positions.
COVERING = (*EXACT, "softsort_map", "approx_ndcg")
covering = pytest.mark.parametrize("name", COVERING)


def get(name, **arguments):
    """Returns the metric, with a cutoff for which the order of six documents matters."""
    return metrics.get(name, **({"topn": TOPN[name]} if name in TOPN else {}), **arguments)


def own_weights(name, labels):
    """Returns the weight of each list in the mean, without sample weights."""
    return np.array([references.weight_of_list(name, row[row >= 0.0]) for row in labels])


@tf.keras.utils.register_keras_serializable(package="tests")
def labels_plus_one(labels):
    return labels + 1.0


@tf.keras.utils.register_keras_serializable(package="tests")
def reciprocals(ranks):
    return 1.0 / ranks


FUNCTIONS = {"gain_fn": labels_plus_one, "rank_discount_fn": reciprocals}


def changed_arguments(name):
    """Returns a non-default value for every hyperparameter."""
    hyperparameters = metrics.hyperparameters(name)
    searched = RELAXATIONS[name.split("_")[0]].searched if name in COMBINATIONS else {}
    others = {**FUNCTIONS, **({"alpha": 0.3, "seed": 7} if name == "alpha_dcg" else {})}
    others = {key: value for key, value in others.items() if key in hyperparameters}
    return {**checks.changed({key: hyperparameters[key] for key in {*hyperparameters} - {*others}}, searched), **others}


# ---- Values.


@pytest.mark.parametrize("name", EXACT)
def test_exact_values_equal_the_reference_also_with_ties(name):
    hyperparameters = metrics.hyperparameters(name)
    labels, scores = checks.lists_of((8, 6, 5, 3, 2, 1), lambda random, length: random.randint(0, 4, length))
    cutoffs = [{"topn": topn} for topn in (1, 3, 10)] if "topn" in hyperparameters else []
    for arguments in ({}, *cutoffs, changed_arguments(name)):
        metric = metrics.get(name, **arguments)
        found = [value(metric, labels[row : row + 1], scores[row : row + 1]) for row in range(len(labels))]
        of_list = functools.partial(references.exact_metric, name, **{**hyperparameters, **arguments})
        expected = checks.by_list(labels, scores, of_list)
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=str(arguments))
        expected = np.average(expected, weights=own_weights(name, labels))
        np.testing.assert_allclose(value(metric, labels, scores), expected, rtol=1e-6)


@quick_or_slow(["softsort_map", "approx_ndcg", "approx_spearman", "soft_err", "smoothi_ndcg"], quick=["softsort_map"])
def test_a_smooth_metric_is_one_minus_its_loss(name):
    subject = checks.SUBJECTS[name]
    labels, scores = subject.batch
    labels = np.vstack([labels, np.zeros((1, 6), "f")])
    scores = np.vstack([scores, scores[:1]])
    metric, loss = metrics.get(name), subject.loss()
    soft = {key: checks.arguments_in(loss.get_config())[key] for key in subject.hyperparameters}
    assert metric.name == name
    assert {key: checks.arguments_in(metric.get_config())[key] for key in soft} == dict(subject.hyperparameters)
    found = value(metrics.get(name, no_relevant="skip", **soft), labels, scores)
    np.testing.assert_allclose(found, 1.0 - subject.expected[0].mean(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.keras_2 if n == "ndcg" else ()) for n in COVERING])
def test_the_result_is_the_weighted_mean_over_lists_of_all_batches(name):
    labels, scores = a_batch(batch=6, length=6)
    metric = get(name)
    each = np.array([value(metric, labels[i : i + 1], scores[i : i + 1]) for i in range(6)])
    own = own_weights(name, labels)
    mean = np.average(each, weights=own)
    lowest = -1.0 if name in references.CORRELATIONS else 0.0
    assert lowest < mean < (20.0 if name in UNBOUNDED else 1.1) and abs(mean) > 1e-3
    np.testing.assert_allclose(value(metric, labels, scores), mean, rtol=1e-6)
    metric.reset_state()
    for rows in (slice(0, 1), slice(1, 5), slice(5, 6)):
        metric.update_state(labels[rows], scores[rows])
    np.testing.assert_allclose(float(metric.result()), mean, rtol=1e-6)
    weights = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 1.0], np.float32)
    for given in (weights, weights[:, None], np.repeat(weights[:, None], 6, axis=1)):
        mean = np.average(each, weights=weights * own)
        np.testing.assert_allclose(value(metric, labels, scores, given), mean, rtol=1e-6)
    of_documents = np.random.RandomState(2).rand(6, 6).astype(np.float32)
    of_lists = (of_documents * labels).sum(axis=1) / labels.sum(axis=1)  # also for binary relevance
    mean = np.average(each, weights=of_lists * own)
    np.testing.assert_allclose(value(metric, labels, scores, of_documents), mean, rtol=1e-6)


@covering
def test_padding_lists_are_skipped_and_no_relevant_selects_skip_or_zero(name):
    labels, scores = a_batch(length=6)
    expected = value(get(name), labels, scores)
    of_padding = np.full((1, 6), -1.0, np.float32), np.full((1, 6), np.nan, np.float32)
    labels, scores = np.vstack([labels, of_padding[0]]), np.vstack([scores, of_padding[1]])
    weights = np.array([1.0] * 5 + [np.nan], np.float32)
    np.testing.assert_allclose(value(get(name), labels, scores, weights), expected, rtol=1e-6)
    labels, scores = np.vstack([labels, np.zeros((1, 6), "f")]), np.vstack([scores, scores[:1]])
    np.testing.assert_allclose(value(get(name, no_relevant="skip"), labels, scores), expected, rtol=1e-6)
    own = own_weights(name, labels)
    zero = np.average([expected, 0.0], weights=[own[:5].sum(), own[6]])
    np.testing.assert_allclose(value(get(name, no_relevant="zero"), labels, scores), zero, rtol=1e-6)
    assert get(name).get_config()["no_relevant"] == "zero"


@covering
def test_padding_and_permutation_change_nothing_and_nan_propagates(name):
    labels, scores = a_batch(length=6)
    metric = get(name)
    expected = value(metric, labels, scores)
    for junk in (np.nan, 1e30, -np.inf):
        np.testing.assert_allclose(value(metric, pad(labels, 2, -1.0), pad(scores, 2, junk)), expected, rtol=1e-6)
    order = np.random.RandomState(1).permutation(6)
    np.testing.assert_allclose(value(metric, labels[:, order], scores[:, order]), expected, rtol=1e-6)
    for array, bad in ((labels, np.nan), (labels, np.inf), (scores, np.nan)):
        array[2, 2], kept = bad, array[2, 2]
        assert np.isnan(value(metric, labels, scores))
        array[2, 2] = kept
    labels[2], labels[2, 2] = 0.0, np.nan
    assert np.isnan(value(get(name, no_relevant="skip"), labels, scores))


@pytest.mark.keras_2
def test_scores_may_have_any_float_dtype_and_results_have_that_of_the_metric():
    labels, scores = a_batch(length=6)
    expected = value(metrics.NDCGMetric(), labels, scores)
    for dtype in ("float16", "float32", "float64"):
        np.testing.assert_allclose(value(metrics.NDCGMetric(), labels.astype(int), scores.astype(dtype)), expected)
        metric = metrics.NDCGMetric(dtype=dtype)
        metric.update_state(labels, scores)
        assert tf.convert_to_tensor(metric.result()).dtype == metric.get_config()["dtype"] == dtype
        np.testing.assert_allclose(float(metric.result()), expected, rtol=1e-3)


@covering
def test_graphs_compute_the_same(name):
    labels, scores = a_batch(length=6)
    metric = get(name)
    expected = value(metric, labels, scores)
    for options in ({}, {"jit_compile": True, "input_signature": UNKNOWN}):
        metric.reset_state()
        update = tf.function(lambda *batch: metric.update_state(*batch), **options)
        update(tf.constant(pad(labels, 2, -1.0)), tf.constant(pad(scores, 2, np.nan)))
        np.testing.assert_allclose(float(metric.result()), expected, rtol=1e-6)


@pytest.mark.keras_2
def test_fit_evaluate_and_a_restored_keras_file_report_the_metric(tmp_path, name="softsort_map"):
    labels, scores = a_batch(batch=8, length=6)
    features = np.stack([scores, -scores], axis=-1)
    inputs = tf.keras.Input((6, 2))
    outputs = tf.keras.layers.Reshape((6,))(tf.keras.layers.Dense(1)(inputs))
    model = tf.keras.Model(inputs, outputs)
    metric = get(name)
    model.compile(optimizer="sgd", loss="mse", metrics=[metric], jit_compile=False)
    history = model.fit(features, labels, epochs=1, validation_data=(features, labels), batch_size=3, verbose=0)
    assert f"val_{metric.name}" in history.history
    expected = value(get(name), labels, model.predict(features, verbose=0))
    model.save(tmp_path / "model.keras")
    for each in (model, tf.keras.models.load_model(tmp_path / "model.keras")):
        values = each.evaluate(features, labels, batch_size=3, verbose=0, return_dict=True)
        np.testing.assert_allclose(values[metric.name], expected, rtol=1e-6)


# ---- Constructors and configs.


def test_the_config_contains_every_constructor_argument():
    for name in metrics.NAMES:
        print(name)  # shown if it fails
        changed = changed_arguments(name)
        arguments = {**changed, "no_relevant": "skip", "ragged": True, "name": "mine", "dtype": "float64"}
        metric, default = metrics.get(name, **arguments), metrics.get(name)
        if type(metric) is not metrics.MeasureMetric:
            parameters = list(inspect.signature(type(metric).__init__).parameters.values())[1:]
            kinds = {parameter.name: parameter.kind for parameter in parameters}
            assert kinds.pop("options") is inspect.Parameter.VAR_KEYWORD
            assert {*kinds.values()} <= {inspect.Parameter.KEYWORD_ONLY} and set(kinds) == set(changed)
            assert metrics.get(type(metric).__name__).get_config() == default.get_config()
        config = metric.get_config()
        expected = {key: _serialization.serialize(argument) for key, argument in arguments.items()}
        assert checks.arguments_in(config) == expected
        described = json.loads(json.dumps(tf.keras.metrics.serialize(metric)))
        for again in (metrics.get(described), tf.keras.metrics.deserialize(described)):
            assert type(again) is type(metric) and again.get_config() == config
        assert type(metric).from_config(config).get_config() == config
        checks.check_repr(metric, arguments)
        defaults = checks.arguments_in(default.get_config())
        assert metrics.hyperparameters(name) == {key: defaults[key] for key in changed}
        for key in (*metrics.hyperparameters(name), "no_relevant", "ragged"):
            with pytest.raises(ValueError, match=f"`{key}` must be .*, got 'bad'"):
                metrics.get(name, **{key: "bad"})
        for unknown in ("slope", "reduction"):
            with pytest.raises(TypeError, match=unknown):
                metrics.get(name, **{unknown: "sum"})


def test_a_measure_of_a_ranking_equals_the_named_metric():
    batch = a_batch(length=6)
    general = metrics.MeasureMetric(measures.NDCG(topn=2), ranking=rankings.SoftSort(temperature=0.5), name="mine")
    assert value(general, *batch) == value(metrics.get("softsort_ndcg@2", temperature=0.5), *batch)
    with pytest.raises(ValueError, match="`ranking` must be an instance of tfr_smooth.rankings.Ranking, got 'approx'"):
        metrics.MeasureMetric(measures.NDCG(), ranking="approx")
    exact = metrics.MeasureMetric(measures.NDCG(topn=2))
    assert exact.name == "ndcg_2" and value(exact, *batch) == value(metrics.NDCGMetric(topn=2), *batch)
    again = tf.keras.metrics.deserialize(json.loads(json.dumps(tf.keras.metrics.serialize(general))))
    assert type(again) is metrics.MeasureMetric and again.get_config() == general.get_config()


def test_the_table_contains_every_public_metric_and_a_metric_per_metric_loss():
    public = {c for c in vars(metrics).values() if isinstance(c, type) and issubclass(c, metrics.MeasureMetric)}
    assert public == {type(metrics.get(name)) for name in metrics.NAMES}
    assert {*EXACT, *COMBINATIONS} == {*metrics.NAMES}
    assert metrics.get(None) is None
    with pytest.raises(ValueError, match="must be one of 'ndcg'"):
        metrics.get("ndgc")

"""The pipelines: losses, exact validation, the best model, several tasks."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import losses, metrics

tfr = helpers.tf_ranking(module=True)
from tests.tf_ranking.pipelines import (  # noqa: E402
    BAD,
    BEST,
    GOOD,
    LABEL,
    SPEC,
    Scorer,
    files,
    hparams,
    model_builder,
    scalar,
    simple,
    train,
)
from tfr_smooth import tf_ranking  # noqa: E402


def exact(metric, weights, queries):
    """The metric over all lists, computed list by list."""
    for query in queries:
        scores = query.features @ np.ravel(weights)
        metric.update_state(query.labels[np.newaxis], scores[np.newaxis].astype(np.float32))
    return float(metric.result())


# Losses and metrics.


def test_every_loss_name_creates_the_loss(builder, tmp_path):
    for name in losses.NAMES:
        upstream = tfr.keras.pipeline.PipelineHparams(str(tmp_path), 1, 1, 1, 0.1, loss=name)
        for parameters in (hparams(tmp_path, loss=name), upstream):
            pipeline = tf_ranking.SimplePipeline(model_builder(builder), builder, parameters)
            assert type(pipeline.build_loss()) is type(losses.get(name))


def test_arguments_are_passed_to_losses(builder, tmp_path):
    def loss(**arguments):
        return tf_ranking.SimplePipeline(model_builder(builder), builder, hparams(tmp_path, **arguments)).build_loss()

    config = loss(loss="smoothi_ndcg", loss_kwargs={"alpha": 3.0, "topn": 7}, ragged=True).get_config()
    assert (config["alpha"], config["topn"], config["ragged"]) == (3.0, 7, True)
    theirs = loss(loss="approx_ndcg_loss", loss_kwargs={"temperature": 0.5}, loss_reduction="sum")
    assert theirs.get_config()["temperature"] == 0.5 and theirs.reduction == "sum"
    with pytest.raises(ValueError, match="`topn` is not an argument of 'list_net'"):
        loss(loss="list_net", loss_kwargs={"topn": 3})
    with pytest.raises(
        ValueError, match="`loss` must be the name of a loss in a SimplePipeline, got {'a': 'smoothi_map'}"
    ):
        loss(loss={"a": "smoothi_map"})


def test_the_chosen_metrics_are_created(builder, tmp_path):
    chosen = ["ndcg@2", "tfr/mrr", {"metric": "ndcg", "gain": "linear", "name": "trec"}]
    pipeline = tf_ranking.SimplePipeline(model_builder(builder), builder, hparams(tmp_path, metrics=chosen))
    built = pipeline.build_metrics()
    assert [metric.name for metric in built] == ["metric/ndcg_2", "metric/mrr", "metric/trec"]
    assert [type(metric) for metric in built] == [metrics.NDCGMetric, tfr.keras.metrics.MRRMetric, metrics.NDCGMetric]
    assert built[2].get_config()["gain"] == "linear"
    assert [m.name for m in pipeline.build_weighted_metrics()][0] == "weighted_metric/ndcg_2"
    default, theirs = (
        pipeline(model_builder(builder), builder, hparams(tmp_path, metrics=None)).build_metrics()
        for pipeline in (tf_ranking.SimplePipeline, tfr.keras.pipeline.SimplePipeline)
    )
    assert [metric.name for metric in default] == [metric.name for metric in theirs]
    twice = tf_ranking.SimplePipeline(model_builder(builder), builder, hparams(tmp_path, metrics=["map", "tfr/map"]))
    with pytest.raises(ValueError, match="`metrics` must have unique names, got 'map' twice."):
        twice.build_metrics()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"num_epochs": 0}, "`num_epochs` must be an integer >= 1, got 0."),
        ({"validation_steps": 0}, "`validation_steps` must be an integer >= 1, got 0."),
        ({"default_signature": "rank"}, "`default_signature` must be one of 'regress', 'predict', 'raw', got 'rank'."),
        ({"loss_kwargs": 5}, "`loss_kwargs` must be a dict or None, got 5."),
        (
            {"loss": {"a": "smoothi_map"}, "loss_kwargs": {"alpha": 1.0}},
            "`loss_kwargs` must be a dict of the tasks ['a'] to dicts, got 'alpha': 1.0.",
        ),
    ],
)
def test_bad_hparams_are_refused(arguments, problem, tmp_path):
    with pytest.raises(ValueError) as raised:
        hparams(tmp_path, **arguments)
    assert str(raised.value) == problem


# Validation.


@pytest.mark.parametrize(
    ("steps_per_execution", "strategy"),
    [
        (1, None),
        pytest.param(10, None, marks=pytest.mark.slow),
        pytest.param(10, "MirroredStrategy", marks=pytest.mark.slow),
    ],
)
def test_validation_counts_each_list_once(steps_per_execution, strategy, builder, queries, tmp_path):
    """13 lists in batches of 4: the metrics are those of the weights after the epoch, list by list."""
    settings = {"steps_per_execution": steps_per_execution, "strategy": strategy}
    model, logs = train(builder, hparams(tmp_path, metrics=["ndcg@3", "map", "tfr/mrr"], **settings))
    (weights,) = model.get_weights()
    for name, metric in (
        ("ndcg_3", metrics.NDCGMetric(topn=3)),
        ("map", metrics.MeanAveragePrecisionMetric()),
        ("mrr", tfr.keras.metrics.MRRMetric()),
    ):
        assert logs[1]["val_metric/" + name] == pytest.approx(exact(metric, weights, queries["valid"]), abs=1e-6)


@pytest.mark.slow
def test_weighted_metrics_are_computed_and_select_the_best_model(records, queries, tmp_path):
    builder = simple(records, sample_weight_spec=("weight", scalar(2.5)))
    best = {"export_best_model": True, "best_exporter_metric": "weighted_ndcg_5"}
    chosen = hparams(tmp_path, num_epochs=1, use_weighted_metrics=True, **best)
    model, logs = train(builder, chosen)
    expected = exact(metrics.NDCGMetric(topn=5), model.get_weights()[0], queries["valid"])
    assert logs[0]["val_weighted_metric/ndcg_5"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_infinite_datasets_of_tf_rankings_builder_require_steps(records, tmp_path):
    theirs = tfr.keras.pipeline.SimpleDatasetBuilder({}, SPEC, "mask", LABEL, files(records))
    with pytest.raises(ValueError, match="`validation_steps` must be an integer for an infinite validation dataset"):
        train(theirs, hparams(tmp_path, steps_per_epoch=2))
    with (
        pytest.warns(UserWarning, match="may count a list twice"),
        pytest.raises(ValueError, match="`steps_per_epoch` must be an integer for an infinite training dataset"),
    ):
        train(theirs, hparams(tmp_path, validation_steps=2))
    with pytest.warns(UserWarning, match="may count a list twice"):
        _, logs = train(theirs, tfr.keras.pipeline.PipelineHparams(str(tmp_path), 1, 2, 2, 0.1, loss="smoothi_ndcg"))
    assert "val_metric/ndcg_5" in logs[0]


@pytest.mark.slow
@pytest.mark.parametrize("validation_steps", [None, 2, 50])
def test_datasets_of_unknown_length_are_read_once_per_epoch(validation_steps, builder, queries, tmp_path):
    """In a NullDatasetBuilder: one pass per epoch, and validation to the end or for `validation_steps`."""

    def unknown(dataset):
        return dataset.filter(lambda *_: True)

    assert unknown(builder.build_valid_dataset()).cardinality() == tf.data.UNKNOWN_CARDINALITY
    given = tfr.keras.pipeline.NullDatasetBuilder(
        unknown(builder.build_train_dataset().take(6)), unknown(builder.build_valid_dataset())
    )
    model, logs = train(given, hparams(tmp_path, validation_steps=validation_steps))
    assert model.optimizer.iterations == 12
    lists = queries["valid"][: 8 if validation_steps == 2 else None]
    expected = exact(metrics.NDCGMetric(topn=5), model.get_weights()[0], lists)
    assert logs[1]["val_metric/ndcg_5"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_steps_per_epoch_default_to_one_pass(builder, tmp_path):
    for name, steps, expected in (("pass", None, 2 * 6), ("more", 8, 2 * 8)):
        model, _ = train(builder, hparams(tmp_path / name, steps_per_epoch=steps))
        assert model.optimizer.iterations == expected


# The best model.


@pytest.mark.parametrize(
    ("metric", "arguments"),
    [
        ("ndcg_5", {}),
        pytest.param("metric/ndcg_5", {}, marks=pytest.mark.slow),
        pytest.param("loss", {}, marks=pytest.mark.slow),
        pytest.param("arp", {"metrics": ["tfr/arp"]}, marks=pytest.mark.slow),
        pytest.param("ndcg_5", {"best_exporter_metric_higher_better": True}, marks=pytest.mark.slow),
    ],
)
def test_any_metric_or_the_loss_selects_the_best_model(metric, arguments, builder, tmp_path):
    chosen = hparams(tmp_path, best_exporter_metric=metric, **BEST, **arguments)
    model, _ = train(builder, chosen, weights={0: [BAD], 1: [GOOD], 2: [BAD]})
    np.testing.assert_allclose(model.get_weights()[0], GOOD, atol=1e-4)
    kept = {path.name for path in (tmp_path / "best_checkpoint").glob("*.index")}
    assert kept == {"ckpt-0001.index", "ckpt-0002.index"}


def test_the_lowest_value_selects_the_best_model_on_request_with_a_warning(builder, tmp_path):
    chosen = hparams(tmp_path, best_exporter_metric="ndcg_5", best_exporter_metric_higher_better=False, **BEST)
    with pytest.warns(UserWarning, match="The lowest metric/ndcg_5 selects the best epoch"):
        model, _ = train(builder, chosen, weights={0: [GOOD], 1: [BAD], 2: [GOOD]})
    np.testing.assert_allclose(model.get_weights()[0], BAD, atol=1e-4)


class Untouched(tfr.keras.pipeline.AbstractDatasetBuilder):
    """Fails if any dataset is requested."""

    def build_train_dataset(self):
        raise AssertionError("the training began")

    build_valid_dataset = build_signatures = build_train_dataset


# Several tasks.


@pytest.fixture
def tasks(records):
    labels = {"click": LABEL, "sale": ("custom_features_2", scalar(0.0))}
    spec = {name: SPEC[name] for name in ("custom_features_1", "custom_features_3")}
    return tf_ranking.MultiLabelDatasetBuilder({}, spec, "mask", labels, files(records)), spec


def task_hparams(folder, **arguments):
    defaults = {"loss": {"click": "list_net", "sale": "softmax_loss"}, "loss_weights": {"click": 1.0, "sale": 0.5}}
    return hparams(folder, **{**defaults, "loss_kwargs": {"click": {"temperature": 4.0}}, **arguments})


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["click/ndcg_5", "click/loss", "click_metric/ndcg_5"])
def test_the_metrics_of_one_task_select_the_best_model(metric, tasks, tmp_path):
    builder, spec = tasks
    good, bad = (np.array([[sign], [0.0]], np.float32) for sign in (1.0, -1.0))
    # The other task is best in the last epoch.
    weights = {0: [bad, bad], 1: [good, bad], 2: [bad, good]}
    chosen = task_hparams(tmp_path, best_exporter_metric=metric, **BEST)
    model, pipeline = model_builder(builder, Scorer(["click", "sale"]), spec), tf_ranking.MultiTaskPipeline
    assert pipeline(model, builder, chosen).build_loss()["click"].get_config()["temperature"] == 4.0
    trained, _ = train(builder, chosen, model, pipeline, weights)
    np.testing.assert_allclose(trained.get_weights()[0], good, atol=1e-4)


ONE, TASKS = "'ndcg_1', 'ndcg_5', 'ndcg_10', 'ndcg'", "'click/loss', 'click/ndcg_5', 'sale/loss', 'sale/ndcg_5'"


@pytest.mark.parametrize(
    ("metric", "known"),
    [*((metric, ONE) for metric in ("ndcg_7", "val_loss", "map", "weighted_ndcg_5", "sale/ndcg_5")), ("ndcg_5", TASKS)],
)
def test_unknown_metrics_are_refused_before_training(metric, known, tasks, tmp_path):
    chosen, model = hparams(tmp_path, best_exporter_metric=metric, metrics=None, **BEST), model_builder(None)
    pipeline = tf_ranking.SimplePipeline
    if known == TASKS:
        chosen = task_hparams(tmp_path, best_exporter_metric=metric, metrics=["ndcg@5"], **BEST)
        model, pipeline = model_builder(None, Scorer(["click", "sale"]), tasks[1]), tf_ranking.MultiTaskPipeline
    with pytest.raises(ValueError) as raised:
        pipeline(model, Untouched(), chosen).train_and_validate()
    assert str(raised.value) == f"`best_exporter_metric` must be one of 'loss', {known}, got {metric!r}."


@pytest.mark.slow
def test_one_loss_applies_to_several_tasks(tasks, tmp_path):
    builder, spec = tasks
    chosen = hparams(tmp_path, best_exporter_metric="sale/ndcg_5", **BEST)
    _, logs = train(builder, chosen, model_builder(builder, Scorer(["click", "sale"]), spec))
    assert {"val_click_loss", "val_sale_metric/ndcg_5"} <= logs[0].keys()

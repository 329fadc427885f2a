"""The pipelines of TF-Ranking create the chosen losses and metrics, and train with them."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import losses, metrics

tfr = helpers.tf_ranking(module=True)
from tests.tf_ranking.pipelines import Scorer, datasets, hparams, lists, model_builder, train  # noqa: E402
from tfr_smooth import tf_ranking  # noqa: E402

TASKS = ("click", "sale")


def simple(parameters):
    return tf_ranking.SimplePipeline(model_builder(), datasets(), parameters)


def test_every_loss_name_creates_the_loss(tmp_path):
    for name in losses.NAMES:
        upstream = tfr.keras.pipeline.PipelineHparams(str(tmp_path), 1, 1, 1, 0.1, loss=name)
        for parameters in (hparams(tmp_path, loss=name), upstream):
            assert simple(parameters).build_loss().get_config() == losses.get(name).get_config()


def test_arguments_are_passed_to_losses(tmp_path):
    def loss(**arguments):
        return simple(hparams(tmp_path, **arguments)).build_loss()

    config = loss(loss="smoothi_ndcg", loss_kwargs={"alpha": 3.0, "topn": 7}, ragged=True).get_config()
    assert (config["alpha"], config["topn"], config["ragged"]) == (3.0, 7, True)
    theirs = loss(loss="approx_ndcg_loss", loss_kwargs={"temperature": 0.5}, loss_reduction="sum")
    assert theirs.get_config()["temperature"] == 0.5 and theirs.reduction == "sum"


def test_the_chosen_metrics_are_created(tmp_path):
    chosen = ["ndcg@2", "tfr/mrr", {"metric": "ndcg", "gain": "linear", "name": "trec"}]
    pipeline = simple(hparams(tmp_path, metrics=chosen))
    built = pipeline.build_metrics()
    assert [metric.name for metric in built] == ["metric/ndcg_2", "metric/mrr", "metric/trec"]
    assert [type(metric) for metric in built] == [metrics.NDCGMetric, tfr.keras.metrics.MRRMetric, metrics.NDCGMetric]
    assert built[2].get_config()["gain"] == "linear"
    assert [m.name for m in pipeline.build_weighted_metrics()][0] == "weighted_metric/ndcg_2"
    ragged = simple(hparams(tmp_path, metrics=["map"], ragged=True)).build_metrics()
    assert ragged[0].get_config()["ragged"] is True


def test_the_default_metrics_have_the_names_of_tf_ranking(tmp_path):
    loss, found = {task: "list_net" for task in TASKS}, []
    upstream = tfr.keras.pipeline.PipelineHparams(str(tmp_path), 1, 1, 1, 0.1, loss=loss)
    for package in (tfr.keras.pipeline, tf_ranking):
        built = package.MultiTaskPipeline(model_builder(), datasets(), upstream).build_metrics()
        found.append({task: [metric.name for metric in made] for task, made in built.items()})
    assert found[0] == found[1] and {type(metric) for metric in built["sale"]} == {metrics.NDCGMetric}


def test_bad_hparams_are_refused(tmp_path):
    of, tasks = functools.partial(hparams, tmp_path), {"loss": {"a": "smoothi_map"}}
    several = tf_ranking.MultiTaskPipeline(model_builder(), datasets(), of(loss="list_net"))
    helpers.assert_refused((
        (lambda: of(ragged=1), "`ragged` must be True or False, got 1."),
        (lambda: of(loss_kwargs=5), "`loss_kwargs` must be a dict or None, got 5."),
        (lambda: of(**tasks, loss_kwargs={"alpha": 1.0}), "`loss_kwargs` must be a dict of the tasks ['a'] to dicts, "),
        (simple(of(**tasks)).build_loss, "`loss` must be the name of a loss in a SimplePipeline, got {'a': 'smoothi_"),
        (several.build_loss, "`loss` must be a dict of task to name in a MultiTaskPipeline, got 'list_net"),
        (simple(of(metrics=["map", "tfr/map"])).build_metrics, "`metrics` must have unique names, got 'map' twice."),
    ))  # fmt: skip


# Training.


def exact(metric, weights):
    """The metric over all lists of the validation, computed list by list."""
    inputs, labels = lists(13, seed=2)
    for i, mask in enumerate(inputs["mask"]):
        scores = np.concatenate([inputs[name][i] for name in "abc"], axis=1) @ np.ravel(weights)
        metric.update_state(labels[np.newaxis, i, mask], scores[np.newaxis, mask])
    return float(metric.result())


@pytest.mark.slow
def test_validation_has_the_metrics_of_the_trained_weights(tmp_path):
    chosen = {"loss": "smoothi_ndcg", "metrics": ["ndcg@3", "map", "tfr/mrr"], "use_weighted_metrics": True}
    model, logs = train(hparams(tmp_path, learning_rate=0.02, **chosen), datasets(weight=2.5))
    (weights,) = model.get_weights()
    assert weights[0] > weights[1:].max()  # the feature that determines the labels
    for name, metric in (
        ("ndcg_3", metrics.NDCGMetric(topn=3)),
        ("map", metrics.MeanAveragePrecisionMetric()),
        ("mrr", tfr.keras.metrics.MRRMetric()),
    ):
        expected = pytest.approx(exact(metric, weights), abs=1e-6)
        assert logs[1]["val_metric/" + name] == logs[1]["val_weighted_metric/" + name] == expected


@pytest.mark.slow
def test_our_metric_selects_the_best_model(tmp_path):
    good, bad = (np.array([[sign], [0.0], [0.0]], np.float32) for sign in (1.0, -1.0))
    best = {"export_best_model": True, "best_exporter_metric": "ndcg_5", "best_exporter_metric_higher_better": True}
    train(hparams(tmp_path, num_epochs=3, learning_rate=1e-9, **best), weights={0: [bad], 1: [good], 2: [bad]})
    exported = tf.saved_model.load(str(tmp_path / "export" / "best_model_by_metric"))
    np.testing.assert_allclose(exported.variables[0], good, atol=1e-4)


@pytest.mark.slow
def test_several_tasks_train_with_losses_of_their_own(tmp_path):
    loss, weights = {"click": "list_net", "sale": "softmax_loss"}, {"click": 1.0, "sale": 0.0}
    chosen = hparams(tmp_path, loss=loss, loss_kwargs={"click": {"temperature": 4.0}}, loss_weights=weights)
    builder, pipeline = datasets(TASKS), tf_ranking.MultiTaskPipeline
    assert pipeline(model_builder(), builder, chosen).build_loss()["click"].get_config()["temperature"] == 4.0
    model, logs = train(chosen, builder, Scorer(TASKS), pipeline)
    click, sale = model.get_weights()
    assert click[0] > click[1:].max() and (sale == 1.0).all()
    for task, weights in (("click", click), ("sale", sale)):
        expected = exact(metrics.NDCGMetric(topn=5), weights)
        assert logs[1][f"val_{task}_metric/ndcg_5"] == pytest.approx(expected, abs=1e-6)

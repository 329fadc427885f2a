"""The pipelines: losses, exact validation, the best model, resuming, signatures."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import data, losses, metrics, models

tfr = helpers.tf_ranking(module=True)
from tfr_smooth import tf_ranking  # noqa: E402

SPEC = data.ElwcSchema(features="custom_features_{}").feature_spec(3)
LABEL = ("utility", tf.io.FixedLenFeature([1], tf.float32, 0.0))


class Scorer(tfr.keras.model.UnivariateScorer):
    """A linear scorer, with an output for each task."""

    def __init__(self, tasks=None):
        self._tasks = tasks

    def _score_flattened(self, context_features, example_features):
        inputs = tf.concat([example_features[name] for name in sorted(example_features)], 1)

        def dense():
            return tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)(inputs)

        return {task: dense() for task in self._tasks} if self._tasks else dense()


def model_builder(builder, tasks=None, spec=SPEC):
    return tfr.keras.model.ModelBuilder(
        tfr.keras.model.FeatureSpecInputCreator({}, getattr(builder, "example_feature_spec", spec)),
        tfr.keras.model.PreprocessorWithSpec(),
        Scorer(tasks),
        mask_feature_name="mask",
    )


def files(paths):
    return tfr.keras.pipeline.DatasetHparams(paths["train"], paths["valid"], train_batch_size=4, valid_batch_size=4)


@pytest.fixture
def builder(records):
    return tf_ranking.SimpleDatasetBuilder({}, SPEC, "mask", LABEL, files(records))


def hparams(folder, **arguments):
    # The loss and metric whose graphs are built fastest.
    defaults = {"num_epochs": 2, "learning_rate": 0.1, "loss": "list_net", "metrics": ["ndcg@5"]}
    return tf_ranking.PipelineHparams(**{"model_dir": str(folder), **defaults, **arguments})


class Stop(Exception):
    """Simulates an interruption."""


class Watch(tf.keras.callbacks.Callback):
    """Records the logs, and sets the weights at the start of given epochs."""

    def __init__(self, weights=None):
        super().__init__()
        self.logs, self._weights = {}, weights or {}

    def on_epoch_begin(self, epoch, logs=None):
        if epoch in self._weights:
            self.model.set_weights(self._weights[epoch])

    def on_epoch_end(self, epoch, logs=None):
        self.logs[epoch] = dict(logs)


def watched(pipeline, **arguments):
    """A pipeline with a `Watch` that raises `Stop` before the epoch `stop`, and exports only if `exports`."""
    exports = arguments.pop("exports", False)
    stop = arguments.pop("stop", None)
    watch = Watch(**arguments)

    class Watched(pipeline):
        def build_callbacks(self):
            late = []
            if stop is not None:

                def interrupt(epoch, logs):
                    if epoch == stop:
                        raise Stop

                late = [tf.keras.callbacks.LambdaCallback(on_epoch_begin=interrupt)]
            return [watch, *super().build_callbacks(), *late]

        def export_saved_model(self, model, export_to, checkpoint=None):
            if exports:
                return super().export_saved_model(model, export_to, checkpoint)
            return model.load_weights(checkpoint).expect_partial() if checkpoint else None

    Watched.watch = watch
    return Watched


def scores_of(weights, queries):
    return [query.features @ np.ravel(weights) for query in queries]


def exact(metric, weights, queries):
    """The metric over all lists, computed list by list."""
    for query, scores in zip(queries, scores_of(weights, queries), strict=True):
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
    with pytest.raises(ValueError, match="`topn` is not an argument of 'smoothi_map'"):
        loss(loss="smoothi_map", loss_kwargs={"topn": 3})
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
    pipeline = watched(tf_ranking.SimplePipeline)
    chosen = hparams(
        tmp_path, steps_per_execution=steps_per_execution, metrics=["ndcg@3", "map", "tfr/mrr"], strategy=strategy
    )
    model = pipeline(model_builder(builder), builder, chosen).train_and_validate()
    (weights,) = model.get_weights()
    logs = pipeline.watch.logs[1]
    for name, metric in (
        ("ndcg_3", metrics.NDCGMetric(topn=3)),
        ("map", metrics.MeanAveragePrecisionMetric()),
        ("mrr", tfr.keras.metrics.MRRMetric()),
    ):
        assert logs["val_metric/" + name] == pytest.approx(exact(metric, weights, queries["valid"]), abs=1e-6)


@pytest.mark.slow
def test_weighted_metrics_are_computed_and_select_the_best_model(records, queries, tmp_path):
    weight = ("weight", tf.io.FixedLenFeature([1], tf.float32, 2.5))
    builder = tf_ranking.SimpleDatasetBuilder({}, SPEC, "mask", LABEL, files(records), weight)
    best = {"export_best_model": True, "best_exporter_metric": "weighted_ndcg_5"}
    chosen = hparams(tmp_path, num_epochs=1, use_weighted_metrics=True, **best)
    pipeline = watched(tf_ranking.SimplePipeline)
    model = pipeline(model_builder(builder), builder, chosen).train_and_validate()
    expected = exact(metrics.NDCGMetric(topn=5), model.get_weights()[0], queries["valid"])
    assert pipeline.watch.logs[0]["val_weighted_metric/ndcg_5"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_infinite_datasets_of_tf_rankings_builder_require_steps(records, tmp_path):
    theirs = tfr.keras.pipeline.SimpleDatasetBuilder({}, SPEC, "mask", LABEL, files(records))
    pipeline = watched(tf_ranking.SimplePipeline)
    with pytest.raises(ValueError, match="`validation_steps` must be an integer for an infinite validation dataset"):
        pipeline(model_builder(theirs), theirs, hparams(tmp_path, steps_per_epoch=2)).train_and_validate()
    with (
        pytest.warns(UserWarning, match="may count a list twice"),
        pytest.raises(ValueError, match="`steps_per_epoch` must be an integer for an infinite training dataset"),
    ):
        pipeline(model_builder(theirs), theirs, hparams(tmp_path, validation_steps=2)).train_and_validate()
    with pytest.warns(UserWarning, match="may count a list twice"):
        upstream = tfr.keras.pipeline.PipelineHparams(str(tmp_path), 1, 2, 2, 0.1, loss="smoothi_ndcg")
        pipeline(model_builder(theirs), theirs, upstream).train_and_validate()
    assert "val_metric/ndcg_5" in pipeline.watch.logs[0]


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
    pipeline = watched(tf_ranking.SimplePipeline)
    model = pipeline(
        model_builder(given), given, hparams(tmp_path, validation_steps=validation_steps)
    ).train_and_validate()
    assert model.optimizer.iterations == 12
    lists = queries["valid"][: 8 if validation_steps == 2 else None]
    expected = exact(metrics.NDCGMetric(topn=5), model.get_weights()[0], lists)
    assert pipeline.watch.logs[1]["val_metric/ndcg_5"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_steps_per_epoch_default_to_one_pass(builder, tmp_path):
    for name, steps, expected in (("pass", None, 2 * 6), ("more", 8, 2 * 8)):
        pipeline = watched(tf_ranking.SimplePipeline)
        chosen = hparams(tmp_path / name, steps_per_epoch=steps)
        assert pipeline(model_builder(builder), builder, chosen).train_and_validate().optimizer.iterations == expected


# The best model.

GOOD, BAD = np.array([[1.0], [0.0], [0.0]], np.float32), np.array([[-1.0], [0.0], [0.0]], np.float32)
BEST = {"export_best_model": True, "learning_rate": 1e-9, "num_epochs": 3}


@pytest.mark.parametrize(
    ("metric", "arguments"),
    [
        ("ndcg_5", {}),
        pytest.param("metric/ndcg_5", {}, marks=pytest.mark.slow),
        ("loss", {}),
        pytest.param("arp", {"metrics": ["tfr/arp"]}, marks=pytest.mark.slow),
        pytest.param("ndcg_5", {"best_exporter_metric_higher_better": True}, marks=pytest.mark.slow),
    ],
)
def test_any_metric_or_the_loss_selects_the_best_model(metric, arguments, builder, tmp_path):
    weights = {0: [BAD], 1: [GOOD], 2: [BAD]}
    pipeline = watched(tf_ranking.SimplePipeline, weights=weights)
    chosen = hparams(tmp_path, best_exporter_metric=metric, **BEST, **arguments)
    model = pipeline(model_builder(builder), builder, chosen).train_and_validate()
    np.testing.assert_allclose(model.get_weights()[0], GOOD, atol=1e-4)
    assert sorted(path.name for path in (tmp_path / "best_checkpoint").glob("*.index")) == [
        "ckpt-0001.index",
        "ckpt-0002.index",
    ]


def test_the_lowest_value_selects_the_best_model_on_request_with_a_warning(builder, tmp_path):
    pipeline = watched(tf_ranking.SimplePipeline, weights={0: [GOOD], 1: [BAD], 2: [GOOD]})
    chosen = hparams(tmp_path, best_exporter_metric="ndcg_5", best_exporter_metric_higher_better=False, **BEST)
    with pytest.warns(UserWarning, match="The lowest metric/ndcg_5 selects the best epoch"):
        model = pipeline(model_builder(builder), builder, chosen).train_and_validate()
    np.testing.assert_allclose(model.get_weights()[0], BAD, atol=1e-4)


class Untouched(tfr.keras.pipeline.AbstractDatasetBuilder):
    """Fails if any dataset is requested."""

    def build_train_dataset(self):
        raise AssertionError("the training began")

    build_valid_dataset = build_signatures = build_train_dataset


@pytest.mark.parametrize("metric", ["ndcg_7", "val_loss", "map", "weighted_ndcg_5", "sale/ndcg_5"])
def test_unknown_metrics_are_refused_before_training(metric, tmp_path):
    chosen = hparams(tmp_path, best_exporter_metric=metric, metrics=None, **BEST)
    pipeline = tf_ranking.SimplePipeline(model_builder(None), Untouched(), chosen)
    with pytest.raises(ValueError) as raised:
        pipeline.train_and_validate()
    expected = "'loss', 'ndcg_1', 'ndcg_5', 'ndcg_10', 'ndcg'"
    assert str(raised.value) == f"`best_exporter_metric` must be one of {expected}, got {metric!r}."


# Several tasks.


@pytest.fixture
def tasks(records):
    labels = {"click": LABEL, "sale": ("custom_features_2", tf.io.FixedLenFeature([1], tf.float32, 0.0))}
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
    pipeline = watched(tf_ranking.MultiTaskPipeline, weights=weights)
    chosen = task_hparams(tmp_path, best_exporter_metric=metric, **BEST)
    trained = pipeline(model_builder(builder, ["click", "sale"], spec), builder, chosen)
    assert trained.build_loss()["click"].get_config()["temperature"] == 4.0
    np.testing.assert_allclose(trained.train_and_validate().get_weights()[0], good, atol=1e-4)


def test_metrics_of_several_tasks_are_checked_before_training(tasks, tmp_path):
    _, spec = tasks
    chosen = task_hparams(tmp_path, best_exporter_metric="ndcg_5", metrics=["ndcg@5"], **BEST)
    pipeline = tf_ranking.MultiTaskPipeline(model_builder(None, ["click", "sale"], spec), Untouched(), chosen)
    with pytest.raises(ValueError) as raised:
        pipeline.train_and_validate()
    expected = "'loss', 'click/loss', 'click/ndcg_5', 'sale/loss', 'sale/ndcg_5'"
    assert str(raised.value) == f"`best_exporter_metric` must be one of {expected}, got 'ndcg_5'."


@pytest.mark.slow
def test_one_loss_applies_to_several_tasks(tasks, tmp_path):
    builder, spec = tasks
    chosen = hparams(tmp_path, best_exporter_metric="sale/ndcg_5", **BEST)
    pipeline = watched(tf_ranking.SimplePipeline)
    pipeline(model_builder(builder, ["click", "sale"], spec), builder, chosen).train_and_validate()
    assert {"val_click_loss", "val_sale_metric/ndcg_5"} <= pipeline.watch.logs[0].keys()


# Resuming.


def letor_builder(letor):
    return tf_ranking.LetorDatasetBuilder(files(letor), features="custom_features_{}", seed=5)


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "steps"), [(1, 4), (3, None)])
def test_an_interrupted_run_ends_with_the_weights_of_an_uninterrupted_one(stop, steps, letor, tmp_path):
    builder = letor_builder(letor)

    def train(folder, **arguments):
        chosen = hparams(
            folder,
            num_epochs=4,
            steps_per_epoch=steps,
            export_best_model=True,
            best_exporter_metric="ndcg_5",
            automatic_reduce_lr=True,
        )
        pipeline = watched(tf_ranking.SimplePipeline, **arguments)
        return pipeline(model_builder(builder), builder, chosen).train_and_validate(), pipeline.watch.logs

    expected, logs = train(tmp_path / "uninterrupted")
    with pytest.raises(Stop):
        train(tmp_path / "interrupted", stop=stop)
    resumed, rest = train(tmp_path / "interrupted")
    assert list(rest) == list(range(stop, 4))
    for epoch, values in rest.items():
        assert values == pytest.approx(logs[epoch], abs=1e-6)
    np.testing.assert_allclose(resumed.get_weights()[0], expected.get_weights()[0], atol=1e-6)
    # A third run has nothing left to train.
    again, none = train(tmp_path / "interrupted")
    assert none == {}
    np.testing.assert_array_equal(again.get_weights()[0], resumed.get_weights()[0])


def test_a_resumed_run_keeps_the_best_epoch(builder, tmp_path):
    """The best epoch is before the interruption, and all later epochs are worse."""

    def train(**arguments):
        pipeline = watched(tf_ranking.SimplePipeline, **arguments)
        chosen = hparams(tmp_path, best_exporter_metric="ndcg_5", **BEST)
        return pipeline(model_builder(builder), builder, chosen).train_and_validate()

    with pytest.raises(Stop):
        train(weights={0: [GOOD]}, stop=1)
    np.testing.assert_allclose(train(weights={1: [BAD], 2: [BAD]}).get_weights()[0], GOOD, atol=1e-4)


@pytest.mark.slow
def test_patience_continues_after_an_interruption(builder, tmp_path):
    """No epoch is better than the first: with a patience of 2, the third is the last."""

    def train(folder, **arguments):
        pipeline = watched(tf_ranking.SimplePipeline, **arguments)
        stopping = {"early_stopping_patience": 2, "best_exporter_metric": "ndcg_5"}
        chosen = hparams(folder, num_epochs=9, learning_rate=1e-9, **stopping)
        pipeline(model_builder(builder), builder, chosen).train_and_validate()
        return list(pipeline.watch.logs)

    assert train(tmp_path / "uninterrupted") == [0, 1, 2]
    with pytest.raises(Stop):
        train(tmp_path / "interrupted", stop=2)
    assert train(tmp_path / "interrupted") == [2]
    assert train(tmp_path / "interrupted") == []


@pytest.mark.slow
def test_resuming_with_other_settings_is_refused(builder, tmp_path):
    def train(**arguments):
        pipeline = watched(tf_ranking.SimplePipeline)
        pipeline(model_builder(builder), builder, hparams(tmp_path, **arguments)).train_and_validate()
        return list(pipeline.watch.logs)

    train(num_epochs=1)
    with pytest.raises(ValueError, match=r"loss_kwargs=\{'temperature': 2.0\} \(was None\)"):
        train(loss_kwargs={"temperature": 2.0})
    assert train(num_epochs=2) == [1]


# Exports.


@pytest.fixture(scope="module")
def exported(letor, tmp_path_factory):
    """Models trained and exported with each default signature."""
    folder = tmp_path_factory.mktemp("exports")
    builder = letor_builder(letor)
    models_ = {}
    for default in (None, "predict", "raw"):
        chosen = hparams(
            folder / str(default), num_epochs=1, default_signature=default, export_best_model=True, metrics=["map"]
        )
        models_[default] = tf_ranking.SimplePipeline(model_builder(builder), builder, chosen).train_and_validate()
    return folder, models_, builder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["latest_model", "best_model_by_metric"])
@pytest.mark.parametrize("default", [None, "predict", "raw"])
def test_default_signatures_return_the_scores_of_the_model(default, name, exported, records):
    folder, trained, builder = exported
    loaded = tf.saved_model.load(str(folder / str(default) / "export" / name))
    serve = loaded.signatures["serving_default"]
    inputs, _ = next(iter(builder.build_valid_dataset()))
    expected, mask = trained[default](inputs, training=False).numpy(), inputs["mask"].numpy()
    serialized = list(tf.data.TFRecordDataset(records["valid"]).take(4).as_numpy_iterator())
    if default == "raw":
        scores = serve(**inputs)["scores"]
    elif default == "predict":
        scores = serve(tf.constant(serialized))["outputs"]
    else:
        documents = [e for record in serialized for e in data.elwc._message_class().FromString(record).examples]
        np.testing.assert_allclose(serve(tf.constant(documents))["outputs"], expected[mask], rtol=1e-5)
        return
    np.testing.assert_allclose(scores.numpy()[mask], expected[mask], rtol=1e-5)
    assert (scores.numpy()[~mask] == np.float32(models.PADDING_SCORE)).all() and (~mask).any()


@pytest.mark.slow
def test_exports_leave_no_temporary_folders(exported):
    folder, _, _ = exported
    for default in ("None", "predict", "raw"):
        names = sorted(path.name for path in (folder / default / "export").iterdir())
        assert names == ["best_model_by_metric", "latest_model"]
        (event, *_) = (folder / default / "validation").glob("events*")
        assert event.stat().st_size > 0


@pytest.mark.parametrize(
    ("default", "problem"),
    [
        ("predict", "`default_signature` must be None or 'raw' for NullDatasetBuilder, got 'predict'."),
        ("raw", "`default_signature` must not be 'raw' for a model without named, dense inputs"),
    ],
)
def test_impossible_signatures_are_refused_before_training(default, problem, builder, tmp_path):
    class Subclassed(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(1)

        def call(self, inputs):
            return tf.squeeze(self.dense(inputs["custom_features_1"]), 2)

    class Build(tfr.keras.model.AbstractModelBuilder):
        def build(self):
            return Subclassed()

    given = tfr.keras.pipeline.NullDatasetBuilder(builder.build_train_dataset().take(2), builder.build_valid_dataset())
    pipeline = watched(tf_ranking.SimplePipeline)
    with pytest.raises(ValueError) as raised:
        pipeline(Build(), given, hparams(tmp_path, default_signature=default)).train_and_validate()
    assert problem in str(raised.value) and pipeline.watch.logs == {}


@pytest.mark.slow
def test_checkpoints_contain_the_state_as_json(builder, tmp_path):
    """The state for resuming is part of the checkpoint, so that it always matches the weights."""
    pipeline = watched(tf_ranking.SimplePipeline)
    chosen = hparams(tmp_path, export_best_model=True, best_exporter_metric="ndcg_5", early_stopping_patience=3)
    pipeline(model_builder(builder), builder, chosen).train_and_validate()
    reader = tf.train.load_checkpoint(str(pathlib.Path(chosen.model_dir) / "checkpoints"))
    (name,) = [key for key in reader.get_variable_to_shape_map() if "progress" in key]
    state = json.loads(reader.get_tensor(name))
    logs = pipeline.watch.logs
    best = max(logs, key=lambda epoch: logs[epoch]["val_metric/ndcg_5"])
    assert state["finished_epochs"] == 2 and state["validation"]["BestCheckpoint"]["best_epoch"] == best

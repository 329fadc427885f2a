"""The pipelines: resuming, exports and their signatures."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tfr_smooth import data, models

tfr = helpers.tf_ranking(module=True)
from tests.tf_ranking.pipelines import (  # noqa: E402
    BAD,
    BEST,
    GOOD,
    Stop,
    Watch,
    hparams,
    letor_builder,
    model_builder,
    train,
    watched,
)
from tfr_smooth import tf_ranking  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "steps"), [(1, 4), (3, None)])
def test_an_interrupted_run_ends_with_the_weights_of_an_uninterrupted_one(stop, steps, letor, tmp_path):
    builder = letor_builder(letor, seed=5)
    best = {"export_best_model": True, "best_exporter_metric": "ndcg_5"}

    def trained(name, **options):
        settings = {"num_epochs": 4, "steps_per_epoch": steps, "automatic_reduce_lr": True}
        return train(builder, hparams(tmp_path / name, **settings, **best), **options)

    expected, logs = trained("uninterrupted")
    with pytest.raises(Stop):
        trained("interrupted", stop=stop)
    resumed, rest = trained("interrupted")
    assert list(rest) == list(range(stop, 4))
    for epoch, values in rest.items():
        assert values == pytest.approx(logs[epoch], abs=1e-6)
    np.testing.assert_allclose(resumed.get_weights()[0], expected.get_weights()[0], atol=1e-6)
    # A third run has nothing left to train.
    again, none = trained("interrupted")
    assert none == {}
    np.testing.assert_array_equal(again.get_weights()[0], resumed.get_weights()[0])


def test_a_resumed_run_keeps_the_best_epoch(builder, tmp_path):
    """The best epoch is before the interruption, and all later epochs are worse."""
    chosen = hparams(tmp_path, best_exporter_metric="ndcg_5", **BEST)
    with pytest.raises(Stop):
        train(builder, chosen, weights={0: [GOOD]}, stop=1)
    resumed, _ = train(builder, chosen, weights={1: [BAD], 2: [BAD]})
    np.testing.assert_allclose(resumed.get_weights()[0], GOOD, atol=1e-4)


@pytest.mark.slow
def test_patience_continues_after_an_interruption(builder, tmp_path):
    """No epoch is better than the first: with a patience of 2, the third is the last."""
    settings = {"num_epochs": 9, "early_stopping_patience": 2, "best_exporter_metric": "ndcg_5", "learning_rate": 1e-9}

    def epochs(name, **options):
        return list(train(builder, hparams(tmp_path / name, **settings), **options)[1])

    assert epochs("uninterrupted") == [0, 1, 2]
    with pytest.raises(Stop):
        epochs("interrupted", stop=2)
    assert epochs("interrupted") == [2]
    assert epochs("interrupted") == []


@pytest.mark.slow
def test_resuming_with_other_settings_is_refused(builder, tmp_path):
    train(builder, hparams(tmp_path, num_epochs=1))
    with pytest.raises(ValueError, match=r"loss_kwargs=\{'temperature': 2.0\} \(was None\)"):
        train(builder, hparams(tmp_path, loss_kwargs={"temperature": 2.0}))
    assert list(train(builder, hparams(tmp_path, num_epochs=2))[1]) == [1]


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
    watch = Watch()
    pipeline = watched(tf_ranking.SimplePipeline, watch)(Build(), given, hparams(tmp_path, default_signature=default))
    with pytest.raises(ValueError) as raised:
        pipeline.train_and_validate()
    assert problem in str(raised.value) and watch.logs == {}


@pytest.mark.slow
def test_checkpoints_contain_the_state_as_json(builder, tmp_path):
    """The state for resuming is part of the checkpoint, so that it always matches the weights."""
    chosen = hparams(tmp_path, export_best_model=True, best_exporter_metric="ndcg_5", early_stopping_patience=3)
    _, logs = train(builder, chosen)
    reader = tf.train.load_checkpoint(str(pathlib.Path(chosen.model_dir) / "checkpoints"))
    (name,) = [key for key in reader.get_variable_to_shape_map() if "progress" in key]
    state = json.loads(reader.get_tensor(name))
    best = max(logs, key=lambda epoch: logs[epoch]["val_metric/ndcg_5"])
    assert state["finished_epochs"] == 2 and state["validation"]["BestCheckpoint"]["best_epoch"] == best

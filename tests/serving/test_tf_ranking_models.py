"""Models built by TF-Ranking's ModelBuilder, compared with TF-Ranking's own signatures."""

import numpy as np
import pytest
import tensorflow as tf

from tests import helpers
from tests.serving.conftest import example, example_list
from tfr_smooth import models, serving

tfr = helpers.tf_ranking(module=True)

CONTEXT = {"query": tf.io.FixedLenFeature([2], tf.float32, default_value=[0.0, 0.0])}
EXAMPLE = {
    "price": tf.io.FixedLenFeature([1], tf.float32, default_value=[0.0]),
    "embedding": tf.io.FixedLenFeature([3], tf.float32, default_value=[0.0] * 3),
}
MASK = "example_list_mask"
SPECS = {"context_feature_spec": CONTEXT, "example_feature_spec": EXAMPLE, "mask_feature_name": MASK}


class TwoTasks(tfr.keras.model.UnivariateScorer):
    def _score_flattened(self, context_features, example_features):
        features = tf.concat([*context_features.values(), *example_features.values()], axis=1)
        return {name: tf.keras.layers.Dense(1)(features) for name in ("click", "buy")}


def build(scorer):
    tf.keras.utils.set_random_seed(1)
    return tfr.keras.model.ModelBuilder(
        input_creator=tfr.keras.model.FeatureSpecInputCreator(CONTEXT, EXAMPLE),
        preprocessor=tfr.keras.model.PreprocessorWithSpec(),
        scorer=scorer,
        mask_feature_name=MASK,
        name="ranker",
    ).build()


@pytest.fixture(scope="module")
def lists():
    """Serialized lists of 3, 1, 0 and 5 documents, and their mask."""
    random = np.random.RandomState(0)
    serialized = []
    for size in (3, 1, 0, 5):
        query = random.randn(2).tolist()
        rows = [{"price": random.randn(1).tolist(), "embedding": (50 * random.randn(3)).tolist()} for _ in range(size)]
        serialized.append(example_list([example(**row) for row in rows], query=query))
    return tf.constant(serialized), np.arange(5) < np.array([[3], [1], [0], [5]])


SCORERS = {
    "dnn": lambda: tfr.keras.model.DNNScorer(hidden_layer_dims=[8], output_units=1),
    "tasks": TwoTasks,
}


@pytest.mark.parametrize("scorer", [pytest.param("dnn", marks=pytest.mark.slow), "tasks"])
@pytest.mark.keras_2
def test_scores_are_those_of_tf_rankings_signatures(scorer, lists, tmp_path):
    serialized, mask = lists
    model = build(SCORERS[scorer]())
    theirs = tfr.keras.saved_model.Signatures(model, CONTEXT, EXAMPLE, MASK)()
    path = serving.export_ranker(model, tmp_path, **SPECS)
    ours = tf.saved_model.load(str(path)).signatures
    for signature in ("tensorflow/serving/predict", "predict"):
        found = ours[signature](inputs=serialized)
        expected = theirs["tensorflow/serving/predict"](serialized)
        assert set(found) == set(expected)
        for name in found:
            np.testing.assert_allclose(found[name].numpy()[mask], expected[name].numpy()[mask], rtol=1e-5, atol=1e-5)
            assert (found[name].numpy()[~mask] == np.float32(models.PADDING_SCORE)).all()


@pytest.mark.keras_2
def test_ragged_features_are_served_only_from_protos(tmp_path):
    """The signatures with tensor inputs do not support them."""
    words = tf.keras.Input([None, None], dtype=tf.int64, ragged=True, name="words")
    price = tf.keras.Input([None, 1], name="price")
    mask = tf.keras.Input([None], dtype=tf.bool, name=MASK)
    summed = tf.reduce_sum(tf.keras.layers.Embedding(10, 4)(words), axis=2).to_tensor()
    scores = tf.keras.layers.Dense(1)(tf.concat([summed, price], axis=-1))[..., 0]
    model = tf.keras.Model({"words": words, "price": price, MASK: mask}, scores)
    spec = {"words": tf.io.RaggedFeature(tf.int64), "price": EXAMPLE["price"]}
    path = serving.export_ranker(model, tmp_path, example_feature_spec=spec, mask_feature_name=MASK)
    signatures = tf.saved_model.load(str(path)).signatures
    assert "rank" not in signatures
    documents = [example(words=[1, 2, 3], price=[1.0]), example(price=[2.0]), example(words=[4], price=[3.0])]
    inputs = {
        "words": tf.ragged.constant([[[1, 2, 3], [], [4]]], dtype=tf.int64),
        "price": tf.constant([[[1.0], [2.0], [3.0]]]),
        MASK: tf.ones([1, 3], tf.bool),
    }
    expected = model(inputs).numpy()
    for name in ("serving_default", "predict"):
        found = signatures[name](inputs=tf.constant([example_list(documents), example_list(documents[:1])]))["outputs"]
        np.testing.assert_allclose(found.numpy()[0], expected[0], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.numpy()[1, 0], expected[0, 0], rtol=1e-6, atol=1e-6)
        assert (found.numpy()[1, 1:] == np.float32(models.PADDING_SCORE)).all()

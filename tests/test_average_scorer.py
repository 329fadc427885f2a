"""AverageScorer: mean scores, Keras files and exports."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import models, serving

FEATURES = np.random.RandomState(0).randn(2, 4, 3).astype(np.float32)
INPUTS = {"features": tf.constant(FEATURES), "mask": tf.constant([[True] * 4, [True, True, False, False]])}


def scorers(count=3):
    members = [models.FeedForwardScorer(hidden=[5]) for _ in range(count)]
    for member in members:
        member.build([None, None, 3])
    return members


# The mean of 7 or 11 padding scores is not the padding score, due to rounding.
@pytest.mark.parametrize("count", [3, 7, 11])
def test_scores_are_means_and_padded_documents_get_the_padding_score(count):
    members = scorers(count)
    scores = models.AverageScorer(members)(INPUTS).numpy()
    real = INPUTS["mask"].numpy()
    expected = np.mean([member(INPUTS) for member in members], axis=0)
    np.testing.assert_allclose(scores[real], expected[real], rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(scores[~real], np.float32(models.PADDING_SCORE))


def test_a_keras_file_restores_the_model(tmp_path):
    model = models.AverageScorer(scorers())
    expected = model(INPUTS)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(INPUTS), expected, rtol=1e-6)
    assert len(loaded.scorers) == 3


def test_the_export_returns_the_mean_scores(tmp_path):
    model = models.AverageScorer(scorers())
    folder = serving.export_ranker(model, tmp_path, num_features=3, warmup_list_sizes=())
    served = tf.saved_model.load(folder).signatures["serving_default"](features=FEATURES[:1])
    np.testing.assert_allclose(served["scores"], model(FEATURES[:1]), rtol=1e-5)


def test_an_empty_list_of_scorers_raises():
    with pytest.raises(ValueError, match=r"^`scorers` must contain at least one model, got none\.$"):
        models.AverageScorer([])

"""A linear model on synthetic data: both forms of the gradient raise exact NDCG."""

import pytest
import tensorflow as tf

from tfr_smooth import data, losses, metrics, models


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    files = data.write_synthetic_letor(tmp_path_factory.mktemp("letor"), num_queries=(100, 2, 2))
    return data.read_letor(str(files["train"]), batch_size=25, list_size=60, cache=True)


@pytest.mark.slow
@pytest.mark.parametrize("stop_gradient", [True, False])
def test_linear_model_raises_exact_ndcg(dataset, stop_gradient):
    tf.keras.utils.set_random_seed(2)
    model = models.FeedForwardScorer(hidden="linear")
    model.compile(
        optimizer=tf.keras.optimizers.Adam(0.03),
        loss=losses.SmoothINDCGLoss(stop_gradient=stop_gradient),
        metrics=[metrics.NDCGMetric(no_relevant="skip")],
    )
    model.fit(dataset, epochs=1, verbose=0)  # lets batch normalization learn its statistics
    before = model.evaluate(dataset, verbose=0, return_dict=True)["ndcg"]
    model.fit(dataset, epochs=12, verbose=0)
    after = model.evaluate(dataset, verbose=0, return_dict=True)["ndcg"]
    assert after > before + 0.05

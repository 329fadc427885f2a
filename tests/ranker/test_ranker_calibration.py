"""`Ranker.calibrate`: predictions, files and exports give the same calibrated scores."""

import pickle

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tfr_smooth.columns import column_arrays

SMALL = {"loss": "softmax", "hidden": [8], "epochs": 2, "batch_size": 16, "members": 1, "verbose": False}


def table(seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"query": np.repeat(np.arange(60), 8), "price": random.normal(size=480)})
    frame["color"] = random.choice(["red", "blue"], 480)
    odds = frame["price"] + 2.0 * (frame["color"] == "red") - 1.0
    frame["label"] = random.binomial(2, 1.0 / (1.0 + np.exp(-odds)))
    return frame


TRAIN, VALID, TEST = map(table, range(3))


@pytest.fixture(scope="module")
def plain():
    return tfr_smooth.Ranker(**SMALL).fit(TRAIN, label="label", query="query")


@pytest.fixture
def calibrated(plain):
    return pickle.loads(pickle.dumps(plain)).calibrate(VALID, method="isotonic")


@pytest.mark.parametrize("method", ["platt", "isotonic"])
@pytest.mark.slow
def test_calibration_keeps_the_order_and_makes_probabilities(plain, method):
    calibrated = pickle.loads(pickle.dumps(plain)).calibrate(VALID, method=method)
    raw, probabilities = plain.predict(TEST), calibrated.predict(TEST)
    assert (np.diff(probabilities[np.argsort(raw, kind="stable")]) >= -1e-6).all()
    bins = np.minimum((5 * probabilities).astype(int), 4)
    gaps = np.bincount(bins, (TEST["label"] >= 1) - probabilities)
    # Of 480 documents: the standard error of the rate in a bin is about 0.05.
    assert np.abs(gaps).sum() / len(bins) < 0.1
    assert probabilities.mean() == pytest.approx((TEST["label"] >= 1).mean(), abs=0.07)


@pytest.mark.slow
def test_files_pickles_and_exports_give_the_predictions(calibrated, tmp_path):
    expected = calibrated.predict(TEST)
    calibrated.save(tmp_path / "ranker.keras")
    for restored in (tfr_smooth.Ranker.load(tmp_path / "ranker.keras"), pickle.loads(pickle.dumps(calibrated))):
        np.testing.assert_array_equal(restored.predict(TEST), expected)
    loaded = tf.saved_model.load(calibrated.export(tmp_path / "export", warmup=False))
    arrays = column_arrays(TEST, calibrated.features_.columns)
    inputs = {name: tf.constant(values)[tf.newaxis] for name, values in arrays.items()}
    exported = loaded.signatures["serving_default"](**inputs)["scores"]
    of_one_list = calibrated.predict(TEST, group=[len(TEST)])
    np.testing.assert_allclose(exported.numpy()[0], of_one_list, atol=1e-6)
    mask = tf.sequence_mask([5], len(TEST))
    masked = loaded.signatures["rank"](**inputs, mask=mask)["scores"].numpy()[0]
    np.testing.assert_allclose(masked[:5], calibrated.predict(TEST[:5], group=[5]), atol=1e-6)
    assert (masked[5:] == tfr_smooth.models.PADDING_SCORE).all()


@pytest.mark.slow
def test_the_last_calibration_applies_and_fit_removes_it(plain):
    ranker = pickle.loads(pickle.dumps(plain)).calibrate(VALID)
    first = ranker.predict(TEST)
    ranker.calibrate(VALID, method="isotonic", threshold=None)
    assert 1.0 < ranker.predict(TEST).max() <= 2.0  # expected labels
    np.testing.assert_array_equal(ranker.calibrate(VALID).predict(TEST), first)
    assert ranker.fit(TRAIN, label="label", query="query").predict(TEST).min() < 0.0
    with pytest.raises(ValueError, match="`fit` must be called first"):
        tfr_smooth.Ranker().calibrate(VALID)

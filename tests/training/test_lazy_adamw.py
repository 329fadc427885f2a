"""`LazyAdamW`: AdamW of the rows with a gradient, and weights that L1 leaves at 0."""

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth import _keras, training
from tfr_smooth.models.feed_forward import FeatureFunctions


@pytest.mark.skipif(not _keras.IS_KERAS_3, reason="Keras 2 has AdamW's step")
def test_a_lazy_step_is_adamws_for_the_rows_with_a_gradient():
    start, random = np.arange(12.0, dtype=np.float32).reshape(4, 3), np.random.default_rng(0)
    lazy, dense = (tf.keras.Variable(start) for _ in range(2))
    options = {"learning_rate": 0.1, "weight_decay": 0.0}
    optimizers = (
        training.LazyAdamW(**options, sparse_rate=2.0),
        tf.keras.optimizers.AdamW(**{**options, "learning_rate": 0.2}),
    )
    for _ in range(3):
        gradient = random.normal(size=(3, 3)).astype(np.float32)
        optimizers[0].apply([tf.IndexedSlices(gradient, [2, 0, 2], [4, 3])], [lazy])
        whole = np.zeros_like(start)
        np.add.at(whole, [2, 0, 2], gradient)
        optimizers[1].apply([tf.constant(whole)], [dense])
    np.testing.assert_allclose(lazy.numpy(), dense.numpy(), rtol=1e-5)
    assert (lazy.numpy()[[1, 3]] == start[[1, 3]]).all() and (lazy.numpy()[[0, 2]] != start[[0, 2]]).all()
    restored = training.LazyAdamW.from_config(optimizers[0].get_config())
    assert (restored.sparse_rate, restored.by_gap) == (2.0, False)


@pytest.mark.slow
@pytest.mark.skipif(not _keras.IS_KERAS_3, reason="Keras 2 has AdamW's step")
def test_steps_by_gap_are_those_of_adam_with_gradients_of_zero_between():
    """Adam applies the momentum in the steps after a gradient, in sum at most 0.5% more."""
    tables = [tf.keras.Variable(np.zeros([2, 1], np.float32)) for _ in range(2)]
    options = {"learning_rate": 0.1, "weight_decay": 0.0}
    lazy, dense = training.LazyAdamW(**options, by_gap=True), tf.keras.optimizers.AdamW(**options)
    for optimizer, table in zip((lazy, dense), tables, strict=True):
        optimizer.build([table])
        optimizer.iterations.assign(20000)  # where no mean is corrected for its start
    for gradient, gap in ((3.0, 100), (-1.0, 500), (2.0, 100)):
        lazy.apply([tf.IndexedSlices(tf.constant([[gradient]]), [1], [2, 1])], [tables[0]])
        lazy.iterations.assign_add(gap - 1)
        for step in range(gap):
            dense.apply([tf.constant([[0.0], [gradient * (step == 0)]])], [tables[1]])
        np.testing.assert_allclose(tables[0].numpy(), tables[1].numpy(), rtol=0.01)
    assert training.LazyAdamW.from_config(lazy.get_config()).by_gap


def test_a_step_with_l1_brings_the_named_weights_closer_to_zero_and_leaves_them_there():
    options = {"learning_rate": 0.1, "weight_decay": 0.0}
    optimizers = training.LazyAdamW(**options, l1={"rises": 0.5}), tf.keras.optimizers.AdamW(**options)
    layers = [FeatureFunctions(members=1) for _ in optimizers]
    for layer, optimizer in zip(layers, optimizers, strict=True):
        layer.build((None, 4))
        layer.rises.assign([[1.0], [-1.0], [0.02], [0.0]])
        optimizer.apply_gradients([(tf.constant([[1.0], [1.0], [0.0], [0.0]]), layer.rises)])
    np.testing.assert_allclose(layers[1].rises[:, 0], [0.9, -1.1, 0.02, 0.0], rtol=1e-4)
    np.testing.assert_allclose(layers[0].rises[:, 0], [0.85, -1.05, 0.0, 0.0], rtol=1e-4)
    assert type(optimizers[0]).from_config(optimizers[0].get_config()).l1 == {"rises": 0.5}

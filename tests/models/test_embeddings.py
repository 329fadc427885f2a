"""`Embeddings`: the means of the vectors of codes."""

import numpy as np
import tensorflow as tf

from tfr_smooth import models


def test_embeddings_are_means_of_the_vectors_of_known_codes():
    layer = models.Embeddings([(1, 1, 5), (2, 3, 4)], dim=2, seed=0)
    one, other = (np.array(weight) for weight in layer.get_weights())
    features = tf.constant([[0.5, 4.0, 3.0, 2.0, 0.0], [0.5, 1.0, 0.0, 0.0, 0.0]])
    expected = [[*one[4], *(other[3] + other[2]) / 2], [*one[1], 0.0, 0.0]]
    np.testing.assert_allclose(layer(features), expected, rtol=1e-6)

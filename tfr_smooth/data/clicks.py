"""Clicks as training data."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def one_list_per_click(inputs: dict[str, Any], clicks: tf.Tensor, weights: tf.Tensor | None = None) -> tuple[Any, ...]:
    """Creates one list per click, with the clicked document as the only relevant one and its weight.

    Losses take one weight per list and reduce document weights to `sum(w y) / sum(y)`, so the clicks of one list share
    a weight. With one list per click, a loss weighted by inverse propensities is the estimator of Joachims, Swaminathan
    and Schnabel (WSDM 2017), and for additive metrics that of Agarwal et al. (SIGIR 2019). Its expectation over clicks
    is the sum over documents of relevance times the loss of a list where only that document is relevant.

    Args:
      inputs: Tensors of a batch by name, [batch, ...], with "mask" [batch, list].
      clicks: [batch, list], > 0 for clicked documents, 0 for other documents, negative for padding.
      weights: [batch, list], >= 0, such as inverse propensities of the clicked documents. None for no weights.

    Returns:
      (inputs, labels), or (inputs, labels, weights) if `weights` is given: inputs with one row per click; labels
      float32 [clicks, list] with values 1, 0 or -1; weights [clicks]. A batch without clicks has no rows.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import data
      >>> features, clicks, positions = np.ones([3, 2]), np.array([1, 0, 1]), np.array([1, 2, 3])
      >>> propensities = 1.0 / positions
      >>> dataset = data.Lists.from_arrays(features, clicks, ["a"] * 3, weights=1.0 / propensities).batches(8)
      >>> inputs, labels, weights = next(iter(dataset.map(data.one_list_per_click)))
      >>> labels.numpy().tolist(), weights.numpy().tolist()
      ([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 3.0])
    """
    places = tf.where(clicks > 0)
    rows = {name: tf.gather(tensor, places[:, 0]) for name, tensor in inputs.items()}
    clicked = tf.one_hot(places[:, 1], tf.shape(clicks)[1])
    labels = tf.ensure_shape(tf.where(rows["mask"], clicked, -1.0), [None, clicks.shape[1]])
    return (rows, labels) if weights is None else (rows, labels, tf.gather_nd(weights, places))

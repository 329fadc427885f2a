"""Labels of lists: of clicks, of several objectives, and whether they order the documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments


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
      >>> dataset = data.from_arrays(features, clicks, ["a"] * 3, weights=1.0 / propensities).batches(8)
      >>> inputs, labels, weights = next(iter(dataset.map(data.one_list_per_click)))
      >>> labels.numpy().tolist(), weights.numpy().tolist()
      ([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 3.0])
    """
    places = tf.where(clicks > 0)
    rows = {name: tf.gather(tensor, places[:, 0]) for name, tensor in inputs.items()}
    clicked = tf.one_hot(places[:, 1], tf.shape(clicks)[1])
    labels = tf.ensure_shape(tf.where(rows["mask"], clicked, -1.0), [None, clicks.shape[1]])
    return (rows, labels) if weights is None else (rows, labels, tf.gather_nd(weights, places))


def draw_labels(
    dataset: tf.data.Dataset, weights: Sequence[float], *, seed: int, first_batch: int = 0
) -> tf.data.Dataset:
    r"""Draws the objective whose labels a list has: stochastic label aggregation.

    Objective k is drawn with the probability $p_k = w_k / \sum_j w_j$, for all documents of a list, each time that the
    list is in a batch (Carmel et al., "Multi-Objective Ranking Optimization for Product Search Using Stochastic Label
    Aggregation", WWW 2020). Any loss of one label can then train on several: the expected loss and gradient of a list
    are those of the linear scalarization $\sum_k p_k L(y_k, s)$; see `losses.MultiObjectiveLoss`.

    Args:
      dataset: Batches of (inputs, labels) or (inputs, labels, weights) with labels [batch, list, objectives], such as
        from `Lists.batches`.
      weights: One weight w >= 0 per objective, not all 0.
      seed: Seed of the draws, >= 0. A draw depends only on it, the number of the batch, and the place in the batch.
      first_batch: The number of the first batch, >= 0; for resumed training, that of the batches already seen. If `fit`
        iterates over the dataset once per epoch, each epoch has the same draws; let the dataset contain all epochs, by
        `num_epochs`, for new ones.

    Returns:
      The dataset with labels [batch, list].

    Raises:
      ValueError: If an argument is invalid, or the labels have another shape.

    Time and memory O(batch * list).

    Example:
      >>> from tfr_smooth import data
      >>> labels = [[2, 0], [1, 1], [0, 0]]  # relevance and purchase of three documents
      >>> lists = data.from_arrays([[0.1], [0.2], [0.3]], labels, ["a", "a", "b"])
      >>> dataset = lists.batches(2, num_epochs=3)
      >>> for inputs, drawn in data.draw_labels(dataset, [0.5, 0.5], seed=1):
      ...     print(drawn.numpy().tolist())
      [[2.0, 1.0], [0.0, -1.0]]
      [[0.0, 1.0], [0.0, -1.0]]
      [[0.0, 1.0], [0.0, -1.0]]
    """
    weights = _arguments.weights("weights", weights)
    seed = _arguments.integer("seed", seed, least=0)
    shape = dataset.element_spec[1].shape
    if shape.rank != 3 or shape[2] not in (None, len(weights)):
        raise ValueError(f"`dataset` must have labels [batch, list, {len(weights)}], one per weight, got {shape}.")
    logits = tf.math.log(tf.constant([weights]))

    @tf.autograph.experimental.do_not_convert
    def drawn(number: tf.Tensor, batch: tuple[Any, ...]) -> tuple[Any, ...]:
        inputs, labels, *others = batch
        seeds = tf.stack([tf.constant(seed % 2**63, tf.int64), number])
        objectives = tf.random.stateless_categorical(logits, tf.shape(labels)[0], seeds)[0]
        return inputs, tf.gather(labels, objectives, axis=2, batch_dims=1), *others

    return dataset.enumerate(_arguments.integer("first_batch", first_batch, least=0)).map(drawn)


def have_different_labels(lists: Any) -> np.ndarray:
    """Returns which lists have documents of different labels, so that a ranking can be wrong, bool [lists]."""
    differ, starts = np.zeros(len(lists), bool), lists.starts[:-1]
    for labels in map(lists.values, lists.roles.labels):
        differ |= np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
    return differ

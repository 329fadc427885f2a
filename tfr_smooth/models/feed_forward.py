"""The feed-forward scorer."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _serialization
from tfr_smooth.models.encoded_scorer import ENCODING_CHECKS, PADDING_SCORE, EncodedScorer
from tfr_smooth.models.member_layers import FeatureFunctions, MemberDense, MemberDropout, initializer

# Hidden layers by name, from Bruch et al., SIGIR 2019 ("B64: 3 hidden layers with 64, 32, and 16 units; progressively
# deeper by adding layers that grow by a factor of 2"); "linear" has no hidden layers.
_WIDTHS = (1024, 512, 256, 128, 64, 32, 16)
ARCHITECTURES: dict[str, tuple[int, ...]] = {"linear": ()}
ARCHITECTURES.update((f"B{_WIDTHS[first]}", _WIDTHS[first:]) for first in (4, 3, 2, 1, 0))

# Initial scores are near 0: a network learns faster if it has no random scores to unlearn. The scale was chosen with
# the other defaults of `Ranker`, on validation queries of MQ2007, MQ2008, the Yandex set and synthetic sets.
_OUTPUT_SCALE = 0.02


@_serialization.register
class FeedForwardScorer(EncodedScorer):
    r"""Scores each document of a list with a feed-forward network.

    The network consists of batch normalization of the input; a dense layer, ReLU and batch normalization per hidden
    layer; and a dense output layer:

    $$s(x) = w^\top h_L + b, \qquad h_l = \mathrm{BN}(\mathrm{ReLU}(W_l h_{l-1} + b_l)), \qquad h_0 = \mathrm{BN}(x)$$

    (Section 5.1 and Figure 2 of arXiv:2105.00942 with one hidden layer of 1024; Bruch et al., SIGIR 2019, with B1024.)
    The network only processes real documents: padding costs nothing and is excluded from the batch statistics. Under a
    `tf.distribute` strategy with several replicas, the batch statistics are those of the global batch.

    With `normalization="quantiles"`, the score has one more term, a sum of functions of single numbers as in
    generalized additive models (Hastie and Tibshirani, Statistical Science 1986): piecewise linear ones in the segments
    of `Quantiles`, which start at 0. They learn steps, and columns that are mostly zero, sooner than the network.

    With several members, the score is the mean over networks that differ in their random numbers. Such networks make
    different errors, and their mean ranks better than a single network. `fit` trains the networks at once, on the same
    batches, each with its own loss: the gradient of a network is that of training it alone. The training loss is the
    mean over the networks; metrics are those of the mean score.

    Args:
      hidden: Widths of the hidden layers, each >= 1, or a name: "linear" (no hidden layers), "B64", "B128", "B256",
        "B512", "B1024".
      normalization: Normalization of the input features: "min_max" (per query), "standardize" or "quantiles"
        (call `adapt` with the training set before training), "log1p" or None for no normalization. It is part of the
        model, so exported models take raw features.
      batch_norm: Whether to use batch normalization.
      batch_norm_momentum: Momentum of the moving statistics, in (0, 1). The papers' code uses 0.9. For training sets
        with many batches, a higher value is better (Bruch et al. use 0.99 there).
      dropout: Dropout rate of the inputs of each dense layer except the first, in [0, 1).
      members: Number of networks, >= 1.
      embeddings: The features that are codes of ids, sets and texts, as `tables` of `Embeddings`, which the networks
        share. They are not normalized.
      vectors: The features that are vectors, (first, length): the place of the first number, and the number of them.
        They are not normalized.
      embedding_dim: Length of the vectors of codes, >= 1.
      offset: The place of a feature that is added to the score, such as the score of another model: the network learns
        what it lacks. Of several members, every other one has it, so that the mean is good also if the other model is
        not. None adds nothing.
      weak: The places of features that rank no better than chance by themselves; of codes, that of the first one. Half
        of the members do not use them, of four the third and fourth, and the others have neither their quantiles nor
        functions of single ones.
      output_bias: Whether the output layer has a bias b. Losses that do not change with a shift of the scores, such as
        those with `shift_invariant`, cannot train it: with False, it does not drift by rounding errors.
      seed: Seed, >= 0, of the initial weights, the dropout and the noise. None uses Keras's global seed.
      name: Name of the model. None uses Keras's default.

    Call with a dict of `features` [batch, list, num_features] and an optional `mask` [batch, list] bool, False for
    padding; or with only the features. Returns scores [batch, list], float32; `PADDING_SCORE` (-1e30) at padding. With
    several members and `training=True`, returns the scores of each member, [members, batch, list].

    Raises:
      ValueError: If an argument is out of range.

    Time O(documents * weights), memory O(documents * width), counting only real documents.

    Example:
      >>> import tensorflow as tf
      >>> from tfr_smooth import models
      >>> scorer = models.FeedForwardScorer(hidden=[16])
      >>> inputs = {"features": tf.ones([2, 3, 5]), "mask": tf.constant([[True, True, False], [True, True, True]])}
      >>> scores = scorer(inputs)
      >>> print(scores.shape, float(scores[0, 2]) == float(tf.constant(-1e30)))
      (2, 3) True
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] | str = (1024,),
        normalization: str | None = None,
        batch_norm: bool = True,
        batch_norm_momentum: float = 0.9,
        dropout: float = 0.0,
        members: int = 1,
        embeddings: Sequence[Sequence[int]] = (),
        vectors: Sequence[Sequence[int]] = (),
        embedding_dim: int = 16,
        offset: int | None = None,
        weak: Sequence[int] = (),
        output_bias: bool = True,
        seed: int | None = None,
        name: str | None = "feed_forward_scorer",
    ) -> None:
        arguments = {key: value for key, value in locals().items() if key in _CHECKS}
        # Raw features may exceed float16. With mixed precision, the layers after the normalization cast.
        super().__init__(name=name, autocast=False)
        self._config = checked_arguments(**arguments)
        self.members = members
        # On a GPU, Keras 3 uses XLA by default. XLA would recompile for each number of real documents and compute on
        # padding.
        self.supports_jit = False
        widths = _widths(hidden)
        # Only with several replicas: synchronized statistics use E[x^2] - E[x]^2, which loses precision.
        synchronized = tf.distribute.get_strategy().num_replicas_in_sync > 1
        seeds = _seeds(seed)
        tower = []
        for depth, width in enumerate([*widths, 1]):
            if batch_norm:
                options = {"momentum": batch_norm_momentum, "synchronized": synchronized}
                tower.append(tf.keras.layers.BatchNormalization(**options))
            if depth > 0 and dropout:
                tower.append(MemberDropout(dropout, members=members, seed=next(seeds)))
            is_last = depth == len(widths)
            options = {"activation": None if is_last else "relu", "seed": next(seeds)}
            options["scale"] = _OUTPUT_SCALE if is_last else 2.0
            options["use_bias"] = output_bias or not is_last
            if members > 1:
                shared = depth == 0 and not batch_norm  # each network has its own batch normalization
                tower.append(MemberDense(width, members=members, shared_inputs=shared, **options))
            else:
                kernel = initializer(options.pop("scale"), options.pop("seed"))
                tower.append(tf.keras.layers.Dense(width, kernel_initializer=kernel, **options))
        self.tower = tower
        self._uses_segments = normalization == "quantiles"
        self.additive: FeatureFunctions | None = None
        self.set_encoding(next(seeds) if embeddings else None)
        self._own_inputs = members > 1 and batch_norm

    def build_network(self, width: int) -> None:
        """Creates the weights for encoded documents of this width."""
        if self._num_segments:
            self.additive = FeatureFunctions(members=self.members, name="additive")
            self.additive.build((None, self._num_segments))
        if self.members > 2 and self._config["weak"]:
            used = np.ones([self.members, width, 1], np.float32)
            used[np.ix_(np.arange(self.members) % 4 > 1, np.isin(self.encoded_places(), self._config["weak"]))] = 0.0
            next(layer for layer in self.tower if isinstance(layer, MemberDense)).used = used
        columns = width * (self.members if self._own_inputs else 1)
        for layer in self.tower:
            layer.build((None, columns))
            columns = layer.units * self.members if hasattr(layer, "units") else columns

    def call(self, inputs: Any, training: bool | None = None) -> tf.Tensor:
        """Returns scores [batch, list]; in training with several members, those of each, [members, batch, list]."""
        documents, segments, mask = self.encode(inputs)
        outputs = tf.tile(documents, [1, self.members]) if self._own_inputs else documents
        for layer in self.tower[:-1]:
            outputs = layer(outputs)
        by_member = self.members > 1 and training
        last = self.tower[-1] if by_member or self.members == 1 else self.tower[-1].mean
        scores = tf.cast(last(outputs), tf.float32)
        if self.additive is not None:
            scores += self.additive(segments) if by_member else self.additive.mean(segments)
        has_offset = np.arange(self.members) % 2 if self.members > 1 else np.ones(1)
        scores += self.offset(inputs, mask) * tf.constant(has_offset if by_member else [has_offset.mean()], tf.float32)
        if by_member:
            padding = tf.fill(tf.concat([tf.shape(mask), [self.members]], axis=0), PADDING_SCORE)
            return tf.transpose(tf.tensor_scatter_nd_update(padding, tf.where(mask), scores), [2, 0, 1])
        return tf.tensor_scatter_nd_update(tf.fill(tf.shape(mask), PADDING_SCORE), tf.where(mask), scores[:, 0])

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, **kwargs: Any
    ) -> tf.Tensor:
        """Called by Keras: computes the mean of the losses of the members, with the sum of their gradients.

        Args:
          x: The inputs.
          y: Labels [batch, list].
          y_pred: Scores [members, batch, list], or [batch, list].
          sample_weight: Weights of the lists or documents. None for none.
          **kwargs: Further arguments of `tf.keras.Model.compute_loss`.

        Returns:
          The loss, a scalar.
        """
        if y_pred.shape.rank < 3:
            return super().compute_loss(x, y, y_pred, sample_weight, **kwargs)
        y = tf.nest.map_structure(lambda labels: tf.concat([labels] * self.members, axis=0), y)
        if sample_weight is not None:
            sample_weight = tf.concat([sample_weight] * self.members, axis=0)
        y_pred = tf.reshape(y_pred, [-1, tf.shape(y_pred)[2]])
        loss = super().compute_loss(x, y, y_pred, sample_weight, **kwargs)
        return loss + (self.members - 1.0) * (loss - tf.stop_gradient(loss))

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Called by Keras: computes the metrics of the mean score.

        Args:
          x: The inputs.
          y: Labels [batch, list].
          y_pred: Scores [members, batch, list], or [batch, list].
          sample_weight: Weights of the lists or documents. None for none.

        Returns:
          The metrics by name.
        """
        if y_pred.shape.rank == 3:
            # The mean rounds, also at padding.
            y_pred = tf.where(y_pred[0] > PADDING_SCORE, tf.reduce_mean(y_pred, axis=0), PADDING_SCORE)
        return super().compute_metrics(x, y, y_pred, sample_weight)


def checked_arguments(**arguments: Any) -> dict[str, Any]:
    """Returns arguments of `FeedForwardScorer`, checked without TensorFlow."""
    return {name: _CHECKS[name](name, value) for name, value in arguments.items()}


def _hidden(name: str, value: Any) -> list[int] | str:
    widths = _widths(value)
    return value if isinstance(value, str) else widths


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **ENCODING_CHECKS,
    "hidden": _hidden,
    "batch_norm": _arguments.boolean,
    "output_bias": _arguments.boolean,
    "weak": lambda name, value: [
        _arguments.integer(name, place, least=0) for place in _arguments.sequence(name, value)
    ],
    "batch_norm_momentum": functools.partial(_arguments.real, above=0.0, below=1.0),
    "dropout": functools.partial(_arguments.real, least=0.0, below=1.0),
    "members": functools.partial(_arguments.integer, least=1),
}


def _seeds(seed: int | None) -> Iterator[int | None]:
    """Returns different seeds of the layers; None for no seed."""
    if seed is None:
        return itertools.repeat(None)
    return (int(state) >> 1 for state in np.random.SeedSequence(seed).generate_state(64))


def _widths(hidden: Sequence[int] | str) -> list[int]:
    if isinstance(hidden, str):
        return list(ARCHITECTURES[_arguments.choice("hidden", hidden, tuple(ARCHITECTURES))])
    if not isinstance(hidden, Sequence):
        raise ValueError(f"`hidden` must be a list of widths or a name, got {hidden!r}.")
    return [_arguments.integer("hidden", width, least=1) for width in hidden]

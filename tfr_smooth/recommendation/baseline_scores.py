"""What counts say of the next item, as a part of the scores: EASE and, of sequences, a Markov chain."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _serialization
from tfr_smooth.recommendation.baselines import EASE, MarkovChain, of_rows, sums_of_rows, transition_scores
from tfr_smooth.recommendation.interactions import Interactions, sparse
from tfr_smooth.recommendation.sequences import in_blocks

# The settings and weights before any are learned: the weights of MovieLens-100K and of Toys and Games are .4 to .8 and
# 7 to 15. And the settings that are tried.
DEFAULTS: dict[str, Any] = {"order": 10, "decay": 0.8, "similarity": 0.3, "strength": 100.0, "weights_of": [0.5, 8.0]}
# Those of factors, which have no chain. Selected on held-out items of MovieLens-100K and MovieLens-1M.
OF_FACTORS: dict[str, Any] = {"order": 0, "decay": 1.0, "similarity": 0.0, "strength": 300.0, "weights_of": [1.0]}
_FACTOR_STRENGTHS, _FACTOR_WEIGHTS = (300.0, 100.0, 1000.0), (1.0, 0.5, 2.0, 0.0)
_CHAINS: tuple[dict[str, Any], ...] = ({"order": 10, "decay": 0.8}, {"order": 3, "decay": 0.8})
_STRENGTHS = 30.0, 100.0, 300.0
_SIMILARITIES = 0.3, 1.0, 0.1, 0.0
# The least weight, so that a network without use only decides ties.
_LEAST = 0.05
# EASE is of the most frequent items, as its time is cubic in their number, and each item has weights for the others of
# the greatest ones only. On Toys and Games, with 11,924 items, all of them are not better.
_ITEMS, _NEIGHBORS = 10_000, 100
# The items whose regression chooses the strength, in a thirtieth of the time.
_FEWER_ITEMS = 3000
# What multiplies the most likely weights, which are those of a probability and not of the first ranks.
_CHAIN_FACTORS, _EASE_FACTORS = (1.0, 3.0), (1.0, 0.5, 0.0)
# The known items whose scores a new one has. Chosen on held-out items of MovieLens-100K.
_SIMILAR = 10
# The scores of all users that weights are learned from, which bounds memory, and their number. Not tuned.
_SCORES, _USERS = 2**24, 2000


@_serialization.register
class BaselineScores(_serialization.ConfiguredLayer, tf.keras.layers.Layer):
    r"""Scores of all items given the items of users in order: $w_1 \log p_i + w_2 e_i$.

    p is the probability of a `MarkovChain`, and e the score of `EASE` for the different items, by the 100 greatest
    weights of each. With a table of items, the transitions are $p(i \mid j) + w_0 s_{ji}$, with the `similarities` s.
    A new item with a vector has the mean $\log \tfrac{1}{10} \sum_j e^{s_j}$ over the scores s of the ten known items
    with the most similar vectors.

    Args:
      num_items: Number of items of the catalog, >= 1.
      num_transitions: Number of pairs of an item and one that followed it or is similar, >= 0.
      num_neighbors: Number of weights of EASE, >= 0.
      order: As for `MarkovChain`; 0 for no chain, and then $w_2$ is the only weight.
      decay: As for `MarkovChain`.
      similarity: $w_0$, >= 0.
      strength: As for `EASE`.
      length: Number of the latest items that EASE sees, >= 1.
      weights_of: $w_1$ and $w_2$, >= 0.
      num_new: Number of new items that have vectors, >= 0.
      **kwargs: `name` and other arguments of a Keras layer.

    Time O(items of a user * neighbors + items) per user.
    """

    def __init__(
        self,
        *,
        num_items: int,
        num_transitions: int,
        num_neighbors: int,
        order: int,
        decay: float,
        similarity: float,
        strength: float,
        length: int,
        weights_of: Sequence[float],
        num_new: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"dtype": "float32", **kwargs})
        self.num_items, self.num_transitions, self.num_neighbors = num_items, num_transitions, num_neighbors
        self.order, self.decay, self.similarity, self.strength = order, decay, similarity, strength
        self.length, self.weights_of, self.num_new = length, weights_of, num_new

        def weight(name: str, size: int, dtype: str = "float32") -> Any:
            return self.add_weight(name=name, shape=(size,), dtype=dtype, initializer="zeros", trainable=False)

        # Two matrices by rows: starts, columns and values.
        self._rows = [
            [weight("starts", num_items + 1, "int32"), weight("columns", size, "int32"), weight("values", size)]
            for size in (num_transitions, num_neighbors)
        ]
        self._smoothed, self._shares = weight("smoothed", num_items), weight("shares", num_items)
        # The items that new ones are similar to, and the column of each item, after all of which new ones follow.
        self._count = min(_SIMILAR, num_items - num_new)
        self._similar = weight("similar", num_new * self._count, "int32")
        self._columns = weight("all", num_items, "int32")
        self.built = True  # the constructor creates all weights

    @property
    def settings(self) -> dict[str, Any]:
        """Those of `Counts.layer`."""
        return {name: getattr(self, name) for name in DEFAULTS}

    def call(self, items: tf.Tensor) -> tf.Tensor:
        """Returns float32 [batch, items], given indices of items, int32 [batch, any], in order; below 0 for none."""
        return in_blocks(self._scores, items, self.num_items)

    def _scores(self, items: tf.Tensor) -> tf.Tensor:
        scores = sum(weight * part for weight, part in zip(self.weights_of, self.parts(items), strict=True))
        if not self.num_new:
            return scores
        similar = tf.gather(scores, tf.reshape(self._similar, [-1, self._count]), axis=1)
        of_new = tf.reduce_logsumexp(similar, axis=2) - np.log(self._count)
        return tf.gather(tf.concat([scores, of_new], axis=1), tf.convert_to_tensor(self._columns), axis=1)

    def set_new(self, is_known: np.ndarray, cosines: Callable[[np.ndarray], tf.Tensor]) -> None:
        """Sets the items that new ones are similar to.

        Args:
          is_known: Which items are not new, bool [items].
          cosines: A function from indices of items, [batch], to the cosines of their vectors with all: [batch, items].
        """
        new, places = np.flatnonzero(~is_known), np.arange(self.num_items)
        blocks = np.array_split(new, -(-len(new) * self.num_items // _SCORES))
        near = [tf.math.top_k(tf.where(is_known, cosines(block), -2.0), self._count).indices for block in blocks]
        self._similar.assign(tf.reshape(tf.concat(near, axis=0), [-1]))
        places[new] = self.num_items + np.arange(len(new))
        self._columns.assign(places)

    def parts(self, items: tf.Tensor) -> list[tf.Tensor]:
        """Returns the log-probabilities and the scores of EASE, without weights, given items after all padding.

        Without an order, there are only the latter.
        """
        transitions, neighbors = self._rows
        latest = items[:, -self.length :]
        places = tf.where(latest >= 0)
        pairs = tf.unique(places[:, 0] * self.num_items + tf.cast(tf.gather_nd(latest, places), tf.int64)).y
        rows = tf.cast(pairs % self.num_items, tf.int32)
        regression = sums_of_rows(neighbors, pairs // self.num_items, rows, tf.shape(items, tf.int64)[0])
        if not self.order:
            return [regression]
        scores, total = transition_scores(items, transitions, self._smoothed, self._shares, self.order, self.decay)
        return [tf.math.log(scores / total), regression]

    def parts_of(self, interactions: Interactions, users: np.ndarray) -> list[np.ndarray]:
        """Returns the same for users, given by their indices."""
        count = 1 + bool(self.order)
        items = interactions.latest(users, max(self.length, self.order)) if self.order else interactions.padded(users)
        both = in_blocks(lambda items: tf.concat(self.parts(items), axis=1), items[0], count * self.num_items)
        return np.split(both.numpy(), count, axis=1)


class Counts:
    """What `BaselineScores` have of interactions, fitted once for each setting.

    Args:
      interactions: The interactions, whose events have an order.
      length: Number of the latest items that EASE sees, >= 1.
      similar: The `similarities` of items by their table, or None.
    """

    def __init__(self, interactions: Interactions, length: int, similar: Any = None) -> None:
        self._num_items, self._length, self.similar = interactions.num_items, length, similar
        self._chain = functools.cache(lambda **options: MarkovChain(**options).fit(interactions))
        self._neighbors = functools.cache(lambda **options: EASE(**options).fit(interactions).neighbors(_NEIGHBORS))

    def layer(self, settings: Mapping[str, Any], num_new: int = 0, max_items: int = _ITEMS) -> BaselineScores:
        """Returns a layer with settings like those of `learned`, and EASE of so many items, unless its weight is 0."""
        neighbors = transitions = sparse.csr_array((self._num_items, self._num_items), dtype=np.float32)
        if settings["weights_of"][-1]:
            neighbors = self._neighbors(strength=settings["strength"], max_items=min(max_items, self._num_items))
        smoothed = shares = np.zeros(self._num_items, np.float32)
        if settings["order"]:
            chain = self._chain(order=settings["order"], decay=settings["decay"])
            transitions, smoothed, shares = chain.transitions, chain.smoothed, chain.shares
            if self.similar is not None:
                transitions = sparse.csr_array(transitions + settings["similarity"] * self.similar, dtype=np.float32)
        sizes = {"num_items": self._num_items, "num_transitions": transitions.nnz, "num_neighbors": neighbors.nnz}
        layer = BaselineScores(**sizes, length=self._length, num_new=num_new, **settings)
        new = np.zeros(num_new * layer._count), np.arange(self._num_items)
        layer.set_weights([*of_rows(transitions), *of_rows(neighbors), smoothed, shares, *new])
        return layer


def learned(
    start: Mapping[str, Any],
    network: Callable[[np.ndarray], np.ndarray],
    counts: Counts,
    train: Interactions,
    validation: Interactions,
    *,
    seed: int,
) -> dict[str, Any]:
    r"""Returns the settings and weights with the greatest likelihood of held-out items.

    With the scores s of the network, it is the mean over users and their items of the log of
    $\mathrm{softmax}(w_0 s + w_1 \log p + w_2 e)$ over the items that a user does not have: a log-linear pool, whose
    likelihood is concave in the weights. Those returned are relative to $w_0$. The ones to start from have a normal
    prior, with a standard deviation of their size, which counts like one user.

    Args:
      start: Settings and weights, as returned.
      network: A function from indices of users to the scores of all items.
      counts: Those of `train`.
      train: The interactions that the network was trained on.
      validation: The held-out items.
      seed: Seed of the sample of users, of whom there are as many as memory allows, at most 2,000.
    """
    from scipy.optimize import minimize

    users = np.random.default_rng(seed).permutation(np.flatnonzero(validation.items_per_user))
    users = np.sort(users[: max(1, min(_USERS, _SCORES // train.num_items))])
    scores, seen, relevant = network(users), train.dense(users), validation.matrix[users]
    relevant = relevant / relevant.sum(axis=1)[:, np.newaxis]
    expected = np.maximum([1.0, *start["weights_of"]], _LEAST)

    def fit(settings: dict[str, Any], max_items: int = _ITEMS) -> tuple[float, dict[str, Any]]:
        """Returns the loss, and the settings with the weights, of which the first one is that of the network."""
        layer = counts.layer({**settings, "weights_of": expected[1:].tolist()}, max_items=max_items)
        parts = [scores, *layer.parts_of(train, users)]
        of_relevant = np.array([relevant.multiply(part).sum() for part in parts]) / len(users)

        def loss(scale: np.ndarray) -> tuple[float, np.ndarray]:
            weights, prior = scale * expected, scale - 1.0
            total: Any = sum(np.float32(weight) * part for weight, part in zip(weights, parts, strict=True))
            total[seen] = -np.inf
            highest = total.max(axis=1, keepdims=True)
            powers = np.exp(total - highest)
            sums = powers.sum(axis=1)
            means = np.array([(np.einsum("ui,ui->u", powers, part) / sums).mean() for part in parts])
            value = (np.log(sums) + highest[:, 0]).mean() - weights @ of_relevant + 0.5 * prior @ prior / len(users)
            return float(value), expected * (means - of_relevant) + prior / len(users)

        found = minimize(loss, np.ones(3), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * 3)
        return found.fun, {**settings, "weights_of": found.x * expected}

    def likeliest(tried: Iterable[dict[str, Any]], max_items: int = _ITEMS) -> dict[str, Any]:
        return min((fit(each, max_items) for each in tried), key=lambda found: found[0])[1]

    best = likeliest({**start, **chain} for chain in _CHAINS)
    if counts.similar is not None:
        best = likeliest([{**best, "similarity": each} for each in _SIMILARITIES])
    strengths = [{**best, "strength": strength} for strength in _STRENGTHS]
    if (strength := likeliest(strengths, _FEWER_ITEMS)["strength"]) != best["strength"]:
        best = fit({**best, "strength": strength})[1]
    first, *others = best["weights_of"]
    return best | {"weights_of": [float(each / max(first, _LEAST)) for each in others]}


def selected(
    settings: Mapping[str, Any],
    network: Callable[[np.ndarray], np.ndarray],
    counts: Counts,
    train: Interactions,
    quality: Callable[[Callable[[np.ndarray], np.ndarray]], float],
) -> dict[str, Any]:
    """Returns settings of `learned` with those weights around theirs whose scores have the best quality.

    Args:
      settings: The settings. Without a chain, several strengths are tried.
      network: As for `learned`.
      counts: Those of `train`.
      train: The interactions that the network was trained on.
      quality: A function from a function like `network` to the quality of its scores.
    """

    def quality_of(found: Mapping[str, Any], max_items: int = _ITEMS) -> float:
        layer, weights = counts.layer(found, max_items=max_items), found["weights_of"]
        parts_of = functools.partial(layer.parts_of, train)
        return quality(lambda users: network(users) + sum(map(np.multiply, weights, parts_of(users))))

    factors: Any = itertools.product(_CHAIN_FACTORS, _EASE_FACTORS)
    if not settings["order"]:
        # Also after a model whose weight is 0.
        strengths = [{**OF_FACTORS, "strength": strength} for strength in _FACTOR_STRENGTHS]
        settings = max(strengths, key=lambda found: quality_of(found, _FEWER_ITEMS))
        factors = _FACTOR_WEIGHTS
    tried = [{**settings, "weights_of": np.multiply(settings["weights_of"], each).tolist()} for each in factors]
    return max(tried, key=quality_of)

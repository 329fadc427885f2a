"""Gradient-boosted trees of LightGBM, evaluated by TensorFlow."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _compiled, _serialization

_MOST_LEAVES = 63  # the bits of a positive int64
_ZERO = np.float32(1e-35)  # LightGBM's zero


@_serialization.register
@dataclasses.dataclass(frozen=True, kw_only=True)
class Trees(_serialization.Configurable):
    r"""The mean of models of LightGBM.

    $$f(x) = b + \frac{w}{M} \sum_{m=1}^M \sum_{t \in T_m} v_t(l_t(x))$$

    for the leaf $l_t(x)$ of the tree t and its value $v_t$. The leaf is found as in QuickScorer (Lucchese et al.,
    "QuickScorer: A Fast Algorithm to Rank Documents with Additive Ensembles of Regression Trees", SIGIR 2015), without
    a walk from node to node: a word has a bit for each leaf of a tree, and each node clears the bits of the side that x
    does not take. Here, the words of all trees are tabulated by the intervals of each feature between thresholds, so a
    document costs one search and one row of words per feature, and exactly one bit of each word remains.

    Args:
      models: LightGBM's texts of the M models, as of `Booster.model_to_string`, of trees of at most 63 leaves.
      weight: The factor w.
      bias: The constant b.
      weak: The features that ranked no better than shuffled ones when the trees were trained, which may have them.

    Raises:
      ValueError: If a model is none of LightGBM, is a random forest or one of several classes, or has larger or linear
        trees.

    Time O(documents * (features * trees + features * log(thresholds))), for the features that trees use; memory
    O(documents * trees), and O(thresholds * trees) for the table.

    Example:
      >>> import lightgbm
      >>> import numpy as np
      >>> from tfr_smooth.columns import Trees
      >>> x = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
      >>> booster = lightgbm.train({"verbosity": -1}, lightgbm.Dataset(x, x[:, 0]), num_boost_round=5)
      >>> trees = Trees(models=[booster.model_to_string()])
      >>> np.allclose(trees(x), booster.predict(x), rtol=1e-6)
      True
    """

    models: Sequence[str]
    weight: float = 1.0
    bias: float = 0.0
    weak: Sequence[int] = ()

    def __post_init__(self) -> None:
        """Checks the models."""
        for name in ("models", "weak"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._tables  # noqa: B018

    @functools.cached_property
    def _tables(self) -> _Tables:
        trees = [_trees_of(model) for model in self.models]
        if not trees or not all(trees):
            raise ValueError("`models` must be at least one text of a LightGBM model with trees, got others.")
        if any("\naverage_output\n" in of or "\nnum_tree_per_iteration=1\n" not in of for of in self.models):
            raise ValueError("`models` must be sums of trees for one class, got a random forest or several classes.")
        return _Tables.of([tree for of_model in trees for tree in of_model], len(trees))

    @functools.cached_property
    def _sum(self) -> Any:
        """The function of rows, which all functions that call it share with its tables."""
        return _compiled.traced(self._tables.sum, input_signature=[tf.TensorSpec([None, None], tf.float32)])

    def __call__(self, features: Any) -> tf.Tensor:
        """Returns the scores.

        Args:
          features: float32 [..., features], in the order of the training; NaN for missing values.

        Returns:
          float32 [...].
        """
        features = tf.convert_to_tensor(features, tf.float32)
        rows = tf.reshape(features, [-1, tf.shape(features)[-1]])
        return tf.reshape(self.weight * self._sum(rows) + self.bias, tf.shape(features)[:-1])

    def __str__(self) -> str:
        """Returns how many trees of how many features there are."""
        count, models = len(self._tables.values), len(self.models)
        weak = f"; {len(self.weak)} rank no better than shuffled ones" if self.weak else ""
        return f"Trees: {count} of {models} models, on {len(self.features)} features{weak}"

    @functools.cached_property
    def features(self) -> list[int]:
        """The features that trees use."""
        return list(self._tables.features)


class _Tree(NamedTuple):
    """A tree: of each node, its feature, threshold and type of decision, and the leaves of both sides as bits.

    Attributes:
      values: The values of the leaves.
      categories: The sets of categories that go left, of which the threshold of a node is the number.
    """

    features: np.ndarray
    thresholds: np.ndarray
    decisions: np.ndarray
    left: Sequence[int]
    right: Sequence[int]
    values: np.ndarray
    categories: Sequence[np.ndarray]

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> _Tree:
        def array(name: str, dtype: Any = np.int64) -> np.ndarray:
            try:
                return np.array(fields.get(name, "").split(), dtype)
            except OverflowError as error:
                raise ValueError(f"`models` must be of LightGBM, got {name}: {error}.") from None

        values = array("leaf_value", float)
        if len(values) > _MOST_LEAVES or fields.get("is_linear", "0") != "0":
            got = f"{len(values)}, linear" if len(values) <= _MOST_LEAVES else len(values)
            raise ValueError(f"`models` must have trees of constants and of at most {_MOST_LEAVES} leaves, got {got}.")
        left, right = children = array("left_child"), array("right_child")
        features, thresholds, decisions = array("split_feature"), array("threshold", float), array("decision_type")
        words, starts = array("cat_threshold", np.uint32), array("cat_boundaries")
        nodes, leaves, below = len(left), len(values), np.concatenate(children)
        places = thresholds[decisions & 1 > 0] if len(thresholds) == len(decisions) else np.array([-1.0])
        is_tree = (  # One way leads to each leaf, each child comes after its parent, and each set has its words.
            nodes == len(right) == len(features) == len(decisions)
            and sorted(below.tolist()) == [*range(-leaves, 0), *range(1, nodes)][leaves == 1 :]
            and bool((below > np.tile(np.arange(nodes), 2))[below >= 0].all() and (features >= 0).all())
            and bool(np.isin(places, np.arange(len(starts) - 1)).all() and (np.diff(starts) >= 0).all())
            and (not len(starts) or (starts[0] == 0 and starts[-1] == len(words)))
        )
        if not is_tree:
            raise ValueError("`models` must have trees with one way to each leaf, got a damaged one.")
        sides: list[list[int]] = [[0] * len(side) for side in children]
        for node in reversed(range(nodes)):  # The children of a node come after it.
            for side, of_node in zip(sides, children, strict=True):
                child = int(of_node[node])
                side[node] = 1 << ~child if child < 0 else sides[0][child] | sides[1][child]
        sets = [words[start:end].view(np.uint8) for start, end in itertools.pairwise(starts)]
        categories = [np.flatnonzero(np.unpackbits(of_node, bitorder="little")) for of_node in sets]
        return cls(features, thresholds, decisions, sides[0], sides[1], values, categories)

    def goes_left(self, node: int, x: np.ndarray) -> np.ndarray:
        """Returns the decisions of a node, as LightGBM makes them, for values float32 [n]."""
        kind = int(self.decisions[node])
        missing = kind >> 2 & 3  # 0: none, 1: zero, 2: NaN
        if kind & 1:
            return np.isin(np.trunc(x), self.categories[int(self.thresholds[node])])
        x = np.where(np.isnan(x) & (missing != 2), np.float32(0.0), x)
        is_missing = np.isnan(x) if missing == 2 else (np.abs(x) <= _ZERO) & (missing == 1)
        return np.where(is_missing, bool(kind & 2), x.astype(float) <= self.thresholds[node])

    def cuts(self, node: int) -> list[np.float32]:
        """Returns the float32 values x of which the decision of a node may differ from that of the next larger one."""
        kind = int(self.decisions[node])
        if kind & 1:
            most = self.categories[int(self.thresholds[node])].max(initial=0)
            return [np.float32(-1.0), *np.nextafter(np.arange(1, most + 2, dtype=np.float32), np.float32(0.0))]
        with np.errstate(over="ignore"):
            cut = np.float32(self.thresholds[node])
        cut = cut if cut <= self.thresholds[node] else np.nextafter(cut, np.float32(-np.inf))
        return [cut, *([np.nextafter(-_ZERO, np.float32(-np.inf)), _ZERO] if kind >> 2 & 3 == 1 else [])]


class _Tables(NamedTuple):
    """The tables of trees.

    Attributes:
      features: The features that trees use.
      cuts: The ends of the intervals of each, with padding, float32 [features, most].
      words: Of each feature, the leaves that each interval leaves, and last NaN, [intervals + 1, trees].
      values: float64 [trees, leaves].
    """

    features: tuple[int, ...]
    cuts: np.ndarray
    words: tuple[np.ndarray, ...]
    values: np.ndarray

    @classmethod
    def of(cls, trees: Sequence[_Tree], models: int) -> _Tables:
        """Returns the tables of the trees of so many models."""
        leaves = max(len(tree.values) for tree in trees)
        full = np.array([(1 << len(tree.values)) - 1 for tree in trees], np.int64)
        values = np.zeros([len(trees), leaves])
        nodes: dict[int, list[tuple[int, int]]] = {}
        for place, tree in enumerate(trees):
            values[place, : len(tree.values)] = tree.values / models
            for node, feature in enumerate(tree.features.tolist()):
                nodes.setdefault(feature, []).append((place, node))
        used, cuts, words = sorted(nodes), [], []
        for feature in used:
            ends = np.unique([cut for place, node in nodes[feature] for cut in trees[place].cuts(node)])
            examples = np.array([*ends, np.inf, np.nan], np.float32)
            table = np.tile(full, [len(examples), 1])
            for place, node in nodes[feature]:
                tree = trees[place]
                is_left = tree.goes_left(node, examples)
                table[:, place] &= ~np.where(is_left, tree.right[node], tree.left[node])
            cuts.append(ends)
            words.append(table.astype(np.int32 if leaves < 32 else np.int64))
        most = max(map(len, cuts), default=0)
        padded = [np.pad(ends, (0, most - len(ends)), constant_values=np.inf) for ends in cuts]
        return cls(tuple(used), np.array(padded, np.float32).reshape(len(used), most), tuple(words), values)

    def sum(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns float32 [rows], the sums of the values of the leaves of float32 [rows, features]."""
        count, leaves = self.values.shape
        if not self.features:
            return tf.fill(tf.shape(rows)[:1], np.float32(self.values.sum()))
        x = tf.gather(tf.transpose(rows), self.features)
        intervals = tf.searchsorted(tf.constant(self.cuts), x)
        lasts = np.array([[len(table) - 1] for table in self.words], np.int32)
        intervals = tf.where(tf.math.is_nan(x), lasts, intervals)
        word = tf.gather(self.words[0], intervals[0])
        for place, table in enumerate(self.words[1:], 1):
            word = tf.bitwise.bitwise_and(word, tf.gather(table, intervals[place]))
        # The logarithm of a power of two, which is one bit.
        leaf = tf.cast(tf.round(tf.math.log(tf.cast(word, tf.float32)) * np.float32(1.0 / np.log(2.0))), tf.int32)
        values = tf.gather(self.values.reshape(-1), leaf + leaves * np.arange(count, dtype=np.int32))
        return tf.cast(tf.reduce_sum(values, axis=1), tf.float32)


def _trees_of(model: Any) -> list[_Tree]:
    """Returns the trees of LightGBM's text of a model."""
    blocks = re.split(r"^Tree=\d+\n", str(model).partition("\nend of trees")[0], flags=re.MULTILINE)[1:]
    return [_Tree.of(dict(line.split("=", 1) for line in block.splitlines() if "=" in line)) for block in blocks]

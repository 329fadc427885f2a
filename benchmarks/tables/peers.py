"""Training of gradient-boosted trees: LightGBM, CatBoost and XGBoost, with the kinds of columns that each has."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tables.hand_made import HandMade
from tables.table import Table

# The most values of a column of text or ids that a trial keeps.
MOST_VALUES = (100, 2000, np.inf)
_TREES = 500  # at most; early stopping with the validation rows
_PATIENCE = 50


class Fitted(NamedTuple):
    """A trained model.

    Attributes:
      score: A function of rows to scores.
      seconds: Processor seconds of the training, with the columns made by hand.
      settings: What the validation rows chose, such as the number of trees.
    """

    score: Callable[[pd.DataFrame], np.ndarray]
    seconds: float
    settings: Mapping[str, Any] = {}


class Side(NamedTuple):
    """A ranker with the search of its settings.

    Attributes:
      package: Its package.
      draw: The settings of a trial; of the first one without a generator.
      train: Trains on parts of the table; without "valid" among them, the number of trees follows from it.
    """

    package: str
    draw: Callable[[Table, np.random.Generator | None], dict[str, Any]]
    train: Callable[[Table, dict[str, Any], int, tuple[str, ...]], Fitted]


def kept(table: Table, most: float) -> dict[str, str]:
    """Returns the kinds of the features without categories, ids, texts and sets of more values; all if none is left."""
    rows, kinds = table.part("train", "valid"), {name: table.kind(name) for name in table.features}
    few = {name: kind for name, kind in kinds.items() if kind in ("number", "date") or rows[name].nunique() <= most}
    return few or kinds


class _Made(NamedTuple):
    """The columns made by hand, those of the training rows, and the processor seconds of both."""

    columns: HandMade
    of_training_rows: pd.DataFrame
    seconds: float


class _Columns:
    """The columns of a peer: numbers, codes or texts of categories, and texts with words, if it has them.

    Args:
      table: The table.
      parts: The training parts.
      most: The most values of a category.
      has_text: Whether the peer has columns of text, which sets are too.
      made: The columns made by hand, if they are to be added.
    """

    def __init__(
        self, table: Table, parts: tuple[str, ...], most: float, *, has_text: bool, made: _Made | None
    ) -> None:
        kinds, few = {name: table.kind(name) for name in table.features}, kept(table, most)
        texts = [name for name, kind in kinds.items() if kind == "text" or kind.startswith("set:")]
        self.texts = texts if has_text else []
        self._kinds = {name: kind for name, kind in kinds.items() if name in few or name in self.texts}
        is_category = {name: kind not in ("number", "date") for name, kind in self._kinds.items()}
        self.categories = [name for name in self._kinds if is_category[name] and name not in self.texts]
        rows = table.part("train", "valid")
        self._known = {name: pd.Index(rows[name].dropna().unique()) for name in self.categories}
        self._has_text, self._train, self._made = has_text, table.part(*parts), made

    def of_training_rows(self) -> pd.DataFrame:
        return self._encoded(self._train, None if self._made is None else self._made.of_training_rows)

    def __call__(self, rows: pd.DataFrame) -> pd.DataFrame:
        return self._encoded(rows, None if self._made is None else self._made.columns(rows))

    def _encoded(self, rows: pd.DataFrame, made: pd.DataFrame | None) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        for name, kind in self._kinds.items():
            if kind == "number":
                columns[name] = rows[name].astype(float)
            elif kind == "date":
                columns[name] = (rows[name] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
            elif name in self.texts:
                separator = kind.partition("set:")[2]
                texts = rows[name].fillna("").astype(str)
                columns[name] = texts.str.replace(separator, " ", regex=False) if separator else texts
            elif self._has_text:  # CatBoost's categories are texts.
                columns[name] = rows[name].fillna("").astype(str)
            else:
                known = self._known[name]
                columns[name] = pd.Categorical.from_codes(known.get_indexer(rows[name]), categories=range(len(known)))
        encoded = pd.DataFrame(columns, index=rows.index)
        encoded = encoded if made is None else pd.concat([encoded, made], axis=1)
        # LightGBM and XGBoost refuse some names.
        return encoded.set_axis([f"column_{place}" for place in range(encoded.shape[1])], axis=1)

    def places(self, names: list[str]) -> list[int]:
        return [place for place, name in enumerate(self._kinds) if name in names]


class _Trees(NamedTuple):
    """What the three libraries need of a table and its settings for one training."""

    columns: _Columns
    train: tuple[pd.DataFrame, pd.Series, pd.Series]  # features, labels and queries
    valid: tuple[pd.DataFrame, pd.Series, pd.Series] | None  # for early stopping
    options: dict[str, Any]
    linear: bool
    seed: int


def _lightgbm(given: _Trees) -> tuple[Callable[[pd.DataFrame], Any], int]:
    import lightgbm

    features, labels, queries = given.train
    options, stopping = dict(given.options), {}
    if given.linear:
        options["label_gain"] = list(range(int(labels.max()) + 100))
    model = lightgbm.LGBMRanker(random_state=given.seed, n_jobs=1, verbose=-1, **options)
    if given.valid is not None:
        stopping = {
            "eval_X": (given.valid[0],),
            "eval_y": (given.valid[1],),
            "eval_group": [_lengths(given.valid[2])],
            "eval_at": [10],
            "callbacks": [lightgbm.early_stopping(_PATIENCE, verbose=False)],
        }
    model.fit(features, labels, group=_lengths(queries), **stopping)
    return model.predict, model.best_iteration_ or 0


def _catboost(given: _Trees) -> tuple[Callable[[pd.DataFrame], Any], int]:
    import catboost

    def pool(features: pd.DataFrame, labels: Any = None, queries: Any = None) -> Any:
        groups = None if queries is None else pd.factorize(queries)[0]
        categories, texts = map(given.columns.places, (given.columns.categories, given.columns.texts))
        columns = {"cat_features": categories, "text_features": texts}
        return catboost.Pool(features, labels, group_id=groups, **columns)

    model = catboost.CatBoost(
        {
            "loss_function": "YetiRank",
            "eval_metric": f"NDCG:top=10;type={'Base' if given.linear else 'Exp'}",
            "random_seed": given.seed,
            "thread_count": 1,
            "logging_level": "Silent",
            "allow_writing_files": False,
            **given.options,
        }
    )
    valid = None if given.valid is None else pool(*given.valid)
    model.fit(pool(*given.train), eval_set=valid, early_stopping_rounds=None if valid is None else _PATIENCE)
    return lambda features: model.predict(pool(features), thread_count=1), (model.get_best_iteration() or 0) + 1


def _xgboost(given: _Trees) -> tuple[Callable[[pd.DataFrame], Any], int]:
    import xgboost

    features, labels, queries = given.train
    options, stopping = dict(given.options), {}
    if given.valid is not None:
        options["early_stopping_rounds"] = _PATIENCE
        stopping = {
            "eval_set": [given.valid[:2]],
            "eval_qid": [pd.factorize(given.valid[2])[0]],
        }
    model = xgboost.XGBRanker(
        objective="rank:ndcg",
        eval_metric="ndcg@10",
        ndcg_exp_gain=not given.linear,
        enable_categorical=True,
        random_state=given.seed,
        n_jobs=1,
        **options,
    )
    model.fit(features, labels, qid=pd.factorize(queries)[0], verbose=False, **stopping)
    return model.predict, (model.best_iteration + 1 if stopping else 0)


def _lengths(queries: pd.Series) -> np.ndarray:
    return np.bincount(pd.factorize(queries)[0])


class _Peer(NamedTuple):
    fit: Callable[[_Trees], tuple[Callable[[pd.DataFrame], Any], int]]
    trees: str  # the argument of the number of trees
    search: Mapping[str, tuple[Any, ...]]


_PEERS = {
    "lightgbm": _Peer(
        _lightgbm,
        "n_estimators",
        {
            "learning_rate": (0.03, 0.06, 0.1),
            "num_leaves": (15, 31, 63),
            "min_child_samples": (10, 20, 50),
            "colsample_bytree": (0.6, 0.8, 1.0),
            "most_values": MOST_VALUES,
        },
    ),
    "catboost": _Peer(
        _catboost,
        "iterations",
        {
            "learning_rate": (0.03, 0.06, 0.1),
            "depth": (4, 6, 8),
            "l2_leaf_reg": (1.0, 3.0, 10.0),
            "most_values": MOST_VALUES,
        },
    ),
    "xgboost": _Peer(
        _xgboost,
        "n_estimators",
        {
            "learning_rate": (0.03, 0.06, 0.1),
            "max_depth": (4, 6, 8),
            "min_child_weight": (1.0, 5.0, 20.0),
            "colsample_bytree": (0.6, 0.8, 1.0),
            "most_values": MOST_VALUES,
        },
    ),
}


def side(name: str, *, trees: int | None = None) -> Side:
    """Returns LightGBM, CatBoost or XGBoost; with "+" after the name, with columns made by hand.

    Args:
      name: The name of the package, and perhaps "+".
      trees: The most trees; None for 500, or what the first trial of the table has.
    """
    package, hand_made = name.removesuffix("+"), name.endswith("+")
    peer = _PEERS[package]
    made: dict[tuple[str, ...], _Made] = {}  # by parts; trials share them

    def draw(table: Table, random: np.random.Generator | None) -> dict[str, Any]:
        settings: dict[str, Any] = {peer.trees: trees or _TREES}
        if random is not None:
            return settings | {name: random.choice(values).item() for name, values in peer.search.items()}
        first = dict(table.trees) if package == "lightgbm" else {}
        return settings | first | ({peer.trees: trees} if trees else {})

    def train(table: Table, settings: dict[str, Any], seed: int, parts: tuple[str, ...]) -> Fitted:
        importlib.import_module(package)
        options = dict(settings)
        start = time.process_time()
        if hand_made and parts not in made:
            columns_made = HandMade(table, *parts)
            of_training_rows = columns_made.of_training_rows()
            made[parts] = _Made(columns_made, of_training_rows, time.process_time() - start)
            start = time.process_time()
        most = options.pop("most_values", np.inf)
        columns = _Columns(table, parts, most, has_text=package == "catboost", made=made.get(parts))
        rows = table.part(*parts)
        train_set = columns.of_training_rows(), rows["label"], rows["query"]
        valid = None
        if "valid" not in parts:
            rows = table.part("valid")
            valid = columns(rows), rows["label"], rows["query"]
        predict, best = peer.fit(_Trees(columns, train_set, valid, options, table.linear, seed))
        seconds = time.process_time() - start + (made[parts].seconds if hand_made else 0.0)
        chosen = {} if valid is None else {peer.trees: max(1, best)}
        return Fitted(lambda rows: np.asarray(predict(columns(rows)), float), seconds, chosen)

    return Side(package, draw, train)


SIDES = tuple(f"{name}{hand_made}" for name in _PEERS for hand_made in ("", "+"))

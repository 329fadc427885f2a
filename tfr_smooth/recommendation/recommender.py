"""Matrix factorization trained on a ranking loss over the whole catalog."""

from __future__ import annotations

import io
import json
import os
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _files, losses, training
from tfr_smooth.recommendation import ranking
from tfr_smooth.recommendation.batches import dense_labels, user_batches
from tfr_smooth.recommendation.evaluation import evaluate
from tfr_smooth.recommendation.factors import SIMILARITIES, CatalogFactors
from tfr_smooth.recommendation.holding_out import hold_out
from tfr_smooth.recommendation.interactions import Interactions, sparse

# Hyperparameters of the default loss.
_SMOOTHI = {"alpha": 3.0, "delta": 0.01, "topn": 50}


class _Part(NamedTuple):
    """A part of the training; `prefix` is that of its arguments."""

    prefix: str
    loss: losses.RankingLoss
    epochs: int
    learning_rate: float
    batch_size: int

    def checked(self) -> _Part:
        """Returns the part if its numbers are valid."""
        start = f"{self.prefix}_" if self.prefix else ""
        _arguments.integer(f"{start}epochs", self.epochs, least=1)
        _arguments.real(f"{start}learning_rate", self.learning_rate, above=0.0)
        _arguments.integer(f"{start}batch_size", self.batch_size, least=1)
        return self


class Recommender:
    r"""Matrix factorization trained on a ranking loss over the whole catalog, without sampled negatives.

    Each user is a list with all items as documents, of which the user's items are relevant. Training starts with a
    softmax loss, each user with the same weight, and continues with `loss`, by default 1 - NDCG@50 of SmoothI. Each
    part ends with its best epoch by NDCG@20 on held-out items. Then both parts are repeated for these numbers of epochs
    with all items.

    Args:
      loss: A name in `losses.TABLE` or a ranking loss for the second part. None trains with the softmax loss only.
      dim: Dimension of the factors, >= 1.
      similarity: "cosine" or "dot".
      temperature: Divisor of the similarities, > 0.
      warm_start_epochs: Largest number of epochs with the softmax loss, >= 1.
      epochs: Largest number of epochs with `loss`, >= 1.
      warm_start_learning_rate: Learning rate of Adam in the first part, > 0.
      learning_rate: Learning rate of Adam in the second part, > 0.
      warm_start_batch_size: Users per batch in the first part, >= 1.
      batch_size: Users per batch in the second part, >= 1.
      patience: Epochs without a better NDCG@20 after which a part ends, >= 1.
      validation_fraction: Fraction of each user's items that are held out, in (0, 1).
      refit: Whether to train again with all items.
      seed: Seed of the factors, batches and held-out items, >= 0.
      verbose: Whether to print the progress.
      **loss_options: Hyperparameters of a loss given by name.

    Attributes:
      interactions_: The interactions of `fit`.
      model_: The trained `CatalogFactors`.
      best_epochs_: The numbers of epochs of the two parts.
      validation_: NDCG@20 on held-out items after each part.

    Raises:
      ValueError: If an argument is invalid.

    Time per epoch: that of the loss for lists of the length of the catalog. Memory: batch_size times items, besides the
    factors.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import recommendation
      >>> likes = np.kron(np.eye(4), np.ones([10, 8])) * (np.random.RandomState(0).rand(40, 32) < 0.7)
      >>> interactions = recommendation.Interactions(likes)
      >>> options = {"dim": 4, "warm_start_epochs": 10, "warm_start_batch_size": 4, "epochs": 2, "verbose": False}
      >>> recommender = recommendation.Recommender(**options).fit(interactions)
      >>> top = recommender.recommend([0, 39], topn=2)
      >>> bool((top.items[0] < 8).all() and (top.items[1] >= 24).all())
      True
    """

    def __init__(
        self,
        *,
        loss: str | losses.RankingLoss | None = "smoothi_ndcg",
        dim: int = 256,
        similarity: str = "cosine",
        temperature: float = 0.15,
        warm_start_epochs: int = 60,
        epochs: int = 10,
        warm_start_learning_rate: float = 0.01,
        learning_rate: float = 3e-4,
        warm_start_batch_size: int = 256,
        batch_size: int = 64,
        patience: int = 5,
        validation_fraction: float = 0.1,
        refit: bool = True,
        seed: int = 0,
        verbose: bool = True,
        **loss_options: Any,
    ) -> None:
        self._factors: dict[str, Any] = {
            "dim": _arguments.integer("dim", dim, least=1),
            "similarity": _arguments.choice("similarity", similarity, SIMILARITIES),
            "temperature": _arguments.real("temperature", temperature, above=0.0),
            "seed": _arguments.integer("seed", seed, least=0),
        }
        self._loss = self._checked_loss(loss, loss_options)
        softmax = losses.SoftmaxLoss()
        self._parts = [
            _Part("warm_start", softmax, warm_start_epochs, warm_start_learning_rate, warm_start_batch_size).checked()
        ]
        part = _Part("", self._loss or softmax, epochs, learning_rate, batch_size).checked()
        self._parts += [] if self._loss is None else [part]
        self._patience = _arguments.integer("patience", patience, least=1)
        self._fraction = _arguments.real("validation_fraction", validation_fraction, above=0.0, below=1.0)
        self._refit = _arguments.boolean("refit", refit)
        self._verbose = _arguments.boolean("verbose", verbose)

    @staticmethod
    def _checked_loss(loss: Any, options: dict[str, Any]) -> losses.RankingLoss | None:
        if isinstance(loss, str):
            return losses.get(loss, **{**(_SMOOTHI if loss == "smoothi_ndcg" else {}), **options})
        if options:
            raise TypeError(f"Unknown arguments {sorted(options)}: hyperparameters need the name of a loss.")
        return _arguments.instance("loss", loss, losses.RankingLoss, optional=True)

    def fit(
        self,
        interactions: Interactions,
        *,
        validation: Interactions | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
    ) -> Recommender:
        """Trains the factors.

        Args:
          interactions: The items of each user. Users and items without interactions keep random factors.
          validation: Further items of the users, which choose the epochs. None holds out `validation_fraction` of the
            items of each user.
          checkpoint_dir: Directory of checkpoints. The same call after an interruption resumes. None for none.

        Returns:
          The recommender.

        Raises:
          ValueError: If the validation has other users or items or no items, or the checkpoints are of other settings.
        """
        train = interactions
        if validation is None:
            train, validation = hold_out(interactions, items=self._fraction, seed=self._factors["seed"])
        train.check_same_ids("validation", validation, "interactions")
        self.interactions_ = train
        self.best_epochs_: list[int] = []
        self.validation_: list[float] = []
        model = self._train(train, validation, checkpoint_dir)
        if self._refit:
            everything = Interactions(train.matrix + validation.matrix, train.user_ids, train.item_ids)
            self.interactions_ = everything
            model = self._train(everything, None, checkpoint_dir)
        self.model_ = model
        return self

    def _train(
        self, train: Interactions, validation: Interactions | None, checkpoint_dir: str | os.PathLike[str] | None
    ) -> CatalogFactors:
        model = CatalogFactors(num_users=train.num_users, num_items=train.num_items, **self._factors)
        model(tf.zeros([1], tf.int32))
        for place, part in enumerate(self._parts):
            if validation is None:
                self._train_part(model, part._replace(epochs=self.best_epochs_[place]), train, None, checkpoint_dir)
            else:
                best = self._train_part(model, part, train, validation, checkpoint_dir)
                self.best_epochs_.append(best["epoch"] + 1)
                self.validation_.append(best["value"])
        return model

    def _train_part(
        self,
        model: CatalogFactors,
        part: _Part,
        train: Interactions,
        validation: Interactions | None,
        checkpoint_dir: str | os.PathLike[str] | None,
    ) -> dict[str, Any]:
        """Trains a part, and returns its best epoch and value if there is a validation."""
        model.compile(tf.keras.optimizers.Adam(part.learning_rate), part.loss)
        watched = None
        if validation is not None:
            watched = training.Validation(
                lambda model: {"ndcg_cut_20": self._quality(model, train, validation)},
                monitor="ndcg_cut_20",
                patience=self._patience,
            )
        seed, is_warm_start = self._factors["seed"], part.prefix != ""

        def batches(finished: int) -> tf.data.Dataset:
            remaining = part.epochs - finished
            users = user_batches(
                train, batch_size=part.batch_size, seed=seed, num_epochs=remaining, first_epoch=finished
            )
            return users.map(lambda users, items: _inputs(users, items, train.num_items, is_warm_start))

        name = f"{part.prefix or 'loss'}_{'all' if validation is None else 'held_out'}"
        training.train(
            model,
            batches,
            epochs=part.epochs,
            steps_per_epoch=-(-int((train.items_per_user > 0).sum()) // part.batch_size),
            validation=watched,
            checkpoint_dir=None if checkpoint_dir is None else os.path.join(checkpoint_dir, name),
            settings={**self._factors, "loss": losses.serialize(part.loss), "learning_rate": part.learning_rate},
            callbacks=[training.ProgressLog()] if self._verbose else [],
        )
        return {} if watched is None else {"epoch": watched.best_epoch, "value": watched.best_value}

    @staticmethod
    def _quality(model: CatalogFactors, train: Interactions, validation: Interactions) -> float:
        result = evaluate(model.catalog_scores, validation, seen=train, measures="ndcg_cut_20")
        return result.means["ndcg_cut_20"].mean

    def scores(self, users: Any) -> np.ndarray:
        """Scores all items.

        Args:
          users: Indices of users, [batch].

        Returns:
          float32 [batch, items]; higher is better.

        Raises:
          ValueError: If the recommender is not fitted, or an index is not one of a user.
        """
        if not hasattr(self, "model_"):
            raise ValueError("`fit` must be called first.")
        return self.model_.catalog_scores(self.interactions_.checked_users(users))

    def recommend(self, users: Any, *, topn: int = 10, exclude_seen: bool = True) -> ranking.TopItems:
        """Returns the best items of users.

        Args:
          users: Ids of users, [users].
          topn: Items per user, >= 1.
          exclude_seen: Whether to exclude the items that the recommender was trained with.

        Returns:
          The ids of the items, [users, topn], best first, and their scores. With fewer unseen items than `topn`, the
          last scores are -inf.

        Raises:
          ValueError: If a user is unknown, or `topn` is out of range.
        """
        indices = self.interactions_.user_indices(users)
        top = ranking.top_items(self.scores, self.interactions_, indices, topn=topn, exclude_seen=exclude_seen)
        return top._replace(items=self.interactions_.item_ids[top.items])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the factors, ids and seen items to one file.

        Args:
          path: The file, which should end in ".npz".
        """
        factors = [np.asarray(weights) for weights in self.model_.get_weights()]
        seen = self.interactions_
        content = io.BytesIO()
        np.savez(
            content,
            config=json.dumps(self.model_.get_config()),
            users=factors[0],
            items=factors[1],
            user_ids=seen.user_ids.astype("U") if seen.user_ids.dtype == object else seen.user_ids,
            item_ids=seen.item_ids.astype("U") if seen.item_ids.dtype == object else seen.item_ids,
            indices=seen.matrix.indices,
            indptr=seen.matrix.indptr,
        )
        with _files.replacing(os.fspath(path)) as unfinished, open(unfinished, "wb") as file:
            file.write(content.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recommender:
        """Reads a recommender that `save` wrote, to recommend and evaluate.

        Args:
          path: The file.

        Returns:
          The recommender. Its `fit` trains with the default settings.
        """
        with np.load(path) as content:
            config = json.loads(str(content["config"]))
            model = CatalogFactors(**config)
            model.set_weights([content["users"], content["items"]])
            shape = config["num_users"], config["num_items"]
            indices, indptr = content["indices"], content["indptr"]
            matrix = sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)
            ids = [content[name].tolist() for name in ("user_ids", "item_ids")]
        recommender = cls()
        recommender.model_, recommender.interactions_ = model, Interactions(matrix, *ids)
        return recommender


def _inputs(users: tf.Tensor, items: tf.Tensor, num_items: int, equal_users: bool) -> tuple[tf.Tensor, ...]:
    """Returns users, labels and, for equal shares of users in a sum over their items, weights."""
    labels = dense_labels(items, num_items)
    return (users, labels, 1.0 / tf.reduce_sum(labels, axis=1)) if equal_users else (users, labels)

"""Matrix factorization trained on a ranking loss over the whole catalog."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, losses, serving
from tfr_smooth.recommendation import catalog_order, recommender_file, servable
from tfr_smooth.recommendation.factors import SIMILARITIES
from tfr_smooth.recommendation.holding_out import hold_out
from tfr_smooth.recommendation.interactions import Interactions, sparse
from tfr_smooth.recommendation.stages import Stage, Training

# Hyperparameters of the default loss.
_SMOOTHI = {"alpha": 3.0, "delta": 0.01, "topn": 50}


class Recommender:
    r"""Matrix factorization trained on a ranking loss over the whole catalog, or over sampled candidates.

    Each user is a list with all items as documents, of which the user's items are relevant. Training starts with a
    softmax loss and continues with `loss`, by default 1 - NDCG@50 of SmoothI. Each stage ends with its best epoch by
    NDCG@20 on held-out items. Then both stages are repeated for these numbers of epochs with all items.

    Args:
      loss: A name in `losses.NAMES` or a ranking loss for the second stage. None trains with the softmax loss only.
      dim: Dimension of the factors, >= 1.
      similarity: "cosine" or "dot".
      temperature: Divisor of the similarities, > 0.
      item_bias: Whether the score of each item has a trained bias. Items with an encoder have none.
      propagation_layers: Number of LightGCN's propagations of the factors over the graph of users and items, >= 0, not
        with encoders: a vector is the mean of the factors of the neighbors at this distance or nearer. Training then
        needs fewer epochs. The trained model contains the propagated vectors only.
      warm_start_epochs: Largest number of epochs with the softmax loss, >= 0.
      epochs: Largest number of epochs with `loss`, >= 1.
      warm_start_learning_rate: Learning rate of Adam in the first stage, > 0.
      learning_rate: Learning rate of Adam in the second stage, > 0.
      warm_start_batch_size: Users per batch in the first stage, >= 1.
      batch_size: Users per batch in the second stage, >= 1.
      negatives: Number of sampled items per batch, >= 1; see `candidate_batches`. None trains on the whole catalog. The
        offsets correct the softmax loss only; other losses take the candidates as the catalog.
      candidates: In the second stage, the loss is over each user's items, this number of other items, >= 1, those with
        the best scores in the step, and the item with the lowest score. None takes all items. All items are scored, so
        `negatives` is then for the first stage only.
      patience: Epochs without a better NDCG@20 after which a stage ends, >= 1.
      validation_fraction: Fraction of each user's items that are held out, in (0, 1).
      refit: Whether to train again with all items.
      seed: Seed of the factors, batches and held-out items, >= 0. Encoders are initialized by their own seeds.
      user_encoder: A Keras layer or model from the features of users, float32 [batch, features], to their vectors,
        instead of factors. None for factors.
      item_encoder: The same for items (two towers).
      verbose: Whether to print the progress.
      **loss_options: Hyperparameters of a loss given by name.

    Attributes:
      interactions_: The interactions of `fit`.
      model_: The trained `CatalogFactors`.
      best_epochs_: The numbers of epochs of the two stages.
      validation_: NDCG@20 on held-out items after each stage.
      history_: "loss" and "val_ndcg_cut_20" of each epoch with held-out items, for each stage.

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
        temperature: float = 0.2,
        item_bias: bool = True,
        propagation_layers: int = 0,
        warm_start_epochs: int = 60,
        epochs: int = 10,
        warm_start_learning_rate: float = 0.01,
        learning_rate: float = 3e-4,
        warm_start_batch_size: int = 256,
        batch_size: int = 64,
        negatives: int | None = None,
        candidates: int | None = None,
        patience: int = 10,
        validation_fraction: float = 0.1,
        refit: bool = True,
        seed: int = 0,
        user_encoder: tf.keras.layers.Layer | None = None,
        item_encoder: tf.keras.layers.Layer | None = None,
        verbose: bool = True,
        **loss_options: Any,
    ) -> None:
        encoders = {
            name: _arguments.instance(name, encoder, tf.keras.layers.Layer, optional=True)
            for name, encoder in (("user_encoder", user_encoder), ("item_encoder", item_encoder))
        }
        layers = _arguments.integer("propagation_layers", propagation_layers, least=0)
        if layers and any(encoders.values()):
            raise ValueError(f"`propagation_layers` must be 0 with encoders, got {layers}.")
        self._loss = self._checked_loss(loss, loss_options)
        softmax = losses.SoftmaxLoss()
        first = Stage(
            "warm_start", softmax, warm_start_epochs, warm_start_learning_rate, warm_start_batch_size
        ).checked()
        second = Stage("", self._loss or softmax, epochs, learning_rate, batch_size).checked()
        stages = [stage for stage in ([first] if self._loss is None else [first, second]) if stage.epochs]
        if not stages:
            raise ValueError("`warm_start_epochs` must be an integer >= 1 without a loss, got 0.")
        self._training = Training(
            stages=stages,
            factors={
                "dim": _arguments.integer("dim", dim, least=1),
                "similarity": _arguments.choice("similarity", similarity, SIMILARITIES),
                "temperature": _arguments.real("temperature", temperature, above=0.0),
                "item_bias": _arguments.boolean("item_bias", item_bias) and item_encoder is None,
                "seed": _arguments.integer("seed", seed, least=0),
            },
            encoders=encoders,
            propagation_layers=layers,
            negatives=_arguments.integer_or_none("negatives", negatives, least=1),
            candidates=_arguments.integer_or_none("candidates", candidates, least=1),
            patience=_arguments.integer("patience", patience, least=1),
            verbose=_arguments.boolean("verbose", verbose),
        )
        self._fraction = _arguments.real("validation_fraction", validation_fraction, above=0.0, below=1.0)
        self._refit = _arguments.boolean("refit", refit)

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
        user_features: Any = None,
        item_features: Any = None,
        strategy: tf.distribute.Strategy | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
    ) -> Recommender:
        """Trains the factors, or the encoders.

        Args:
          interactions: The items of each user. Users and items without interactions keep random factors.
          validation: Further items of the users, which choose the epochs. None holds out `validation_fraction` of the
            items of each user.
          user_features: Numbers [users, features], in the order of `interactions.user_ids`, with `user_encoder`.
          item_features: Numbers [items, features], in the order of `interactions.item_ids`, with `item_encoder`.
          strategy: A `tf.distribute` strategy, such as from `training.get_strategy`: the users of each batch are shared
            by the replicas, each of which has all vectors. None trains on one device.
          checkpoint_dir: Directory of checkpoints. The same call after an interruption resumes. None for none.

        Returns:
          The recommender.

        Raises:
          ValueError: If the validation has other users or items or no items, features and encoders do not fit, or the
            checkpoints are of other settings.
        """
        train = interactions
        if validation is None:
            train, validation = hold_out(interactions, items=self._fraction, seed=self._training.factors["seed"])
        train.check_same_ids("validation", validation, "interactions")
        features = {"users": user_features, "items": item_features}
        options = features, strategy or tf.distribute.get_strategy(), checkpoint_dir
        model, watched = self._training.run(train, validation, *options)
        self.best_epochs_ = [stage.best_epoch + 1 for stage in watched]
        self.validation_ = [stage.best_value for stage in watched]
        self.history_ = [stage.history for stage in watched]
        if self._refit:
            train = Interactions(train.matrix + validation.matrix, train.user_ids, train.item_ids)
            model, _ = self._training.run(train, None, *options, epochs=self.best_epochs_)
        self.interactions_, self.model_ = train, model
        return self

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise ValueError("`fit` must be called first.")

    def scores(self, users: Any) -> np.ndarray:
        """Scores all items.

        Args:
          users: Indices of users, [batch].

        Returns:
          float32 [batch, items]; higher is better.

        Raises:
          ValueError: If the recommender is not fitted, or an index is not one of a user.
        """
        self._check_fitted()
        return self.model_.catalog_scores(self.interactions_.checked_users(users))

    def recommend(
        self, users: Any = None, *, histories: Any = None, topn: int = 10, exclude_seen: bool = True
    ) -> catalog_order.TopItems:
        """Returns the best items of users.

        Args:
          users: Ids of users of the training, [users].
          histories: Instead of `users`, the ids of the items of each user, a sequence of sequences, for users who are
            not in the training; see `CatalogFactors.history_vectors`.
          topn: Items per user, >= 1.
          exclude_seen: Whether to exclude the items that the recommender was trained with, or those of the histories.

        Returns:
          The ids of the items, [users, topn], best first, and their scores. With fewer unseen items than `topn`, the
          last ids are -1, or "" if ids are strings, and the last scores -inf.

        Raises:
          ValueError: If a user or item is unknown, not one of `users` and `histories` is given, or `topn` is out of
            range.
        """
        self._check_fitted()
        if (users is None) == (histories is None):
            raise ValueError(
                "One of `users` and `histories` must be given, got " + ("none." if users is None else "both.")
            )
        if histories is None:
            seen, scorer = self.interactions_, cast(catalog_order.CatalogScorer, self)
            indices = seen.user_indices(users)
        else:
            seen, scorer = self._histories(histories)
            indices = np.arange(seen.num_users)
        top = catalog_order.top_items(scorer, seen, indices, topn=topn, exclude_seen=exclude_seen)
        ids = np.append(self.interactions_.item_ids, servable.no_item(self.interactions_.item_ids))
        return top._replace(items=ids[top.items])

    def _histories(self, histories: Any) -> tuple[Interactions, catalog_order.CatalogScorer]:
        """Returns the interactions of histories, and the scores of all items for their indices."""
        items = [self.interactions_.item_indices(each) for each in histories]
        splits = np.cumsum([0, *map(len, items)])
        indices = np.concatenate([np.zeros(0, np.int64), *items])
        matrix = sparse.csr_array(
            (np.ones(len(indices)), indices, splits), shape=(len(items), len(self.interactions_.item_ids))
        )
        seen, model = Interactions(matrix, item_ids=self.interactions_.item_ids), self.model_
        return seen, lambda users: model.vector_scores(model.history_vectors(seen.padded(users))).numpy()

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        topn: int = 100,
        exclude_seen: bool = True,
        version: int | None = None,
        card: serving.ModelCard | None = None,
    ) -> Path:
        """Exports the recommender for TF Serving, with the ids of users and items.

        The signatures are

        - "users", also the default one: "users", ids [batch]. Unknown users get recommendations that do not depend on
          the user, like empty histories.
        - "histories": "histories", ids of items [batch, longest], padded by -1 or "". Unknown items are ignored.
        - "item_vectors": no inputs; "items", ids [items], and "vectors" [items, size], for an index of nearest
          neighbors such as ScaNN or FAISS, with the inner product as similarity.

        The first two return "items", ids [batch, topn], best first, their "scores" [batch, topn], and the "vectors" of
        the users [batch, size] that query such an index. The size is `dim`, and with biases one more. With fewer unseen
        items than `topn`, the last ids are -1 or "", and their scores `models.PADDING_SCORE`.

        Args:
          path: The directory of the versions.
          topn: Items per user, >= 1; fewer if the catalog is smaller.
          exclude_seen: Whether to exclude the items of the training, which are then part of the export, or those of the
            histories.
          version: The version, >= 1. None: the next one.
          card: Further content of the model card.

        Returns:
          The directory PATH/VERSION.

        Raises:
          ValueError: If the recommender is not fitted, an argument is out of range, the version exists, or -1 is the id
            of an item.
        """
        self._check_fitted()
        return servable.export(
            path,
            self.model_,
            self.interactions_,
            topn=min(_arguments.integer("topn", topn, least=1), self.interactions_.num_items),
            exclude_seen=_arguments.boolean("exclude_seen", exclude_seen),
            version=version,
            card=card or serving.ModelCard(loss=self._loss),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model, ids and seen items to one file.

        Args:
          path: The file, which should end in ".npz".

        Raises:
          ValueError: If the recommender is not fitted.
        """
        self._check_fitted()
        recommender_file.write(path, self.model_, self.interactions_)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recommender:
        """Reads a recommender that `save` wrote, to recommend and evaluate.

        Args:
          path: The file.

        Returns:
          The recommender. Its `fit` trains with the default settings.
        """
        recommender = cls()
        recommender.model_, recommender.interactions_ = recommender_file.read(path)
        return recommender

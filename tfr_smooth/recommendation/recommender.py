"""Matrix factorization and sequential models trained on a ranking loss over the whole catalog."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from typing_extensions import Self

from tfr_smooth import _arguments, _compiled, _serialization, losses
from tfr_smooth._estimator import Estimator, fitting
from tfr_smooth.columns import Column
from tfr_smooth.data.reading.ids import id_lists, listed, places_of
from tfr_smooth.recommendation import catalog_order, evaluation, servable
from tfr_smooth.recommendation.factors import CatalogModel
from tfr_smooth.recommendation.fit_data import FitData
from tfr_smooth.recommendation.interactions import Interactions
from tfr_smooth.recommendation.stages import FactorsTraining, RecommenderTraining, SequencesTraining


class Recommender(Estimator):
    r"""Vectors of users and items trained on a ranking loss over the whole catalog, or over sampled candidates.

    Each user is a list with all items as documents, of which the user's items are relevant; in a sequence, each item is
    predicted from those before it, as the relevant document of such a list. Training starts with a softmax loss and
    continues with `loss` over the best scored items, for factors by default 1 - NDCG@50 of SmoothI. Each stage ends
    with its best epoch on held-out items, by default by NDCG@20. Then both stages are repeated for these numbers of
    epochs with all items.

    Args:
      loss: A name in `losses.NAMES` or a ranking loss for the second stage. None trains with the softmax loss only.
        "auto": "smoothi_ndcg", or None for sequences.
      dim: Dimension of the vectors, >= 1. None: 256, or 128 for sequences.
      similarity: "cosine" or "dot".
      temperature: Divisor of the similarities, > 0. None: 0.2, or 0.07 for sequences.
      item_bias: Whether the score of each item has a trained bias.
      softmax_epochs: Largest number of epochs with the softmax loss, >= 0.
      epochs: Largest number of epochs with `loss`, >= 1.
      softmax_learning_rate: Learning rate of Adam in the first stage, > 0. None: 0.01, or 0.005 for sequences.
      learning_rate: Learning rate of Adam in the second stage, > 0.
      softmax_batch_size: Users per batch in the first stage, >= 1; for sequences, rows of `history_length` positions,
        each of which contains the sequences of one or several users. None: 256, or 5 for sequences.
      batch_size: The same in the second stage. None: 64, or 5 for sequences.
      negatives: Number of sampled items per batch of the first stage, >= 1; see `candidate_batches`. None trains on the
        whole catalog, as factors do where the candidates would be 40% of it, because that is faster.
      hard_negatives: In the second stage, the loss is over each user's items, this number of other items, >= 1, those
        with the best scores in the step, and the item with the lowest score; with as many as there are items, over the
        whole catalog. None: 300, or 100 for sequences.
      select_by: The validation measure that selects the epoch of each stage, one of trec_eval's as for
        `evaluation.trec_eval`, of at most 5,000 users; or "last" for the last epoch.
      patience: Epochs without improvement, >= 1, after which a stage stops. None never stops early.
      validation_fraction: Fraction of each user's items that `fit` holds out without `validation`, in [0, 1). 0 trains
        on all items and uses the last epoch of each stage.
      refit: Whether to train again with all items.
      kinds: The kinds of columns of tables that are not to be inferred, by name: "number", "category", "id", "text",
        or "set:SEPARATOR" for several values in one text, such as "set:|"; see `columns.infer_columns`.
      history_items: How the items of a user become the user's vector. None: the user has a factor, trained with them.
        "sequence": by causal self-attention in their order, as in SASRec (Kang and McAuley, ICDM 2018), with two blocks
        and one head, on the vectors of the items. The events must have an order, and the latest items are held out.
        Longer sequences are learned from in windows. Not with a table of users.
      history_length: Number of the latest items that a sequence contains, >= 1.
      baselines: Whether the scores have further summands, from counts: the scores of `EASE` for the 10,000 most
        frequent items and, of sequences, the log-probabilities of a `MarkovChain`, with transitions to similar items
        of a table. For factors, the strength and the weight with the best `select_by` of the held-out items are taken.
        For sequences, weights, order, strength and the weight of the similarities have the greatest likelihood of these
        items; of the weights and multiples of them, those with the best `select_by` are taken. The summands are no part
        of the vectors: False for an index of nearest neighbors that gives the same items.
      dropout: Dropout rate of the sequences in training, in [0, 1).
      seed: Seed of the factors, batches and held-out items, >= 0.
      verbose: Whether `fit` prints its progress.
      **loss_options: Hyperparameters of a loss given by its name.

    Attributes:
      interactions_: The interactions of the training and the validation, the items that users have.
      model_: The trained `CatalogFactors`, or `CatalogSequences`.
      history_: The training loss and, with held-out items, the measure of each epoch of both stages, by name.
      best_epoch_: The selected epoch, from 1 on; None without validation.

    Raises:
      ValueError: If an argument is invalid.

    Time per epoch: O(items * dim) per user, or with sequences per event, and that of the loss for a list of the items
    that it sees; of sequences, also O(history_length) per event. Memory: batch_size times items, besides the factors;
    with sequences, scores exist for a part of the events at a time, about 100 MB.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import recommendation
      >>> likes = np.kron(np.eye(4), np.ones([10, 8])) * (np.random.RandomState(0).rand(40, 32) < 0.7)
      >>> interactions = recommendation.Interactions(likes)
      >>> options = {"dim": 4, "softmax_epochs": 10, "softmax_batch_size": 4, "epochs": 2, "verbose": False}
      >>> recommender = recommendation.Recommender(**options).fit(interactions)
      >>> top = recommender.recommend([0, 39], topn=2)
      >>> bool((top.items[0] < 8).all() and (top.items[1] >= 24).all())
      True
    """

    interactions_: Interactions
    _arrays = Interactions.ARRAYS
    _columns: dict[str, list[Column]]  # of the tables of "users" and "items"

    def __init__(
        self,
        *,
        loss: str | losses.RankingLoss | None = "auto",
        dim: int | None = None,
        similarity: str = "cosine",
        temperature: float | None = None,
        item_bias: bool = True,
        softmax_epochs: int = 60,
        epochs: int = 10,
        softmax_learning_rate: float | None = None,
        learning_rate: float = 3e-4,
        softmax_batch_size: int | None = None,
        batch_size: int | None = None,
        negatives: int | None = None,
        hard_negatives: int | None = None,
        select_by: str = "ndcg_cut_20",
        patience: int | None = 10,
        validation_fraction: float = 0.1,
        refit: bool = True,
        kinds: Mapping[str, str] | None = None,
        history_items: str | None = None,
        history_length: int = 200,
        baselines: bool = True,
        dropout: float = 0.5,
        seed: int = 0,
        verbose: bool = True,
        **loss_options: Any,
    ) -> None:
        self._take(locals())
        _arguments.instance("kinds", self._params["kinds"], Mapping, optional=True)
        self._training()

    def _training(self) -> RecommenderTraining:
        """Returns the training that the arguments define."""
        kind = FactorsTraining if self._params["history_items"] is None else SequencesTraining
        return kind(self._params, self._loss_options)

    @fitting
    def fit(
        self,
        interactions: Interactions,
        *,
        items: Any = None,
        users: Any = None,
        item_id: str = "item",
        user_id: str = "user",
        validation: Interactions | None = None,
        init_model: Recommender | None = None,
        strategy: tf.distribute.Strategy | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        callbacks: Sequence[tf.keras.callbacks.Callback] = (),
    ) -> Self:
        """Trains the factors, and then the encoders of tables, which give vectors to new users and items.

        Args:
          interactions: The items of each user; their weights are the labels.
          items: A table of pandas, Polars, PyArrow or another library with the Arrow PyCapsule interface, with one row
            per item, whose columns may be numbers with missing values, categories, booleans, dates, ids, sets, texts
            and vectors. Items without interactions, which may be only in the table, have the output of an encoder of
            the columns, which learns the directions of the vectors of the other items. In sequences, known items also
            have transitions to similar ones; see `baselines`. None: no table.
          users: The same for users.
          item_id: The column of `items` with the ids.
          user_id: The column of `users` with the ids.
          validation: The validation set: further items of the users. None holds out `validation_fraction` of the items
            of each user, or nothing with `init_model`.
          init_model: A fitted recommender to continue from, such as with new days of data: with its interactions, their
            vectors and the columns of its tables. New users start from vectors of their items, and new items like
            those without it. Epochs are of the users in `interactions` and as many others, at least a tenth of all.
            Without `validation`, they are at most five with softmax and one with `loss`. The arguments of the vectors
            must be the same.
          strategy: A `tf.distribute` strategy, such as from `training.get_strategy`. None trains on one device.
            Replicas share the users of each batch, and each has all vectors.
          checkpoint_dir: Directory of checkpoints, the log and the best model. The same call after an interruption
            resumes after the last finished epoch. None writes nothing.
          callbacks: Further Keras callbacks.

        Returns:
          The recommender.

        Raises:
          ValueError: If an argument or the data is invalid. The message names the column.
        """
        plan = self._training()
        data = FitData(self._params, plan.held_out_by, interactions, validation, init_model)
        data.read_tables((users, user_id), (items, item_id))
        data.number()
        data.hold_out()
        self._check_patience(data.validation)
        encoders = plan.encoders(data.tables)
        options: dict[str, Any] = {"strategy": strategy, "checkpoint_dir": checkpoint_dir, "callbacks": callbacks}
        first = trained = plan.run(data, **options)
        if data.validation is not None and self._params["refit"]:
            data.learned, trained = data.whole, plan.run(data, epochs=first.epochs, **options)
        model = plan.completed(trained.model, first.model, data, "items" in encoders)
        model.set_new(data.learned, {what: encoder.learned for what, encoder in encoders.items()})
        self.model_, self.interactions_ = model, data.whole
        self.__dict__.pop("_prepared", None)  # of the model before
        self.history_, self.best_epoch_ = first.history, first.best_epoch
        self._columns = {what: table.columns for what, table in data.tables.items()}
        return self

    def update(self, interactions: Interactions, **options: Any) -> Self:
        """Continues the training with further interactions, such as those of a new day, with the same arguments.

        Args:
          interactions: The new interactions, also of new users and items. A pair that is not new gets the latest time
            and the sum of the weights.
          **options: Further arguments of `fit`: the tables, if it had some, with all users or items.

        Returns:
          The recommender.

        Raises:
          ValueError: As for `fit`.
        """
        return self.fit(interactions, init_model=self, **options)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"columns": _serialization.serialize(self._columns)}, self.interactions_.arrays()

    def _check(self, config: dict[str, Any], content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self.interactions_ = Interactions.from_arrays(arrays)
        for name in ("num_users", "num_items"):
            if config[name] != getattr(self.interactions_, name):
                raise ValueError(f"{name} is {config[name]}, but there are {getattr(self.interactions_, name)} ids")

    def _restore(self, model: tf.keras.Model, content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self.model_ = _arguments.instance("model", model, CatalogModel)
        self._columns = _serialization.deserialize(content["columns"])

    def predict(self, users: Any) -> np.ndarray:
        """Scores all items.

        Args:
          users: Indices of users, [batch].

        Returns:
          float32 [batch, items]; higher is better.

        Raises:
          ValueError: If the recommender is not fitted, or an index is not one of a user.
        """
        self._fitted()
        return self.model_.catalog_scores(self.interactions_.checked_users(users))

    def recommend(
        self,
        users: Any = None,
        *,
        histories: Any = None,
        topn: int = 10,
        exclude: Any = None,
        only: Any = None,
        exclude_seen: bool = True,
    ) -> catalog_order.TopItems:
        """Returns the best items of users, as exports of `export` do.

        Args:
          users: Ids of users, [users], read by the type of the training: 7, 7.0 and "7" are one id. Unknown users and,
            without a table of users, those without items get what an empty history gets. None: all users, in the order
            of `interactions_.user_ids`.
          histories: Instead of `users`, the ids of the items of each user, a sequence of sequences, for users who are
            not in the training, the latest item last; see `CatalogFactors.history_vectors`. Unknown items are ignored.
          topn: Items per user, >= 1.
          exclude: Ids of items to exclude: one list for all users, or exactly one per user. None: no further ones.
          only: Ids of the items to choose from, such as those in stock, in the same form. An empty list allows no item;
            None allows all, also those of a table of items that nobody has.
          exclude_seen: Whether to exclude the items of `interactions_`, or those of the histories.

        Returns:
          The ids of the items, [users, topn], best first, and their scores. With fewer items to choose from than
          `topn`, the last ids are -1, or "" if ids are strings, and the last scores -inf.

        Raises:
          ValueError: If an id is missing or cannot be one of the training, `users` and `histories` are given, there are
            lists for another number of users, or `topn` is out of range.
        """
        asked = self._asked(users, histories)
        exclude_seen = _arguments.boolean("exclude_seen", exclude_seen)
        filters = []
        for name, lists in (("exclude", exclude), ("only", only)):
            if lists is not None:
                ids = id_lists(f"`{name}`", lists, len(asked))
                padded = catalog_order.padded_items(name, ids, self.interactions_.item_ids)
                filters.append((np.broadcast_to(padded, [len(asked), padded.shape[1]]), name == "only"))

        def hidden(block: slice) -> np.ndarray:
            mask = self._seen(asked[block]) & exclude_seen
            for items, is_choice in filters:
                mask |= catalog_order.among(items[block], self.interactions_.num_items) ^ is_choice
            return mask

        return self._best(lambda rows: self._answer(rows, "scores"), asked, hidden, topn)

    def user_vectors(self, users: Any = None, *, histories: Any = None) -> np.ndarray:
        """Returns the vectors of users, the queries of an index of `item_vectors`.

        Args:
          users: Ids of users, [users], as for `recommend`. None: all users, in the order of `interactions_.user_ids`.
          histories: Instead of `users`, histories as for `recommend`.

        Returns:
          float32 [users, size]; the inner product with the vector of an item is its score, of which `baselines` are
          no part. The size is `dim`, with biases one more: the last component multiplies that of the item, its bias.

        Raises:
          ValueError: If `users` and `histories` are given, or ids are invalid as for `recommend`.

        Time of histories: see `CatalogFactors.history_vectors`.
        """
        asked = self._asked(users, histories)
        blocks = catalog_order.blocks(len(asked), self.interactions_.num_items)
        return np.concatenate(
            [self._answer(part, "vectors") for part in (asked[:0], *(asked[block] for block in blocks))]
        )

    def item_vectors(self) -> np.ndarray:
        """Returns the vectors of the items, the content of an index of nearest neighbors by inner product.

        Returns:
          float32 [items, size], in the order of `interactions_.item_ids`; see `user_vectors`.

        Raises:
          ValueError: If the recommender is not fitted.
        """
        return self._fitted().item_vectors().numpy()

    @functools.cached_property
    def _prepared(self) -> Callable[[str, int], Callable[[Any], Any]]:
        """Graphs of the answers by what they return and the dimensions of the request, traced when first asked for."""
        functions = self.model_.answers(self.model_.item_vectors())

        @functools.cache
        def graph(what: str, dimensions: int) -> Any:
            answers, place = functions[dimensions - 1], ("vectors", "scores").index(what)
            spec = tf.TensorSpec([None] * dimensions, tf.int32)
            return _compiled.traced(lambda asked: answers(asked)[place]).get_concrete_function(spec)

        return graph

    def _asked(self, users: Any, histories: Any) -> np.ndarray:
        """Returns the indices of users [users], or of items of histories [histories, longest]; -1 if unknown."""
        self._fitted()
        known = self.interactions_
        if users is not None and histories is not None:
            raise ValueError("One of `users` and `histories` must be given, got both.")
        if histories is not None:
            lists = [listed("`histories`", items) for items in listed("`histories`", histories)]
            return catalog_order.padded_items("histories", lists, known.item_ids)
        return np.arange(known.num_users) if users is None else places_of("users", users, known.user_ids)

    def _seen(self, asked: np.ndarray) -> np.ndarray:
        """Returns which items users have, or are in histories, bool [asked, items]."""
        known = self.interactions_
        if asked.ndim == 2:
            return catalog_order.among(asked, known.num_items)
        return known.dense(np.maximum(asked, 0)) & (asked >= 0)[:, np.newaxis]

    def _answer(self, asked: np.ndarray, what: str) -> np.ndarray:
        """Returns the "vectors" or "scores" of what `_asked` returns."""
        return self._prepared(what, asked.ndim)(tf.constant(asked, tf.int32)).numpy()

    def similar_items(self, items: Any, *, topn: int = 10) -> catalog_order.TopItems:
        """Returns the items whose vectors have the greatest cosines with those of given items.

        Args:
          items: Ids of items, [batch].
          topn: Items per item, >= 1.

        Returns:
          The ids of the other items, [batch, topn], most similar first, and the cosines, as for `recommend`.

        Raises:
          ValueError: If an item is unknown, or `topn` is out of range.
        """
        model, indices = self._fitted(), self.interactions_.item_indices(items)
        return self._best(model.item_cosines, indices, lambda block: self._seen(indices[block, np.newaxis]), topn)

    def _best(
        self, scorer: catalog_order.CatalogScorer, asked: np.ndarray, hidden: catalog_order.Hidden, topn: int
    ) -> catalog_order.TopItems:
        """Returns the ids of the best items for the rows of what the scorer is asked for."""
        known = self.interactions_.item_ids
        top = catalog_order.best_items(scorer, asked, known, hidden, topn)
        return top._replace(items=np.append(known, servable.no_item(known))[top.items])

    def evaluate(
        self, test: Interactions, *, measures: Sequence[str] | str = evaluation.DEFAULT_MEASURES
    ) -> evaluation.CatalogEvaluation:
        """Ranks all items that are not in `interactions_` for each user with test items.

        Args:
          test: The test items of users; all users and items must be known to the recommender.
          measures: As for `recommendation.evaluate`.

        Returns:
          The values of each user, and their means; see `recommendation.evaluate`.

        Raises:
          ValueError: If a user or item is unknown, or as for `recommendation.evaluate`.
        """
        self._fitted()
        seen = self.interactions_
        return evaluation.evaluate(self, test.renumbered(seen.user_ids, seen.item_ids), seen=seen, measures=measures)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        topn: int | None = 100,
        exclude_seen: bool = True,
        version: int | None = None,
        card: Mapping[str, Any] | None = None,
    ) -> Path:
        """Exports the recommender for TF Serving, with the ids of users and items.

        The signatures are

        - "users", also the default one: "users", ids [batch].
        - "histories": "histories", ids of items [batch, longest], the latest last, padded by -1 or "".
        - "excluding_users" and "excluding_histories": also "exclude", ids of items [batch, any] or, for all users,
          [1, any], padded by -1 or "".
        - "filtered_users" and "filtered_histories": also "exclude" and, in the same form, "only".
        - "item_vectors": no inputs; "items", ids [items], and "vectors" [items, size], as of `item_vectors`.

        All but the last return "items", ids [batch, topn], best first, their "scores" [batch, topn], and the "vectors"
        of the users [batch, size], as of `user_vectors`. With fewer items than `topn`, the last ids are -1 or "", and
        their scores `models.PADDING_SCORE`. Unknown ids and empty lists mean what they mean in `recommend`.

        Args:
          path: The directory of the versions.
          topn: Items per user, >= 1; fewer if the catalog is smaller. None: the whole catalog.
          exclude_seen: Whether to exclude the items of `interactions_`, which are then part of the export, or those of
            the histories.
          version: The version, >= 1. None: the next one.
          card: Further content of the model card, as for `serving.export_ranker`.

        Returns:
          The directory PATH/VERSION.

        Raises:
          ValueError: If the recommender is not fitted, an argument is out of range, or the version exists.
        """
        model, catalog = self._exported(path), self.interactions_.num_items
        options: dict[str, Any] = {"topn": min(_arguments.topn(topn) or catalog, catalog), "version": version}
        options["exclude_seen"] = _arguments.boolean("exclude_seen", exclude_seen)
        card = self._card(card, loss=self._training().loss)
        return servable.export(path, model, self.interactions_, card=card, **options)

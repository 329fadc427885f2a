"""`TextRanker`: training, ranking, evaluation and export of a reranker on a table of texts."""

from __future__ import annotations

import contextlib
import math
import os
import random
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _estimator, training
from tfr_smooth.data.lists import Lists
from tfr_smooth.data.reading.sources import ranked_rows
from tfr_smooth.evaluation.trec import DEFAULT_MEASURES, checked_measures
from tfr_smooth.text import architectures, checkpoints, text_lists
from tfr_smooth.text.encoder import Encoder
from tfr_smooth.text.reranker import Reranker
from tfr_smooth.training.softmax_first import softmax_first
from tfr_smooth.training.validation import selecting

# The model and its inputs, by the name of the architecture.
_ARCHITECTURES: dict[str, tuple[type[Reranker], type[text_lists.Inputs]]] = {
    "cross": (architectures.CrossEncoder, text_lists.PairInputs),
    "late": (architectures.LateInteraction, text_lists.LateInputs),
    "single": (architectures.SingleVector, text_lists.LateInputs),
}
_SEEDING = threading.Lock()  # Trainings in threads share the random numbers.


class TextRanker(_estimator.Estimator):
    r"""Reranks the documents of each query by their texts, with an encoder such as BERT and any ranking loss.

    A table has one row per query and document: the text of the query, the text of the document, and for training its
    label. Each training list consists of documents that are drawn anew in each epoch.

    Args:
      encoder: The folder of a Hugging Face checkpoint or of a KerasHub preset, or the name of a checkpoint on the
        Hugging Face Hub, as for `load_encoder`. With "cross", a checkpoint of a cross-encoder keeps its head.
      architecture: "cross" for a `CrossEncoder`, which reads query and document in one input; "late" for
        `LateInteraction`, which encodes each document once and ranks well without training; "single" for
        `SingleVector`, with one vector per text, which an index of nearest neighbors searches.
      loss: The name of a loss for `losses.get`, or a Keras loss.
      frozen_layers: Layers of the encoder, from the input on, that are not trained, >= 0. Their output is computed once
        per training.
      query_length: The most tokens of a query, >= 3; for "late" and "single".
      length: The most tokens of a document for "late" and "single", >= 3, or of query and document together for
        "cross", >= 5. Longer texts are truncated.
      passages: The most passages of a document, >= 1; for "cross". A document that does not fit in one input is split,
        and the outputs are averaged.
      relevant: The most documents with a label > 0 per training list, >= 1.
      negatives: The most documents with label 0 per training list, >= 1.
      epochs: Passes over the training queries, >= 0. 0 uses the encoder as it is.
      learning_rate: Adam's learning rate for the encoder, > 0.
      head_learning_rate: Adam's learning rate for the new weights, > 0.
      softmax_epochs: The first epochs, which train on `losses.SoftmaxLoss`: an integer >= 0 is their number, a float in
        [0, 1) their fraction. No effect on a loss that is not a `losses.RankingLoss`.
      batch_size: Queries per step, >= 1.
      micro_batches: Parts of a batch, >= 1, whose gradients are accumulated for one step, which saves memory.
      select_by: The validation measure that selects the epoch, one of trec_eval's as for `evaluation.trec_eval`; or
        "last" for the last epoch.
      patience: Epochs without improvement, >= 1, after which training stops. None never stops early.
      validation_fraction: Fraction of the queries that `fit` holds out without `validation`, in [0, 1). 0
        trains on all queries and uses the last epoch.
      seed: Seed of the new weights, the dropout, the training lists and the held-out queries, >= 0.
      verbose: Whether `fit` prints its progress.
      **loss_options: Hyperparameters of a loss given by its name.

    Attributes:
      model_: The Keras model of token ids, a `CrossEncoder`, a `LateInteraction` or a `SingleVector`.
      columns_: The columns of the table by role.
      history_: The training loss and the validation measure of each epoch, by name.
      best_epoch_: The selected epoch, from 1 on; None without validation.

    Raises:
      ValueError: If an argument is out of its range.

    Keras' global policy defines the precision, such as `tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")`.

    Example:
      >>> import keras_hub, pandas as pd, tempfile, tokenizers
      >>> from tfr_smooth import text
      >>> folder, words = tempfile.mkdtemp(), "[PAD] [UNK] [CLS] [SEP] [MASK] lift heat".split()
      >>> tokenizer = tokenizers.BertWordPieceTokenizer({word: number for number, word in enumerate(words)})
      >>> tokenizer.save(folder + "/tokenizer.json")
      >>> sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 4, "intermediate_dim": 8}
      >>> keras_hub.models.BertBackbone(vocabulary_size=7, **sizes).save_to_preset(folder)
      >>> frame = pd.DataFrame({"query": ["lift"] * 2 + ["heat"] * 2, "text": ["heat", "lift"] * 2})
      >>> frame["label"] = [0, 1, 1, 0]
      >>> ranker = text.TextRanker(encoder=folder, architecture="late", epochs=1, verbose=False).fit(frame)
      >>> ranker.rank(frame)["text"].tolist()
      ['lift', 'heat', 'heat', 'lift']
    """

    columns_: dict[str, str | None]

    def __init__(
        self,
        *,
        encoder: str | os.PathLike[str],
        architecture: str = "cross",
        loss: str | tf.keras.losses.Loss = "softmax",
        frozen_layers: int = 0,
        query_length: int = 48,
        length: int = 180,
        passages: int = 1,
        relevant: int = 2,
        negatives: int = 2,
        epochs: int = 10,
        learning_rate: float = 2e-5,
        head_learning_rate: float = 1e-3,
        softmax_epochs: float = 0,
        batch_size: int = 8,
        micro_batches: int = 1,
        select_by: str = "ndcg_cut_10",
        patience: int | None = 3,
        validation_fraction: float = 0.0,
        seed: int = 0,
        verbose: bool = True,
        **loss_options: Any,
    ) -> None:
        self._take(locals())
        p = self._params
        _estimator.check_shared(p)
        if not isinstance(p["encoder"], (str, os.PathLike)):
            raise ValueError(f"`encoder` must be a folder or a name on Hugging Face, got {p['encoder']!r}.")
        _arguments.choice("architecture", p["architecture"], tuple(_ARCHITECTURES))
        least = {"frozen_layers": 0, "query_length": 3, "length": 3}
        for name in ("passages", "relevant", "negatives", "micro_batches", *least):
            _arguments.integer(name, p[name], least=least.get(name, 1))
        _arguments.real("head_learning_rate", p["head_learning_rate"], above=0.0)
        _arguments.count_or_fraction("softmax_epochs", p["softmax_epochs"])
        self._make_loss()

    @classmethod
    def from_pretrained(
        cls,
        checkpoint: str | os.PathLike[str],
        *,
        query: str = "query",
        text: str = "text",
        label: str = "label",
        query_id: str | None = None,
        **params: Any,
    ) -> TextRanker:
        """Returns a ranker with the weights of a published reranker, which ranks without training.

        A cross-encoder (BERT, RoBERTa, XLM-RoBERTa, DistilBERT, ALBERT or ELECTRA for sequence classification with one
        label, such as "cross-encoder/ms-marco-MiniLM-L6-v2" or "BAAI/bge-reranker-base") keeps its head; its scores are
        those before an activation, unless its configuration names the sigmoid. A checkpoint of sentence-transformers
        ranks by the cosines of its vectors, and one of ColBERT, such as "colbert-ir/colbertv2.0", by those of tokens.
        `fit` trains it, or another ranker with it as `init_model`.

        Args:
          checkpoint: The folder or the name, as for the argument `encoder`.
          query: As for `fit`.
          text: As for `fit`.
          label: As for `fit`.
          query_id: As for `fit`.
          **params: Further arguments. The numbers of tokens are by default the checkpoint's, at most 512.

        Returns:
          The ranker.

        Raises:
          ValueError: If the checkpoint is no reranker, or has parts that are not supported; see `load_encoder`.
        """
        folder = checkpoints.folder_of(checkpoint)
        found = checkpoints.read(folder)
        if found is None or params.get("architecture") == "cross" != found.architecture:  # without a head
            expected = "a cross-encoder with one label, or a model of sentence-transformers or ColBERT"
            raise ValueError(f"`checkpoint` must be {expected}, got {os.fspath(checkpoint)!r}: fit it instead.")
        ranker = cls(encoder=checkpoint, **{"architecture": found.architecture, **found.sizes, **params})
        with _seeded(ranker._params["seed"]):
            ranker.model_ = ranker._make_model(None)
        ranker.columns_ = {"query": query, "text": text, "label": label, "query_id": query_id}
        ranker.history_, ranker.best_epoch_ = {}, None
        return ranker

    def _make_loss(self) -> tf.keras.losses.Loss:
        options = {name: self._params[name] for name in self._loss_options}
        return _estimator.loss_of("TextRanker", self._params["loss"], options)

    @_estimator.fitting
    def fit(
        self,
        X: Any,
        *,
        query: str = "query",
        text: str = "text",
        label: str = "label",
        query_id: str | None = None,
        validation: Any = None,
        init_model: TextRanker | None = None,
        strategy: tf.distribute.Strategy | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        callbacks: Sequence[tf.keras.callbacks.Callback] = (),
    ) -> TextRanker:
        """Trains the model.

        Args:
          X: A table of pandas, Polars, PyArrow or another library with the Arrow PyCapsule interface, with one row
            per query and document.
          query: The column of the texts of the queries.
          text: The column of the texts of the documents.
          label: The column of labels >= 0.
          query_id: The column of queries. None: equal texts are one query.
          validation: The validation set: a table with the same columns. None holds out `validation_fraction` of the
            queries, or uses the last epoch.
          init_model: A fitted ranker to continue from: with its weights. The arguments of the model must be the same.
          strategy: A `tf.distribute` strategy, such as from `training.get_strategy`. None trains on one device.
          checkpoint_dir: Directory of checkpoints, the log and the best model. The same call after an interruption
            resumes after the last finished epoch. None writes nothing.
          cache_dir: Directory of the output of frozen layers, as float16 on disk, which later calls with the same table
            reuse. None uses a temporary one.
          callbacks: Further Keras callbacks.

        Returns:
          The ranker.

        Raises:
          ValueError: If an argument or the data is invalid. The message names the column.
        """
        columns = {"query": query, "text": text, "label": label, "query_id": query_id}
        train, valid = self._split(X, validation, columns)
        with (strategy or training.get_strategy("none")).scope():
            model, switch = self._compiled(init_model)
        options: dict[str, Any] = {"checkpoint_dir": None if checkpoint_dir is None else Path(checkpoint_dir)}
        options |= {"settings": self._settings(train, valid, init_model), "callbacks": [switch, *callbacks]}
        self.history_, self.best_epoch_ = {}, None
        if self._params["epochs"]:
            with tempfile.TemporaryDirectory() as temporary:
                self._train(model, train, valid, cache_dir or temporary, options)
        with _seeded(self._params["seed"]):  # without the optimizer and the strategy: for one device
            self.model_, self.columns_ = model.copy(), columns
        return self

    def _split(self, X: Any, validation: Any, columns: dict[str, str | None]) -> tuple[Lists, Lists | None]:
        """Returns the lists for training and for validation."""
        p = self._params
        train, valid = text_lists.lists_of(X, columns, labeled=True), None
        if validation is not None:
            valid = text_lists.lists_of(validation, columns, labeled=True, argument="validation")
        elif p["validation_fraction"]:
            train, valid = train.split(p["validation_fraction"], seed=p["seed"])
        if valid is not None:
            argument = "validation_fraction" if validation is None else "validation"
            _estimator.check_validation(valid, argument, p["select_by"])
        self._check_patience(valid)
        return train, valid

    def _compiled(self, init_model: TextRanker | None) -> tuple[Reranker, tf.keras.callbacks.Callback]:
        """Returns the initial model with its optimizer and first loss, and the callback that switches the loss."""
        p = self._params
        with _seeded(p["seed"]):
            model = self._make_model(init_model)
        rates = {"learning_rate": p["learning_rate"], "epochs": p["epochs"], "constant": True}
        loss, switch = softmax_first(self._make_loss(), p["softmax_epochs"], **rates)
        model.compile(optimizer=tf.keras.optimizers.Adam(p["learning_rate"]), loss=loss)
        return model, switch

    def _make_model(self, init_model: TextRanker | None) -> Reranker:
        """Returns the initial model."""
        p, (model_class, inputs_class) = self._params, _ARCHITECTURES[self._params["architecture"]]
        folder = checkpoints.folder_of(p["encoder"])  # once: a name asks the hub
        found = checkpoints.read(folder, p["architecture"]) or checkpoints.Published(p["architecture"])
        encoder = checkpoints.load_encoder(folder, frozen_layers=p["frozen_layers"], **found.encoder)
        for name in inputs_class.ARGUMENTS:
            if name != "passages" and p[name] > (encoder.max_length or math.inf):
                raise ValueError(f"`{name}` must be at most the encoder's {encoder.max_length} tokens, got {p[name]}.")
        is_new = model_class is not architectures.CrossEncoder or not found.weights
        rate = p["head_learning_rate"] / p["learning_rate"] if is_new else 1.0
        model: Any = model_class(encoder, micro_batches=p["micro_batches"], head_rate=rate, **found.options)
        if found.weights:
            model.set_head(found.weights)
        if init_model is not None:
            model.set_weights_of(init_model._fitted())
        return model

    def _train(self, model: Reranker, train: Lists, valid: Lists | None, cache: Any, options: dict[str, Any]) -> None:
        """Trains the model with a cache of frozen layers, and sets the history and the selected epoch."""
        p, selection = self._params, None
        drawn = text_lists.TrainingLists(train, relevant=p["relevant"], negatives=p["negatives"], seed=p["seed"])
        inputs = self._inputs(model.encoder, *text_lists.texts_of(train))
        inputs.freeze(cache)
        if valid is not None:
            of_valid = self._inputs(model.encoder, *text_lists.texts_of(valid))
            of_valid.freeze(cache)
            value = lambda model, name: _estimator.evaluated(valid, of_valid.scores(model), [name])[name].mean  # noqa: E731
            selection = selecting(p, "ndcg", value, options["checkpoint_dir"])
        self.history_ = training.train(
            model,
            lambda finished: drawn.dataset(inputs, batch_size=p["batch_size"], epochs=range(finished, p["epochs"])),
            epochs=p["epochs"],
            steps_per_epoch=math.ceil(len(drawn) / p["batch_size"]),
            validation=selection,
            verbose=p["verbose"],
            title=f"Training on {len(train):,} queries, epochs: {p['epochs']}",
            **options,
        )
        self.best_epoch_ = None if selection is None else selection.best_epoch

    def _inputs(
        self, encoder: Encoder, queries: Sequence[str] = (), documents: Sequence[str] = ()
    ) -> text_lists.Inputs:
        """Returns the inputs of the model for pairs of a query and a document."""
        inputs_class = _ARCHITECTURES[self._params["architecture"]][1]
        sizes = {name: self._params[name] for name in inputs_class.ARGUMENTS}
        return inputs_class(encoder, queries, documents, **sizes)

    def _settings(self, train: Lists, valid: Lists | None, init_model: TextRanker | None) -> dict[str, Any]:
        """Returns the settings that a resumed training run must have in common, as JSON values."""
        data = {"data": train.digest(), "validation": None if valid is None else valid.digest()}
        start = {} if init_model is None else {"init_model": _estimator.digest(init_model._fitted().get_weights())}
        policy = tf.keras.mixed_precision.global_policy().name
        return _estimator.settings_of(self._params, policy=policy, **data, **start)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"columns": self.columns_}, {}

    def _restore(self, model: tf.keras.Model, content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self.model_, self.columns_ = model, content["columns"]

    def _lists(self, X: Any, *, labeled: bool = False) -> Lists:
        self._fitted()
        return text_lists.lists_of(X, self.columns_, labeled=labeled)

    def _scores(self, lists: Lists) -> np.ndarray:
        """Returns the scores of the documents in the order of the lists."""
        return self._inputs(self.model_.encoder, *text_lists.texts_of(lists)).scores(self.model_)

    def predict(self, X: Any) -> np.ndarray:
        """Scores documents.

        Args:
          X: A table as for `fit`; the columns of labels and query ids may be missing.

        Returns:
          float32 [rows], higher is better.

        Raises:
          ValueError: If the table does not have the columns of `fit`.
        """
        lists = self._lists(X)
        return self._scores(lists)[np.argsort(lists.rows)]

    def rank(self, X: Any, *, names: tuple[str, str] = ("score", "rank")) -> Any:
        """Ranks the rows of a table within each query.

        Args:
          X: A table as for `predict`.
          names: The names of the columns of scores and ranks.

        Returns:
          A copy of the table as a pandas DataFrame with the columns of scores and of ranks, from 1 on, queries in their
          order and the best document first; ties keep the order of the rows.

        Raises:
          ValueError: As for `predict`.
        """
        lists = self._lists(X)
        return ranked_rows(text_lists.table_of(X, self.columns_), lists, self._scores(lists), names)

    @property
    def query_column(self) -> str | None:
        """The column of queries, or of their texts."""
        self._fitted()
        return self.columns_["query_id"] or self.columns_["query"]

    def encode(self, texts: Any, *, role: str = "document") -> np.ndarray:
        """Returns the vectors of texts, whose inner products rank as the scores do; for `architecture="single"`.

        Equal texts are encoded once. Time and memory are those of the encoder for each text.

        Args:
          texts: Texts: a list, a column of pandas, Polars or PyArrow, or a NumPy array.
          role: "document" or "query": whether texts have at most `length` or `query_length` tokens.

        Returns:
          float32 [texts, width], vectors of length 1.

        Raises:
          ValueError: If `architecture` is not "single", or a value is not text. The message names the row.
        """
        model = self._fitted()
        if not model.has_one_vector:
            raise ValueError(f"`architecture` must be 'single' for `encode`, got {self._params['architecture']!r}.")
        _arguments.choice("role", role, ("document", "query"))
        values = text_lists.text_values("`texts`", texts)
        inputs = self._inputs(model.encoder, *((values, []) if role == "query" else ([], values)))
        assert isinstance(inputs, text_lists.LateInputs)
        return inputs.vectors(model, role)

    def evaluate(self, X: Any, *, measures: Sequence[str] = DEFAULT_MEASURES, by_query: bool = False) -> dict[str, Any]:
        """Computes trec_eval's measures.

        Args:
          X: A table with labels as for `fit`.
          measures: Names of measures, as for `evaluation.trec_eval`.
          by_query: Whether to return the value of each query.

        Returns:
          The mean over queries and its standard error, by measure, printed with one line per measure; or the values, by
          measure and by query, which `evaluation.randomization_test` compares with those of another ranker.

        Raises:
          ImportError: If pytrec_eval is not installed; the extra `tfr_smooth[evaluation]` includes it.
        """
        lists = self._lists(X, labeled=True)
        checked_measures(measures)  # before the slow step
        return _estimator.evaluated(lists, self._scores(lists), measures, by_query)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "saved_model",
        version: int | None = None,
        card: Mapping[str, Any] | None = None,
    ) -> Path:
        """Exports the model for TF Serving or ONNX Runtime, with the tokenizer.

        The model takes `input_ids`, `attention_mask` and, if the encoder has segments, `token_type_ids`, int64 [texts,
        tokens] of any sizes, as the encodings of the package `tokenizers` have them. "cross" returns the `scores`
        [texts] of pairs. The others return `vectors`, [texts, width] for "single" and [texts, tokens, width] for
        "late", 0 for padding.

        `tokenizer.json` truncates and pads the texts; `query_tokenizer.json` is for queries. The SavedModel has them in
        assets.extra. It loads without this package. The encoder's `prompts` are not part of the tokenizers: put them
        before the texts.

        Args:
          path: The directory of the versions, or for ONNX the folder.
          format: "saved_model" for TF Serving, or "onnx".
          version: The version of the SavedModel, >= 1. None: the next one.
          card: Further content of the model card of the SavedModel, as for `serving.export_ranker`.

        Returns:
          The directory PATH/VERSION, or the folder of the ONNX file.

        Raises:
          ValueError: If the version or the folder exists, or `passages` is not 1.
        """
        model = self._exported(path)
        _arguments.choice("format", format, ("saved_model", "onnx"))
        if "passages" in _ARCHITECTURES[self._params["architecture"]][1].ARGUMENTS and self._params["passages"] != 1:
            raise ValueError(f"`passages` must be 1 for an export, got {self._params['passages']}.")
        if format == "onnx":
            return architectures.onnx(model, Path(path), self._params)
        card = self._card(card, loss=self._make_loss())
        return architectures.saved_model(model, path, version, self._params, card)


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seeds Python's random numbers, from which Keras draws the seeds of new layers; afterwards, they are as before."""
    with _SEEDING:
        state = random.getstate()
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(state)

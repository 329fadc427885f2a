"""Dataset builders for the pipelines, from TF-Ranking's records and from LETOR text files."""

from __future__ import annotations

import abc
import os
from typing import Any

import tensorflow as tf
import tensorflow_ranking as tfr

from tfr_smooth import _arguments
from tfr_smooth.data import ElwcSchema, Lists
from tfr_smooth.data.batches import share_by_data
from tfr_smooth.tf_ranking.signatures import elwc_signatures

PADDING_LABEL = -1.0


class EpochDatasets(abc.ABC):
    """The interface of dataset builders that the pipelines use in addition to TF-Ranking's."""

    # The name of the input that is True for documents and False for padding.
    mask_feature_name: str | None
    # Seed of the training order; None draws a new order each time.
    seed: int | None

    @abc.abstractmethod
    def train_batches(self) -> int:
        """Returns the number of batches in one pass over the training data.

        Returns:
          The number of batches, including a smaller last batch.
        """

    @abc.abstractmethod
    def build_train_dataset(self, first_batch: int = 0) -> tf.data.Dataset:
        """Returns the infinite training dataset.

        Args:
          first_batch: Number of the first batch, >= 0. With a seed, a resumed training skips the batches before it.

        Returns:
          A dataset of (features, labels) or (features, labels, weights) batches.
        """


class _ElwcDatasets(EpochDatasets, tfr.keras.pipeline.BaseDatasetBuilder):
    """Mixin for TF-Ranking's builders of ELWC records."""

    def __init__(
        self,
        context_feature_spec: dict[str, Any],
        example_feature_spec: dict[str, Any],
        mask_feature_name: str | None,
        label_spec: Any,
        hparams: tfr.keras.pipeline.DatasetHparams,
        sample_weight_spec: tuple[str, tf.io.FixedLenFeature] | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        self.mask_feature_name = mask_feature_name
        self.seed = _arguments.integer_or_none("seed", seed, least=0)
        tasks = label_spec if isinstance(label_spec, dict) else {None: label_spec}
        checked = {task: _checked_label_spec(pair, mask_feature_name) for task, pair in tasks.items()}
        # The tasks that require a label for each document.
        self._required = [task for task, pair in tasks.items() if pair[1].default_value is None]
        super().__init__(
            context_feature_spec,
            example_feature_spec,
            mask_feature_name,
            checked if isinstance(label_spec, dict) else checked[None],
            hparams,
            sample_weight_spec,
        )

    def _features_and_labels(self, features: dict[str, tf.Tensor]) -> tuple[Any, ...]:
        """Overrides TF-Ranking's method: returns (features, labels) or (features, labels, weights)."""
        features, labels, *weights = super()._features_and_labels(features)
        if not self.mask_feature_name:
            return (features, labels, *weights)
        mask = features[self.mask_feature_name]
        for task in self._required:
            given = tf.reduce_all(tf.logical_or(~mask, (labels if task is None else labels[task]) >= 0.0))
            tf.debugging.Assert(given, [f"A document without a label{'' if task is None else f' of {task!r}'}."])
        labels = tf.nest.map_structure(lambda y: tf.where(mask, y, tf.constant(PADDING_LABEL, y.dtype)), labels)
        return (features, labels, *weights)

    def _read(self, pattern: Any, batch_size: int, list_size: int | None, *, shuffle: bool) -> tf.data.Dataset:
        """Returns one pass over the records."""
        dataset = tfr.data.build_ranking_dataset(
            file_pattern=pattern,
            data_format=tfr.data.ELWC,
            batch_size=batch_size,
            list_size=list_size,
            context_feature_spec={**self._context_feature_spec, **self._training_only_context_spec},
            example_feature_spec={**self._example_feature_spec, **self._training_only_example_spec},
            mask_feature_name=self.mask_feature_name,
            reader=self._hparams.dataset_reader,
            num_epochs=1,
            shuffle=shuffle,
            shuffle_buffer_size=1000,
            shuffle_seed=self.seed,
            sloppy_ordering=shuffle and self.seed is None,
        )
        return dataset.map(self._features_and_labels, num_parallel_calls=tf.data.AUTOTUNE)

    def _batches(self, pattern: Any, batch_size: int) -> int:
        """Returns the number of batches in one pass; reads the records without parsing them."""
        files = tf.data.Dataset.list_files(pattern, shuffle=False)
        records = files.flat_map(self._hparams.dataset_reader).reduce(tf.constant(0, tf.int64), lambda n, *_: n + 1)
        return -(-int(records) // batch_size)

    def train_batches(self) -> int:
        return self._batches(self._hparams.train_input_pattern, self._hparams.train_batch_size)

    def build_train_dataset(self, first_batch: int = 0) -> tf.data.Dataset:
        hparams = self._hparams
        dataset = self._read(hparams.train_input_pattern, hparams.train_batch_size, hparams.list_size, shuffle=True)
        # Without a seed, each pass has a new order, so there is nothing to skip.
        return share_by_data(dataset.repeat().skip(0 if self.seed is None else first_batch))

    def build_valid_dataset(self) -> tf.data.Dataset:
        hparams = self._hparams
        pattern, batch_size = hparams.valid_input_pattern, hparams.valid_batch_size
        dataset = self._read(pattern, batch_size, hparams.valid_list_size or hparams.list_size, shuffle=False)
        batches = self._batches(pattern, batch_size)
        return share_by_data(dataset.apply(tf.data.experimental.assert_cardinality(batches)))

    def build_signatures(self, model: tf.keras.Model) -> dict[str, Any]:
        return elwc_signatures(model, self._context_feature_spec, self._example_feature_spec, self.mask_feature_name)


def _checked_label_spec(pair: Any, mask_feature_name: str | None) -> tuple[str, tf.io.FixedLenFeature]:
    """Returns the spec of a label with a default value, which padding requires."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[1], tf.io.FixedLenFeature):
        raise ValueError(f"`label_spec` must be a pair of a name and a tf.io.FixedLenFeature, got {pair!r}.")
    name, spec = pair
    if tuple(spec.shape) != (1,):
        raise ValueError(f"`label_spec` must have the shape (1,), got {spec.shape!r} for {name!r}.")
    default = spec.default_value
    default = default[0] if isinstance(default, (list, tuple)) else default
    if not mask_feature_name and not (default is not None and default < 0):
        raise ValueError(
            f"`label_spec` must have a negative default_value if `mask_feature_name` is None, since padding would "
            f"become documents, got the default {default!r} for {name!r}."
        )
    return name, tf.io.FixedLenFeature(spec.shape, spec.dtype, PADDING_LABEL if default is None else default)


class SimpleDatasetBuilder(_ElwcDatasets, tfr.keras.pipeline.SimpleDatasetBuilder):
    """TF-Ranking's `SimpleDatasetBuilder` with a seed, exact validation and masked padding.

    It takes the same arguments, plus `seed`, and differs as follows:

    - Padding has the label -1, whatever the default value in the label's spec. A document without a label gets this
      default value; without a default value, it is an error.
    - The validation dataset contains each list once, in order. The training dataset is infinite and consists of whole
      passes; the last batch of a pass may be smaller.
    - Several workers can share one file (auto-sharding by data).
    - In exported models, the score of padding is `models.PADDING_SCORE` (-1e30) instead of TF-Ranking's -23.

    Args:
      context_feature_spec: Specs of the features of a query, by name.
      example_feature_spec: Specs of the features of a document, by name.
      mask_feature_name: Name of the input that is True for documents and False for padding, bool [batch, list]; None
        for no such input.
      label_spec: Name of the label and its `tf.io.FixedLenFeature` with the shape (1,).
      hparams: `tfr.keras.pipeline.DatasetHparams`, with files, batch sizes and list sizes.
      sample_weight_spec: Name and spec of the weight of a document; None for no weights.
      seed: Seed of the training order, >= 0. With a seed, a resumed training sees the same lists as an uninterrupted
        one, and all workers have the same order, which they require. None draws a new order each time.

    The datasets contain (features, labels) or (features, labels, weights). Labels and weights are float32
    [batch, list].

    Raises:
      ValueError: If the label's spec is not such a pair, or would turn padding into documents.

    Example:
      >>> import tensorflow as tf
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import tf_ranking
      >>> scalar = tf.io.FixedLenFeature([1], tf.float32, 0.0)
      >>> files = tfr.keras.pipeline.DatasetHparams("train*", "valid*", train_batch_size=32, valid_batch_size=32)
      >>> builder = tf_ranking.SimpleDatasetBuilder({}, {"price": scalar}, "mask", ("utility", scalar), files)
    """


class MultiLabelDatasetBuilder(_ElwcDatasets, tfr.keras.pipeline.MultiLabelDatasetBuilder):
    """TF-Ranking's `MultiLabelDatasetBuilder` with a seed, exact validation and masked padding.

    It takes the same arguments, plus `seed`, and has the differences that `SimpleDatasetBuilder` lists.

    Args:
      context_feature_spec: Specs of the features of a query, by name.
      example_feature_spec: Specs of the features of a document, by name.
      mask_feature_name: Name of the input that is True for documents and False for padding, bool [batch, list]; None
        for no such input.
      label_spec: For each task, the name of the label and its `tf.io.FixedLenFeature` with the shape (1,).
      hparams: `tfr.keras.pipeline.DatasetHparams`, with files, batch sizes and list sizes.
      sample_weight_spec: Name and spec of the weight of a document; None for no weights.
      seed: Seed of the training order, >= 0. With a seed, a resumed training sees the same lists as an uninterrupted
        one, and all workers have the same order, which they require. None draws a new order each time.

    The datasets contain (features, labels) or (features, labels, weights). Labels are a dict of task to float32
    [batch, list].

    Raises:
      ValueError: If a label's spec is not such a pair, or would turn padding into documents.

    Example:
      >>> import tensorflow as tf
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import tf_ranking
      >>> scalar = tf.io.FixedLenFeature([1], tf.float32, 0.0)
      >>> files = tfr.keras.pipeline.DatasetHparams("train*", "valid*", train_batch_size=32, valid_batch_size=32)
      >>> labels = {"click": ("click", scalar), "sale": ("sale", scalar)}
      >>> builder = tf_ranking.MultiLabelDatasetBuilder({}, {"price": scalar}, "mask", labels, files)
    """


class LetorDatasetBuilder(EpochDatasets, tfr.keras.pipeline.AbstractDatasetBuilder):
    """Dataset builder of the pipelines for LETOR text files, using `data.Lists`.

    Build the model from the attributes `context_feature_spec`, `example_feature_spec` and `mask_feature_name`. Exported
    models take records with the same feature names, as `data.letor_to_tfrecord` writes them.

    Args:
      hparams: `tfr.keras.pipeline.DatasetHparams`, with patterns of LETOR files (also ".gz"), batch sizes and list
        sizes. Its `dataset_reader` is not used.
      features: Name of a single input for all features, or a name with "{}", such as "custom_features_{}", for one
        input per feature, as a `GAMScorer` requires.
      num_features: Number of features of a document, >= 1; None for the highest index in the files.
      mask_feature_name: Name of the input that is True for documents and False for padding, bool [batch, list].
      shuffle: Whether each pass over the training lists has a new order.
      seed: Seed of the training order, >= 0. With a seed, a resumed training sees the same lists as an uninterrupted
        one, and all workers have the same order, which they require. None draws a new order each time.
      cache_dir: The cache folder, as for `data.Lists.from_letor`.

    The datasets contain (features, labels). Labels are float32 [batch, list], -1 for padding. The validation dataset
    contains each list once, in order. The training dataset is infinite and consists of whole passes; the last batch of
    a pass may be smaller.

    Raises:
      ValueError: If an argument is out of its range, or a file has bad input, as `path:line: what is wrong`.

    The constructor reads both sets, unless they are in the cache folder.

    Example:
      >>> import tempfile
      >>> import tensorflow_ranking as tfr
      >>> from tfr_smooth import data, tf_ranking
      >>> paths = data.write_synthetic_letor(tempfile.mkdtemp(), num_queries=(4, 2, 2))
      >>> files = tfr.keras.pipeline.DatasetHparams(str(paths["train"]), str(paths["valid"]), 2, 2)
      >>> builder = tf_ranking.LetorDatasetBuilder(files)
      >>> builder.train_batches(), builder.example_feature_spec["features"].shape
      (2, [32])
    """

    def __init__(
        self,
        hparams: tfr.keras.pipeline.DatasetHparams,
        *,
        features: str = "features",
        num_features: int | None = None,
        mask_feature_name: str = "mask",
        shuffle: bool = True,
        seed: int | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self._hparams = hparams
        patterns = {"train": hparams.train_input_pattern, "valid": hparams.valid_input_pattern}

        def read(width: int | None) -> dict[str, Lists]:
            each = {"num_features": width, "cache_dir": cache_dir}
            return {part: Lists.from_letor(pattern, **each) for part, pattern in patterns.items()}

        found = read(num_features)
        widths = [lists.num_features for lists in found.values()]
        self._lists = found if widths[0] == widths[1] else read(max(widths))
        self._num_features = max(widths)
        self._shuffle = _arguments.boolean("shuffle", shuffle)
        self.seed = _arguments.integer_or_none("seed", seed, least=0)
        self._scalars = "{}" in features
        self.mask_feature_name: str = mask_feature_name
        self.context_feature_spec: dict[str, Any] = {}
        self.example_feature_spec = ElwcSchema(features=features).feature_spec(self._num_features)

    def _inputs_and_labels(
        self, inputs: dict[str, tf.Tensor], labels: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        columns = [inputs["features"]]
        if self._scalars:
            columns = tf.split(inputs["features"], self._num_features, axis=2)
        features = dict(zip(self.example_feature_spec, columns, strict=True))
        if self._hparams.convert_labels_to_binary:
            labels = tf.where(labels > 0.0, tf.ones_like(labels), labels)
        return {**features, self.mask_feature_name: inputs["mask"]}, labels

    def _batches(self, part: str, batch_size: int) -> int:
        return -(-len(self._lists[part]) // batch_size)

    def train_batches(self) -> int:
        """Returns the number of batches in one pass over the training data.

        Returns:
          The number of batches, including a smaller last batch.
        """
        return self._batches("train", self._hparams.train_batch_size)

    def build_train_dataset(self, first_batch: int = 0) -> tf.data.Dataset:
        """Returns the infinite training dataset.

        Args:
          first_batch: Number of the first batch, >= 0. With a seed, a resumed training skips the batches before it;
            without a seed, it is ignored.

        Returns:
          A dataset of (features, labels).
        """
        passes, batches = divmod(first_batch, self.train_batches()) if self.seed is not None else (0, 0)
        dataset = self._lists["train"].batches(
            self._hparams.train_batch_size,
            list_size=self._hparams.list_size,
            num_epochs=None,
            first_epoch=passes,
            shuffle=self._shuffle,
            seed=self.seed,
        )
        return dataset.skip(batches).map(self._inputs_and_labels)

    def build_valid_dataset(self) -> tf.data.Dataset:
        """Returns the validation dataset, which contains each list once.

        Returns:
          A dataset of (features, labels).
        """
        list_size = self._hparams.valid_list_size or self._hparams.list_size
        dataset = self._lists["valid"].batches(self._hparams.valid_batch_size, list_size=list_size)
        return dataset.map(self._inputs_and_labels)

    def build_signatures(self, model: tf.keras.Model) -> dict[str, Any]:
        """Returns the serving signatures `predict` and `regress`, which take records of the same features.

        Args:
          model: The model.

        Returns:
          Concrete functions by the name of the signature; `regress` is the default signature.
        """
        return elwc_signatures(model, self.context_feature_spec, self.example_feature_spec, self.mask_feature_name)

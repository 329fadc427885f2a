"""Dataset builders for the pipelines, of TF-Ranking's records and of LETOR text."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf
import tensorflow_ranking as tfr

from tfr_smooth import _arguments
from tfr_smooth.data import ElwcSchema, read_letor, scan_letor
from tfr_smooth.data.options import share_by_data
from tfr_smooth.tf_ranking.signatures import elwc_signatures

PADDING_LABEL = -1.0


class EpochDatasets(abc.ABC):
    """What the pipelines need of a dataset builder beyond TF-Ranking's interface."""

    # The name of the input that is True for documents and False for padding.
    mask_feature_name: str | None
    # Of the order of the training data; None draws another order each time.
    seed: int | None

    @abc.abstractmethod
    def train_batches(self) -> int:
        """Returns the number of batches in one pass over the training data."""

    @abc.abstractmethod
    def build_train_dataset(self, first_batch: int = 0) -> tf.data.Dataset:
        """Returns the endless training dataset, for a training that has seen `first_batch` batches."""


class _ElwcDatasets(EpochDatasets, tfr.keras.pipeline.BaseDatasetBuilder):
    """What the two builders of ELWC records share: mixed into those of TF-Ranking."""

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
        # The tasks whose documents must have a label.
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
        """TF-Ranking's hook: (features, labels) or (features, labels, weights)."""
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
        """One pass over the records."""
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
        """The number of batches of one pass: reads the records without parsing them."""
        files = tf.data.Dataset.list_files(pattern, shuffle=False)
        records = files.flat_map(self._hparams.dataset_reader).reduce(tf.constant(0, tf.int64), lambda n, *_: n + 1)
        return -(-int(records) // batch_size)

    def train_batches(self) -> int:
        return self._batches(self._hparams.train_input_pattern, self._hparams.train_batch_size)

    def build_train_dataset(self, first_batch: int = 0) -> tf.data.Dataset:
        hparams = self._hparams
        dataset = self._read(hparams.train_input_pattern, hparams.train_batch_size, hparams.list_size, shuffle=True)
        # Without a seed the order is drawn anew each time.
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
    """A label's spec with a default, as padding needs one."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[1], tf.io.FixedLenFeature):
        raise ValueError(f"`label_spec` must be a pair of a name and a tf.io.FixedLenFeature, got {pair!r}.")
    name, spec = pair
    if tuple(spec.shape) != (1,):
        raise ValueError(f"`label_spec` must have the shape (1,), got {spec.shape!r} for {name!r}.")
    default = spec.default_value
    default = default[0] if isinstance(default, (list, tuple)) else default
    if not mask_feature_name and not (default is not None and default < 0):
        raise ValueError(
            f"`label_spec` must have a negative default_value, or `mask_feature_name` be given: else padding would "
            f"become documents. Got the default {default!r} for {name!r}."
        )
    return name, tf.io.FixedLenFeature(spec.shape, spec.dtype, PADDING_LABEL if default is None else default)


class SimpleDatasetBuilder(_ElwcDatasets, tfr.keras.pipeline.SimpleDatasetBuilder):
    """TF-Ranking's `SimpleDatasetBuilder`, with the same arguments and a seed, without its pitfalls.

    - Padding has the label -1 whatever default value the label's spec has; a document without a label gets that
      default, or is an error where there is none.
    - The validation dataset is the whole set once, in order; that of training is endless, in whole passes whose last
      batch may be smaller.
    - Several workers share one file, too (auto-sharding by data).
    - In the exports padding scores `models.PADDING_SCORE` (-1e30); in TF-Ranking's about -23.

    Args:
      context_feature_spec: Specs of the query's features by name.
      example_feature_spec: Specs of a document's features by name.
      mask_feature_name: The name of the input that is True for documents and False for padding, [batch, list] bool.
      label_spec: The label's name and its tf.io.FixedLenFeature of the shape (1,).
      hparams: `tfr.keras.pipeline.DatasetHparams`: files, batch and list sizes.
      sample_weight_spec: The name and spec of a weight of each document, or None.
      seed: Seed of the order of training, >= 0. With it, a resumed training sees the lists of an uninterrupted one, and
        several workers have the same order, as they need. None draws another order each time.

    Datasets are of (features, labels) or (features, labels, weights): labels and weights float32 [batch, list].

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
    """TF-Ranking's `MultiLabelDatasetBuilder`, with the same arguments and a seed, without its pitfalls.

    What differs is what `SimpleDatasetBuilder` lists.

    Args:
      context_feature_spec: Specs of the query's features by name.
      example_feature_spec: Specs of a document's features by name.
      mask_feature_name: The name of the input that is True for documents and False for padding, [batch, list] bool.
      label_spec: For each task the label's name and its tf.io.FixedLenFeature of the shape (1,).
      hparams: `tfr.keras.pipeline.DatasetHparams`: files, batch and list sizes.
      sample_weight_spec: The name and spec of a weight of each document, or None.
      seed: Seed of the order of training, >= 0. With it, a resumed training sees the lists of an uninterrupted one, and
        several workers have the same order, as they need. None draws another order each time.

    Datasets are of (features, labels) or (features, labels, weights): labels a dict of task to float32 [batch, list].

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
    """Feeds the pipelines from LETOR text files, by `data.read_letor`.

    Build the model from `context_feature_spec`, `example_feature_spec` and `mask_feature_name`, which are attributes.
    The exports take records with the same names, as `data.letor_to_tfrecord` writes them.

    Args:
      hparams: `tfr.keras.pipeline.DatasetHparams`: patterns of LETOR files (also ".gz"), batch and list sizes. Its
        `dataset_reader` is not used.
      features: "features" or another name for one feature of all numbers; with "{}" in it, such as
        "custom_features_{}", one per feature, as a `GAMScorer` needs them.
      num_features: Numbers of every document, >= 1; None for the highest index in the files.
      mask_feature_name: The name of the input that is True for documents and False for padding.
      shuffle_buffer: Training lists among which the next is drawn; 0 keeps the order of the files.
      seed: Seed of the order of training, >= 0. With it, a resumed training sees the lists of an uninterrupted one, and
        several workers have the same order, as they need. None draws another order each time.
      cache: Whether to keep the parsed lists in memory.

    Datasets are of (features, labels): labels float32 [batch, list], -1 at padding. That of validation is the whole set
    once, in order; that of training is endless, in whole passes whose last batch may be smaller.

    Raises:
      ValueError: If an argument is out of its range, or bad input, as `path:line: what is wrong`.

    The constructor reads both sets once, to count lists and features.

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
        shuffle_buffer: int = 1000,
        seed: int | None = None,
        cache: bool = False,
    ) -> None:
        self._hparams = hparams
        train, valid = scan_letor(hparams.train_input_pattern), scan_letor(hparams.valid_input_pattern)
        self._num_features = _arguments.integer(
            "num_features", num_features or max(train.num_features, valid.num_features), least=1
        )
        self._queries = {"train": train.queries, "valid": valid.queries}
        self._shuffle_buffer = shuffle_buffer
        self.seed = _arguments.integer_or_none("seed", seed, least=0)
        self._cache = cache
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
        return -(-self._queries[part] // batch_size)

    def train_batches(self) -> int:
        """Returns the number of batches in one pass over the training data."""
        return self._batches("train", self._hparams.train_batch_size)

    def build_train_dataset(self, first_batch: int = 0) -> tf.data.Dataset:
        """Returns the endless training dataset, for a training that has seen `first_batch` batches."""
        passes, batches = divmod(first_batch, self.train_batches()) if self.seed is not None else (0, 0)
        dataset = read_letor(
            self._hparams.train_input_pattern,
            batch_size=self._hparams.train_batch_size,
            num_features=self._num_features,
            list_size=self._hparams.list_size,
            num_epochs=None,
            first_epoch=passes,
            shuffle_buffer=self._shuffle_buffer,
            seed=self.seed,
            cache=self._cache,
        )
        return dataset.skip(batches).map(self._inputs_and_labels)

    def build_valid_dataset(self) -> tf.data.Dataset:
        """Returns the validation dataset: each list once."""
        batch_size = self._hparams.valid_batch_size
        dataset = read_letor(
            self._hparams.valid_input_pattern,
            batch_size=batch_size,
            num_features=self._num_features,
            list_size=self._hparams.valid_list_size or self._hparams.list_size,
            cache=self._cache,
        )
        batches = tf.data.experimental.assert_cardinality(self._batches("valid", batch_size))
        return dataset.map(self._inputs_and_labels).apply(batches)

    def build_signatures(self, model: tf.keras.Model) -> dict[str, Any]:
        """Returns the signatures `predict` and `regress`, which take records of the same features."""
        return elwc_signatures(model, self.context_feature_spec, self.example_feature_spec, self.mask_feature_name)

"""Export of a ranker as a versioned SavedModel that only needs TensorFlow to load."""

from __future__ import annotations

import datetime
import importlib.util
import os
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments, _estimator
from tfr_smooth.data.reading.checks import warn
from tfr_smooth.models import PADDING_SCORE, TableScorer
from tfr_smooth.serving import versions
from tfr_smooth.serving.servable import INVALID_SCORE, RankerInputs, make_servable, zero

# The path of the requests, defined by TF Serving.
_REQUESTS = os.path.join(versions.EXTRA, "tf_serving_warmup_requests")
# Documents of the warm-up list. Not tuned: the first call of a signature is slow, whatever the length is.
_WARM_UP = 100


def export_ranker(
    model: tf.keras.Model,
    path: str | os.PathLike[str],
    *,
    num_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    example_feature_spec: Mapping[str, Any] | None = None,
    context_feature_spec: Mapping[str, Any] | None = None,
    mask_feature_name: str | None = None,
    missing_values: bool = False,
    version: int | None = None,
    serving_default: str | None = None,
    warmup: bool = True,
    card: Mapping[str, Any] | None = None,
) -> Path:
    """Exports a ranker as PATH/VERSION, a SavedModel that TF Serving discovers, warms up and serves.

    The signatures, with float32 scores, int32 indices and bool masks, are:

    - `serving_default`: `features` [batch, list, num_features], where every document is real -> `scores` [batch, list].
    - `rank`: `features` and `mask` [batch, list] -> `scores`; `valid` [batch, list]; `order` [batch, list], the indices
      of the documents from best to worst, ties in input order, followed by -1 for padding. A gRPC client may omit
      `mask` if every document is real.
    - `predict`: `inputs` [batch], serialized ExampleListWithContext -> `outputs` [batch, longest list].
    - "tensorflow/serving/predict": the same, under the name of TF-Ranking.

    Two sentinel scores are lower than any score of the model: `models.PADDING_SCORE` (-1e30) for padding, and
    `serving.INVALID_SCORE` (-1e29) for a document with a NaN or infinite feature, or for which the model returns a
    score that is not finite. A document with such a feature is masked, so the scores of the other documents in its list
    do not depend on it. `valid` is True for scores of the model. With `missing_values`, NaN reaches the model instead.

    Two kinds of models are supported. Set `num_features` or `feature_names` for a model of a dict with `features` and
    `mask`, such as `models.FeedForwardScorer`, or for a `Sequential` model of the features. Set `example_feature_spec`
    and `mask_feature_name` for a model of a dict with named features and a mask, such as those of TF-Ranking's
    `ModelBuilder`; the tensor signatures then have one input per feature, and `rank` also has the mask, under these
    names. If a model returns a dict of scores, one per task, its keys replace the output names `scores` and `outputs`,
    and `rank` has no `order`.

    The subdirectory assets.extra contains the warm-up requests for TF Serving and the model card, model_card.json. The
    export is atomic: it is written under a temporary name, loaded to answer its own warm-up requests, and then renamed.
    Loading it requires TensorFlow but not this package.

    Args:
      model: A Keras model that returns scores [batch, list] or [batch, list, 1], or a dict of such scores.
      path: The local directory of the versions, created if missing.
      num_features: The number of features, >= 1. None uses the length of `feature_names`.
      feature_names: Unique feature names, in the order of the features. Protos then store each feature under its name.
        None: protos store one list named `features`.
      example_feature_spec: `tf.io.FixedLenFeature` or `tf.io.RaggedFeature` for each document feature, by name. With
        ragged features, which tensors cannot represent, there is no `rank` and the default signature is `predict`. None
        for a model of `features` and `mask`.
      context_feature_spec: The same for the features of the list. None for none.
      mask_feature_name: The model's name for its mask [batch, list]. None if it has no mask.
      missing_values: Whether NaN is a missing value that the model handles, as `models.TableScorer` does. With
        `feature_names`, protos may then lack features. For other protos, set default values in the specs.
      version: The version number, >= 1. None uses the last version plus one.
      serving_default: The behavior of `serving_default`: "scores" (as above) or "predict". None uses "scores"
        if tensors can represent the features, otherwise "predict".
      warmup: Whether to write a request to each signature, which TF Serving runs before it accepts traffic. Without,
        the first request to each waits a second or more. Requires tensorflow-serving-api, of the extra
        `tfr_smooth[serving]`; without it, a warning is given.
      card: What only you know, for the model card, by name: "description" (the purpose of the model, and its
        limitations), "data", "training", "loss", "metrics" (the results, and on which data), and others. A value may be
        text, a number, a list, a dict of these, or a Keras object such as a loss, which is written as its class and
        configuration.

    Returns:
      The directory PATH/VERSION.

    Raises:
      ValueError: If an argument is invalid or does not match the model, or the version exists.

    Example:
      >>> import os, tempfile
      >>> import tensorflow as tf
      >>> from tfr_smooth import models, serving
      >>> path = os.path.join(tempfile.mkdtemp(), "ranker")
      >>> version = serving.export_ranker(models.FeedForwardScorer(hidden=[4]), path, num_features=3)
      >>> version.name
      '1'
      >>> loaded = tf.saved_model.load(version)
      >>> best = loaded.rank(tf.ones([1, 2, 3]))
      >>> best["scores"].shape, best["order"].numpy().tolist()
      (TensorShape([1, 2]), [[0, 1]])
    """
    _estimator.check_process()
    _arguments.boolean("missing_values", missing_values)
    if example_feature_spec is None:
        _check_not_given("without", context_feature_spec=context_feature_spec, mask_feature_name=mask_feature_name)
        inputs = _dense_inputs(num_features, feature_names, missing_values)
    else:
        _check_not_given("with", num_features=num_features, feature_names=feature_names)
        specs: dict[str, Any] = {"example_feature_spec": example_feature_spec}
        specs["context_feature_spec"] = context_feature_spec
        inputs = RankerInputs(**specs, mask_feature_name=mask_feature_name, missing_values=missing_values)
    if serving_default is not None:
        _arguments.choice("serving_default", serving_default, ["scores", "predict"])
    if _arguments.boolean("warmup", warmup) and importlib.util.find_spec("tensorflow_serving") is None:
        warn(
            "TF Serving will answer its first requests slowly: warm-up requests in the export need "
            "tensorflow-serving-api, pip install 'tfr_smooth[serving]'. `warmup=False` omits them."
        )
        warmup = False
    if inputs.takes_tensors and isinstance(model, tf.keras.Sequential):  # of the features alone
        width = inputs.zeros(1)["features"].shape[-1]
        given = {
            "features": tf.keras.Input([None, width], name="features"),
            "mask": tf.keras.Input([None], dtype="bool", name="mask"),
        }
        model = tf.keras.Model(given, model(given["features"]))
    if inputs.takes_tensors:
        call_once(model, inputs, hint=" Set `example_feature_spec` for other inputs." * (example_feature_spec is None))
    servable, signatures = make_servable(model, inputs, serving_default=serving_default)

    def write(folder: Path, number: int) -> None:
        functions = {name: getattr(servable, kind) for name, kind in signatures.items()}
        tf.saved_model.save(servable, os.fspath(folder), signatures=functions)
        versions.rename_inputs(folder, {argument: name for name, argument in inputs.arguments.items()})
        versions.write_card(
            folder,
            card or {},
            model={
                "class": type(model).__name__,
                "name": model.name,
                "version": number,
                "exported": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "parameters": int(model.count_params()),
            },
            features=inputs.describe(model.exported_columns if isinstance(model, TableScorer) else None),
            special_scores={"padding": PADDING_SCORE, "invalid": INVALID_SCORE},
        )
        encoders = model.table_features.encoders if isinstance(model, TableScorer) else {}
        for name, encoder in encoders.items():
            file = folder / versions.EXTRA / f"{urllib.parse.quote(name, safe='')}_tokenizer.json"
            encoder.tokenizer_file("document", encoder.embedded_length, is_padded=True).save(os.fspath(file))
        if warmup:
            _write_requests(folder, inputs, signatures)

    return versions.publish(path, version, write)


def _write_requests(folder: Path, inputs: RankerInputs, signatures: Mapping[str, str]) -> None:
    """Writes a request of zeros to each signature, a TFRecord file of PredictionLog protos, after the export answered.

    A ranker of 20 columns takes 1.1 to 1.4 s for the first call of a signature, and 1 to 10 ms for later ones, also of
    other lengths.
    """
    from tensorflow_serving.apis.input_pb2 import ExampleListWithContext
    from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

    context, document = map(_zero_example, inputs.proto_specs())
    lists = ExampleListWithContext(context=context, examples=[document] * _WARM_UP)
    tensors = inputs.zeros(_WARM_UP) if inputs.takes_tensors else {}
    by_kind = {
        "scores": tensors,
        "rank": {**tensors, inputs.mask_name: np.ones([1, _WARM_UP], bool)},
        "predict": {tf.saved_model.PREDICT_INPUTS: np.array([lists.SerializeToString()], object)},
    }
    loaded = tf.saved_model.load(os.fspath(folder))
    with tf.io.TFRecordWriter(os.fspath(folder / _REQUESTS)) as file:
        for name, kind in signatures.items():
            loaded.signatures[name](**{key: tf.constant(array) for key, array in by_kind[kind].items()})
            log = PredictionLog()
            request = log.predict_log.request
            request.model_spec.signature_name = name
            for key, array in by_kind[kind].items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(array))
            file.write(log.SerializeToString())


def _zero_example(specs: Mapping[str, Any]) -> tf.train.Example:
    example = tf.train.Example()
    for name, spec in specs.items():
        if isinstance(spec, tf.io.FixedLenFeature):
            kind = "bytes" if spec.dtype == tf.string else "float" if spec.dtype.is_floating else "int64"
            values = [zero(spec.dtype)] * int(np.prod(spec.shape, dtype=int))
            getattr(example.features.feature[name], f"{kind}_list").value.extend(values)
    return example


def _check_not_given(when: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"`{name}` must be None {when} `example_feature_spec`, got {value!r}.")


def _dense_inputs(num_features: int | None, feature_names: Sequence[str] | None, missing_values: bool) -> RankerInputs:
    if feature_names is None:
        return RankerInputs.dense(_arguments.integer("num_features", num_features, least=1), None, missing_values)
    names = list(feature_names)
    if isinstance(feature_names, str) or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
        raise ValueError(f"`feature_names` must be a list of unique names, got {feature_names!r}.")
    count = _arguments.integer("num_features", len(names) if num_features is None else num_features, least=1)
    if count != len(names):
        raise ValueError(f"`feature_names` must be {count} names, got {len(names)}.")
    return RankerInputs.dense(count, names, missing_values)


def call_once(model: tf.keras.Model, inputs: RankerInputs, hint: str) -> None:
    """Scores one document, which builds the model; an error is clearer here than in a graph."""
    features = {name: tf.constant(values) for name, values in inputs.zeros(1).items()}
    if inputs.mask_feature_name is not None:
        features[inputs.mask_feature_name] = tf.ones([1, 1], tf.bool)
    try:
        model(features, training=False)
    except Exception as error:
        given = ", ".join(f"{name!r} {values.shape}" for name, values in features.items())
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise ValueError(f"`model` must take a dict of {given}, got {reason}.{hint}".replace("..", ".")) from error

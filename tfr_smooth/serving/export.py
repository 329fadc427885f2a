"""Export of a ranker as a versioned SavedModel that loads with TensorFlow alone."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _files
from tfr_smooth.models import PADDING_SCORE
from tfr_smooth.serving import model_card, versions, warmup
from tfr_smooth.serving.inputs import RankerInputs
from tfr_smooth.serving.servable import INVALID_SCORE, make_servable
from tfr_smooth.training.cluster import check_readable


def export_ranker(
    model: tf.keras.Model,
    path: str | os.PathLike[str],
    *,
    num_features: int | None = None,
    feature_names: Sequence[str] | None = None,
    example_feature_spec: Mapping[str, Any] | None = None,
    context_feature_spec: Mapping[str, Any] | None = None,
    mask_feature_name: str | None = None,
    version: int | None = None,
    top_k: int | None = 10,
    rank_by: str | None = None,
    serving_default: str | None = None,
    warmup_list_sizes: Sequence[int] = (1, 100),
    card: model_card.ModelCard | None = None,
) -> Path:
    """Writes a ranker as PATH/VERSION, a SavedModel that TF Serving finds, warms up and serves.

    The signatures, with float32 scores, int32 places and bool masks:

    - `serving_default`: `features` [batch, list, num_features], where every document is real -> `scores` [batch, list].
    - `rank`: `features` and `mask` [batch, list], which a gRPC client may leave out if every document is real ->
      `scores`; `valid` [batch, list]; `order` [batch, list], the documents' places from the best to the worst, equal
      scores in the order they came, -1 behind the last; its beginning `top_k` [batch, top_k], filled up with -1;
      `top_k_scores`.
    - `predict`: `inputs` [batch], serialized ExampleListWithContext -> `outputs` [batch, longest list].
    - `regress`: `inputs` [batch], serialized Example, each a list of one document -> `outputs` [batch].
    - "tensorflow/serving/predict" and "tensorflow/serving/regress", as TF-Ranking names these two.

    Two scores are no scores of the model, and lower than any of those: `models.PADDING_SCORE` (-1e30) at padded places,
    and `serving.INVALID_SCORE` (-1e29) for a document with a NaN or infinite feature, or whose own score is not finite.
    Such a document is kept from the model, so that the others of its list score as if it were not there. `valid`
    is True where a score is the model's.

    Two kinds of models are taken. Give `num_features` or `feature_names` for one that takes a dict of `features` and
    `mask`, such as `models.FeedForwardScorer`. Give `example_feature_spec` and `mask_feature_name` for one that takes a
    dict of features by name and a mask, such as those of TF-Ranking's `ModelBuilder`; then the raw signatures take each
    feature, and in `rank` the mask, under its own name. A model that returns a dict of scores, one for each task, has
    these as outputs instead of `scores` and `outputs`.

    The folder also holds, under assets.extra, the requests that TF Serving warms up with, and the model card
    (model_card.json, model_card.md). It appears whole or not at all: it is written under another name, loaded again
    to answer its own warm-up requests, and then renamed. Needed to load it: TensorFlow, not this package.

    Args:
      model: A Keras model that returns scores [batch, list], or a dict of such.
      path: The folder of the versions, on this machine.
      num_features: The width of the features, >= 1.
      feature_names: The features' names in their order. Protos then hold each under its own name; without names they
        hold one list `features`.
      example_feature_spec: `tf.io.FixedLenFeature` or `tf.io.RaggedFeature` of each document's features, by name.
        Tensors cannot be ragged: with such features there is no `rank`, and the default signature is `predict`.
      context_feature_spec: The same for the features of the list.
      mask_feature_name: What the model calls its mask [batch, list]; None if it takes none.
      version: Its number, >= 1; None for the one after the last.
      top_k: How many documents `rank` returns as `top_k`; None for no such outputs.
      rank_by: Which output `rank` orders by, for a model with several.
      serving_default: "scores" (as above), "predict" or "regress": what `serving_default` does. None for "scores" where
        the features can be tensors.
      warmup_list_sizes: Numbers of documents of the warm-up requests, which need the extra `tfr_smooth[serving]`; ()
        for none, which TF Serving takes too.
      card: What was trained on what with which result, for the model card.

    Returns:
      The folder PATH/VERSION.

    Raises:
      ValueError: If an argument is out of its range or does not fit the model, that version is there already, or only
        all workers of a cluster together can read the model's variables (Keras 2).
      ImportError: If warm-up requests are asked for and tensorflow-serving-api is not installed.

    Example:
      >>> import os, tempfile
      >>> import tensorflow as tf
      >>> from tfr_smooth import models, serving
      >>> path = os.path.join(tempfile.mkdtemp(), "ranker")
      >>> version = serving.export_ranker(models.FeedForwardScorer(hidden=[4]), path, num_features=3, top_k=1)
      >>> version.name
      '1'
      >>> loaded = tf.saved_model.load(version)
      >>> best = loaded.rank(tf.ones([1, 2, 3]))
      >>> best["scores"].shape, best["top_k"].numpy().tolist()
      (TensorShape([1, 2]), [[0]])
    """
    check_readable(model)
    inputs = _inputs(num_features, feature_names, example_feature_spec, context_feature_spec, mask_feature_name)
    sizes = [_arguments.integer("warmup_list_sizes", size, least=1) for size in warmup_list_sizes]
    if serving_default is not None:
        _arguments.choice("serving_default", serving_default, ["scores", "predict", "regress"])
    if example_feature_spec is None and not model.built:
        model({"features": tf.zeros([1, 1, *inputs.examples["features"].shape]), "mask": tf.ones([1, 1], tf.bool)})
    servable, signatures = make_servable(
        model,
        inputs,
        top_k=None if top_k is None else _arguments.integer("top_k", top_k, least=1),
        rank_by=rank_by,
        serving_default=serving_default,
    )
    requests = list(warmup.make_requests(inputs, signatures, sizes)) if sizes else []

    def write(folder: Path, number: int) -> None:
        functions = {name: getattr(servable, kind) for name, kind in signatures.items()}
        tf.saved_model.save(servable, os.fspath(folder), signatures=functions)
        loaded = tf.saved_model.load(os.fspath(folder)).signatures
        for name, arrays in requests:
            loaded[name](**{key: tf.constant(value) for key, value in arrays.items()})
        (folder / "assets.extra").mkdir()
        if requests:
            warmup.write_requests(folder / warmup.FILE, requests)
        content = (card or model_card.ModelCard()).complete(
            model=_describe_model(model, number),
            features=inputs.describe(),
            signatures={name: _describe_signature(signature) for name, signature in sorted(loaded.items())},
            special_scores={"padding": PADDING_SCORE, "invalid": INVALID_SCORE},
        )
        _files.write_text(folder / "assets.extra" / "model_card.json", [model_card.to_json(content)])
        _files.write_text(folder / "assets.extra" / "model_card.md", [model_card.to_markdown(content)])

    return versions.publish(path, version, write)


def _inputs(
    num_features: int | None,
    feature_names: Sequence[str] | None,
    example_feature_spec: Mapping[str, Any] | None,
    context_feature_spec: Mapping[str, Any] | None,
    mask_feature_name: str | None,
) -> RankerInputs:
    if example_feature_spec is not None:
        for name, value in (("num_features", num_features), ("feature_names", feature_names)):
            if value is not None:
                raise ValueError(f"`{name}` must be None beside `example_feature_spec`, got {value!r}.")
        return RankerInputs(
            example_feature_spec=example_feature_spec,
            context_feature_spec=context_feature_spec,
            mask_feature_name=mask_feature_name,
        )
    for name, given in (("context_feature_spec", context_feature_spec), ("mask_feature_name", mask_feature_name)):
        if given is not None:
            raise ValueError(f"`{name}` must be None without `example_feature_spec`, got {given!r}.")
    if feature_names is None:
        return RankerInputs.dense(_arguments.integer("num_features", num_features, least=1))
    names = list(feature_names)
    if isinstance(feature_names, str) or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
        raise ValueError(f"`feature_names` must be a list of different names, got {feature_names!r}.")
    count = _arguments.integer("num_features", len(names) if num_features is None else num_features, least=1)
    if count != len(names):
        raise ValueError(f"`feature_names` must be {count} names, got {len(names)}.")
    return RankerInputs.dense(count, names)


def _describe_model(model: tf.keras.Model, version: int) -> dict[str, Any]:
    return {
        "class": type(model).__name__,
        "name": model.name,
        "version": version,
        "exported": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "parameters": int(model.count_params()),
    }


def _describe_signature(signature: Any) -> dict[str, Any]:
    def describe(specs: Iterable[tf.TensorSpec]) -> dict[str, str]:
        return {spec.name: f"{spec.dtype.name} {spec.shape.as_list()}" for spec in sorted(specs, key=lambda s: s.name)}

    _, named = signature.structured_input_signature
    return {"inputs": describe(named.values()), "outputs": describe(signature.structured_outputs.values())}

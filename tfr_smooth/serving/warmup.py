"""Warm-up requests that TF Serving runs before it accepts traffic, so no client waits for the first execution."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _arguments
from tfr_smooth.data.reading.checks import warn
from tfr_smooth.serving.ranker_inputs import RankerInputs, zero

# The path of the requests in a version directory, defined by TF Serving.
FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")

# The name of a signature, and its inputs by name.
Request = tuple[str, dict[str, np.ndarray]]


def checked_list_sizes(sizes: Sequence[int] | None) -> list[int]:
    """Returns the list sizes of requests; None is 1 and 100, or without tensorflow-serving-api none, with a warning."""
    if sizes is not None:
        return [_arguments.integer("warmup_list_sizes", size, least=1) for size in sizes]
    if importlib.util.find_spec("tensorflow_serving") is not None:
        return [1, 100]
    warn(
        "TF Serving will answer its first requests slowly: warm-up requests in the export need tensorflow-serving-api, "
        "pip install 'tfr_smooth[serving]'. `warmup_list_sizes=()` omits them."
    )
    return []


def make_requests(inputs: RankerInputs, signatures: Mapping[str, str], list_sizes: Sequence[int]) -> Iterator[Request]:
    """Yields requests with zero features: one per signature and list size.

    Args:
      inputs: The inputs of the ranker.
      signatures: Signature name to "scores", "rank" or "predict".
      list_sizes: Numbers of documents, each >= 1.

    Yields:
      Pairs of a signature name and its inputs by name.

    Raises:
      ImportError: If tensorflow-serving-api is not installed; the extra `tfr_smooth[serving]` includes it.
    """
    with _arguments.needed("tensorflow-serving-api", extra="serving", by="An export with `warmup_list_sizes`"):
        from tensorflow_serving.apis.input_pb2 import ExampleListWithContext

    context_spec, example_spec = inputs.proto_specs()
    context, document = _zero_example(context_spec), _zero_example(example_spec)
    for size in list_sizes:
        tensors = inputs.zeros(size) if inputs.takes_tensors else {}
        lists = ExampleListWithContext(context=context, examples=[document] * size)
        by_kind = {
            "scores": tensors,
            "rank": {**tensors, inputs.mask_name: np.ones([1, size], bool)},
            "predict": {tf.saved_model.PREDICT_INPUTS: np.array([lists.SerializeToString()], object)},
        }
        for name, kind in signatures.items():
            yield name, by_kind[kind]


def write_requests(path: str | os.PathLike[str], requests: Iterable[Request]) -> None:
    """Writes the requests as a TFRecord file of PredictionLog protos, the format of TF Serving."""
    from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

    with tf.io.TFRecordWriter(os.fspath(path)) as file:
        for signature, arrays in requests:
            log = PredictionLog()
            request = log.predict_log.request
            request.model_spec.signature_name = signature
            for name, array in arrays.items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(array))
            file.write(log.SerializeToString())


def _zero_example(specs: Mapping[str, Any]) -> tf.train.Example:
    example = tf.train.Example()
    for name, spec in specs.items():
        if isinstance(spec, tf.io.FixedLenFeature):
            kind = "bytes" if spec.dtype == tf.string else "float" if spec.dtype.is_floating else "int64"
            values = [zero(spec.dtype)] * int(np.prod(spec.shape, dtype=int))
            getattr(example.features.feature[name], f"{kind}_list").value.extend(values)
    return example

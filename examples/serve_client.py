"""Ranks the queries of a LETOR file with TF Serving, over gRPC or REST.

    python examples/serve_client.py --data=Fold1/test.txt --server=localhost:8500
    python examples/serve_client.py --data=Fold1/test.txt --server=localhost:8501 --protocol=rest --signature=predict

Sends one request per query, as a search service would. Prints one line per document, best first: query, rank,
document, score. docs/serving.md describes how to start the server.
"""

from __future__ import annotations

import base64
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import startup
import tensorflow as tf
from absl import app, flags
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tensorflow_serving.apis.input_pb2 import ExampleListWithContext
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from tfr_smooth import data

_DATA = flags.DEFINE_string("data", None, "LETOR files with the queries: a path or a glob pattern.", required=True)
_NUM_FEATURES = flags.DEFINE_integer(
    "num_features", None, "Number of features. Default: the highest index in the files."
)
_SERVER = flags.DEFINE_string("server", "localhost:8500", "Host and port; TF Serving's ports: gRPC 8500, REST 8501.")
_PROTOCOL = flags.DEFINE_enum("protocol", "grpc", ["grpc", "rest"], "Protocol of the requests.")
_MODEL = flags.DEFINE_string("model", "ranker", "Name of the model on the server.")
_SIGNATURE = flags.DEFINE_enum("signature", "rank", ["serving_default", "rank", "predict"], "Signature to call.")
_TIMEOUT = flags.DEFINE_float("timeout", 10.0, "Timeout of a request in seconds.", lower_bound=0.001)
_LIMIT = flags.DEFINE_integer("limit", None, "Maximum number of queries. Default: all.", lower_bound=1)

# From the features [documents, num_features] of a query to its scores [documents].
Score = Callable[[np.ndarray], np.ndarray]


# Requests.


def make_examples(features: np.ndarray) -> list[tf.train.Example]:
    """The documents as protos, each with its features in one list."""
    examples = []
    for row in features:
        example = tf.train.Example()
        example.features.feature["features"].float_list.value.extend(row)
        examples.append(example)
    return examples


def predict_inputs(signature: str, features: np.ndarray) -> dict[str, np.ndarray]:
    """The inputs of one query for a signature of the Predict API."""
    if signature == "predict":
        lists = ExampleListWithContext(examples=make_examples(features))
        return {"inputs": np.array([lists.SerializeToString()], object)}
    inputs = {"features": np.asarray(features, np.float32)[np.newaxis]}
    if signature == "rank":
        # False for padding, which a request with several queries has.
        inputs["mask"] = np.ones([1, len(features)], bool)
    return inputs


def grpc_predict_request(model: str, signature: str, features: np.ndarray) -> PredictRequest:
    request = PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    for name, values in predict_inputs(signature, features).items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
    return request


def rest_predict_body(signature: str, features: np.ndarray) -> dict[str, Any]:
    inputs = {name: as_json(values) for name, values in predict_inputs(signature, features).items()}
    return {"signature_name": signature, "inputs": inputs}


def as_json(values: np.ndarray) -> Any:
    """Lists of numbers, or bytes in TF Serving's JSON encoding."""
    if values.dtype == object:
        return [{"b64": base64.b64encode(value).decode()} for value in values]
    return values.tolist()


# Transport.


def grpc_scorer(channel: grpc.Channel, model: str, signature: str, timeout: float) -> Score:
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

    def score(features: np.ndarray) -> np.ndarray:
        outputs = stub.Predict(grpc_predict_request(model, signature, features), timeout).outputs
        return tf.make_ndarray(outputs["outputs" if signature == "predict" else "scores"])[0]

    return score


def rest_scorer(server: str, model: str, signature: str, timeout: float) -> Score:
    def post(method: str, body: dict[str, Any]) -> Any:
        url = f"http://{server}/v1/models/{model}:{method}"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)

    def score(features: np.ndarray) -> np.ndarray:
        outputs = post("predict", rest_predict_body(signature, features))["outputs"]
        # For a signature with one output, the response contains only its value.
        return np.array(outputs["scores"] if isinstance(outputs, dict) else outputs)[0]

    return score


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    queries = data.read_letor(_DATA.value, num_features=_NUM_FEATURES.value).batches(1, ids=True)
    arguments = (_MODEL.value, _SIGNATURE.value, _TIMEOUT.value)
    try:
        if _PROTOCOL.value == "rest":
            rank(queries, rest_scorer(_SERVER.value, *arguments))
        else:
            with grpc.insecure_channel(_SERVER.value) as channel:
                rank(queries, grpc_scorer(channel, *arguments))
    except grpc.RpcError as error:
        sys.exit(f"{_SERVER.value} answered {error.code().name}: {error.details()}")
    except urllib.error.HTTPError as error:
        sys.exit(f"{_SERVER.value} answered {error.code}: {error.read().decode(errors='replace')}")
    except urllib.error.URLError as error:
        sys.exit(f"{_SERVER.value} did not answer: {error.reason}")


def rank(queries: tf.data.Dataset, score: Score) -> None:
    for inputs, _ in queries.take(-1 if _LIMIT.value is None else _LIMIT.value):
        scores = score(inputs["features"][0].numpy())
        query = inputs["query_id"][0].numpy().decode()
        documents = inputs["doc_id"][0].numpy()
        for place, document in enumerate(np.argsort(-scores, kind="stable"), start=1):
            # A document without an id is named by its position in the file.
            print(query, place, documents[document].decode() or document, f"{scores[document]:.6f}", sep="\t")


if __name__ == "__main__":
    startup.run(main)

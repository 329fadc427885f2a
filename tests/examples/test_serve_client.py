"""The example client: its requests match the export, and it ranks by the scores that a server returns."""

import base64
import concurrent.futures
import http.server
import importlib
import json
import sys
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tensorflow_serving.apis.input_pb2 import ExampleListWithContext
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.regression_pb2 import RegressionRequest, RegressionResponse

from tests import helpers
from tests.documents import ROOT
from tfr_smooth import models, serving

CLIENT = ROOT / "examples" / "serve_client.py"
SIGNATURES = ["serving_default", "rank", "predict", "regress"]
QUERIES = {"7": ["a", "b", "c"], "x9": ["", ""]}


@pytest.fixture(scope="module")
def client():
    """The script as a module. Its flags stay defined in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(CLIENT.parent)
        patch.setattr(sys, "excepthook", sys.excepthook)
        return importlib.import_module("serve_client")


@pytest.fixture(scope="module")
def features():
    random = np.random.RandomState(0)
    return {query: random.randn(len(names), 4).astype(np.float32) for query, names in QUERIES.items()}


@pytest.fixture(scope="module")
def letor(features, tmp_path_factory):
    path = tmp_path_factory.mktemp("letor") / "test.txt"
    with open(path, "w") as file:
        for query, rows in features.items():
            for name, row in zip(QUERIES[query], rows.tolist(), strict=True):
                values = " ".join(f"{index}:{value!r}" for index, value in enumerate(row, start=1))
                file.write(f"0 qid:{query} {values}" + (f" #docid = {name}\n" if name else "\n"))
    return path


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(0)
    return models.FeedForwardScorer(hidden=[8])


@pytest.fixture(scope="module")
def export(model, tmp_path_factory):
    return serving.export_ranker(model, tmp_path_factory.mktemp("models") / "ranker", num_features=4)


@pytest.fixture(scope="module")
def signature_defs(export):
    saved = SavedModel.FromString((export / "saved_model.pb").read_bytes())
    return saved.meta_graphs[0].signature_def


# The requests.


def check_tensors(tensors, signature_def):
    """Checks that the tensors have the names, types and shapes of the signature's inputs."""
    assert set(tensors) == set(signature_def.inputs)
    for name, tensor in tensors.items():
        info = signature_def.inputs[name]
        assert tensor.dtype == info.dtype, name
        shape = tf.TensorShape(tensor.tensor_shape)
        assert shape.is_fully_defined() and shape.is_compatible_with(tf.TensorShape(info.tensor_shape)), name
        assert tf.make_ndarray(tensor).shape == tuple(shape), name  # as many values as the shape requires


@pytest.mark.parametrize("signature", ["serving_default", "rank", "predict"])
def test_grpc_predict_requests_match_the_signature(signature, client, features, signature_defs):
    sent = client.grpc_predict_request("ranker", signature, features["7"]).SerializeToString()
    request = PredictRequest.FromString(sent)
    assert (request.model_spec.name, request.model_spec.signature_name) == ("ranker", signature)
    check_tensors(request.inputs, signature_defs[signature])
    if signature == "predict":
        (serialized,) = request.inputs["inputs"].string_val
        lists = ExampleListWithContext.FromString(serialized)
        assert [read_features(example) for example in lists.examples] == features["7"].tolist()
    else:
        assert tf.make_ndarray(request.inputs["features"]).tolist() == [features["7"].tolist()]


def test_grpc_regression_requests_contain_the_documents(client, features):
    request = RegressionRequest.FromString(client.grpc_regression_request("ranker", features["7"]).SerializeToString())
    assert (request.model_spec.name, request.model_spec.signature_name) == ("ranker", "regress")
    assert request.input.WhichOneof("kind") == "example_list"
    assert [read_features(example) for example in request.input.example_list.examples] == features["7"].tolist()


def read_features(example):
    (name,) = example.features.feature
    assert name == "features"
    return list(example.features.feature[name].float_list.value)


@pytest.mark.parametrize("signature", ["serving_default", "rank", "predict"])
def test_rest_predict_bodies_match_the_signature(signature, client, features, signature_defs):
    body = json.loads(json.dumps(client.rest_predict_body(signature, features["7"]), allow_nan=False))
    assert set(body) == {"signature_name", "inputs"} and body["signature_name"] == signature
    check_tensors(from_json(body["inputs"], signature_defs[signature]), signature_defs[signature])


def from_json(inputs, signature_def):
    """The tensors that TF Serving creates from "inputs", which must have a value for each input of the signature."""
    missing = [name for name in signature_def.inputs if name not in inputs]
    if missing:
        raise ValueError(f"Missing named input: {missing[0]} in 'inputs' object.")
    tensors = {}
    for name, info in signature_def.inputs.items():
        values = inputs[name]
        if info.dtype == tf.string.as_datatype_enum:
            values = [base64.b64decode(value["b64"], validate=True) for value in values]
        tensors[name] = tf.make_tensor_proto(values, dtype=info.dtype)
    return tensors


# The client with servers that run the export.


@pytest.fixture(scope="module")
def run(export):
    """A function that runs a signature on protos; both servers use it."""
    loaded = tf.saved_model.load(str(export))

    def answer(signature, tensors):
        outputs = loaded.signatures[signature](**{name: tf.constant(tf.make_ndarray(t)) for name, t in tensors.items()})
        return {name: values.numpy() for name, values in outputs.items()}

    return answer


@pytest.fixture(scope="module")
def grpc_server(run):
    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            if request.model_spec.name != "ranker":
                context.abort(grpc.StatusCode.NOT_FOUND, "Servable not found for request")
            response = PredictResponse()
            for name, values in run(request.model_spec.signature_name, request.inputs).items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(values))
            return response

        def Regress(self, request, context):
            examples = [example.SerializeToString() for example in request.input.example_list.examples]
            outputs = run(request.model_spec.signature_name, {"inputs": tf.make_tensor_proto(examples)})["outputs"]
            response = RegressionResponse()
            for value in outputs:
                response.result.regressions.add(value=value)
            return response

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"localhost:{port}"
    server.stop(None).wait()


@pytest.fixture(scope="module")
def rest_server(run, signature_defs):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model, _, method = self.path.removeprefix("/v1/models/").partition(":")
            if model != "ranker":
                return self.reply(404, {"error": "Servable not found for request"})
            if method == "regress":
                examples = [make_example(example).SerializeToString() for example in body["examples"]]
                outputs = run(body["signature_name"], {"inputs": tf.make_tensor_proto(examples)})
                return self.reply(200, {"results": outputs["outputs"].tolist()})
            outputs = run(body["signature_name"], from_json(body["inputs"], signature_defs[body["signature_name"]]))
            plain = {name: values.tolist() for name, values in outputs.items()}
            return self.reply(200, {"outputs": plain if len(plain) > 1 else next(iter(plain.values()))})

        def reply(self, code, content):
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *args):
            pass

    def make_example(values):
        example = tf.train.Example()
        for name, value in values.items():
            assert all(isinstance(number, float) for number in value)  # TF Serving parses 1 as an integer
            example.features.feature[name].float_list.value.extend(value)
        return example

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("signature", SIGNATURES)
def test_scores_over_grpc_are_those_of_the_model(signature, client, features, model, grpc_server):
    with grpc.insecure_channel(grpc_server) as channel:
        scores = client.grpc_scorer(channel, "ranker", signature, timeout=60.0)(features["7"])
    expected = model(features["7"][np.newaxis]).numpy()[0]
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_scores_over_rest_are_those_of_the_model(signature, client, features, model, rest_server):
    scores = client.rest_scorer(rest_server, "ranker", signature, timeout=60.0)(features["7"])
    expected = model(features["7"][np.newaxis]).numpy()[0]
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)


def start(letor, *arguments):
    return helpers.run_python(CLIENT, f"--data={letor}", "--timeout=60", *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_the_program_prints_the_ranking(protocol, letor, features, model, request):
    server = request.getfixturevalue(f"{protocol}_server")
    done = start(letor, f"--server={server}", f"--protocol={protocol}")
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    expected = []
    for query, names in QUERIES.items():
        scores = model(features[query][np.newaxis]).numpy()[0]
        for place, document in enumerate(np.argsort(-scores), start=1):
            expected.append([query, str(place), names[document] or str(document), f"{scores[document]:.6f}"])
    assert [line[:3] for line in lines] == [line[:3] for line in expected]
    found, wanted = ([float(line[3]) for line in part] for part in (lines, expected))
    np.testing.assert_allclose(found, wanted, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_errors_of_the_server_are_shown(protocol, letor, request):
    server = request.getfixturevalue(f"{protocol}_server")
    done = start(letor, f"--server={server}", f"--protocol={protocol}", "--model=other")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert {"grpc": "answered NOT_FOUND: ", "rest": "answered 404: "}[protocol] in done.stderr
    assert "Servable not found for request" in done.stderr

"""The example client ranks by the scores that a server returns, over gRPC and REST."""

import concurrent.futures
import http.server
import json
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_service_pb2_grpc
from tensorflow_serving.apis.predict_pb2 import PredictResponse

from tests.helpers import scripts
from tests.serving.test_page import tensors
from tfr_smooth import models, serving

CLIENT = "examples/serve_client.py"
FEATURES = np.random.RandomState(0).randn(3, 4).astype(np.float32)
MODEL = models.FeedForwardScorer(hidden=[8])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs a signature on tensors, whose names and shapes it checks; both servers use it."""
    export = serving.export_ranker(MODEL, tmp_path_factory.mktemp("models") / "ranker", num_features=4)
    signatures = tf.saved_model.load(str(export)).signatures

    def answer(name, tensors):
        found = signatures[name](**{key: tf.constant(tensor) for key, tensor in tensors.items()})
        return {key: values.numpy() for key, values in found.items()}

    return answer


@pytest.fixture(scope="module")
def grpc_server(run):
    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            response = PredictResponse()
            inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
            for name, values in run(request.model_spec.signature_name, inputs).items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(values))
            return response

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"localhost:{port}"
    server.stop(None).wait()


@pytest.fixture(scope="module")
def rest_server(run):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            content = {"error": "Servable not found for request"}
            if self.path.startswith("/v1/models/ranker:"):
                outputs = run(body["signature_name"], tensors(body, list(body["inputs"])))
                content = {"outputs": outputs if len(outputs) > 1 else next(iter(outputs.values()))}
            self.send_response(404 if "error" in content else 200)
            self.end_headers()
            self.wfile.write(json.dumps(content, default=np.ndarray.tolist).encode())

    with http.server.ThreadingHTTPServer(("localhost", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"localhost:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_scores_over_grpc_and_rest_are_those_of_the_model(grpc_server, rest_server):
    expected, client = MODEL(FEATURES[np.newaxis]).numpy()[0], scripts.load(CLIENT)
    with grpc.insecure_channel(grpc_server) as channel:
        for scorer, server in ((client.grpc_scorer, channel), (client.rest_scorer, rest_server)):
            for signature in ("serving_default", "rank", "predict"):
                scores = scorer(server, "ranker", signature, timeout=60.0)(FEATURES)
                np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6, err_msg=signature)


def test_the_program_prints_the_ranking_and_errors_of_the_server(rest_server, tmp_path):
    rows = [" ".join(f"{index}:{value!r}" for index, value in enumerate(row, 1)) for row in FEATURES.tolist()]
    lines = [f"0 qid:7 {row} #docid = {name}\n" for name, row in zip("abc", rows, strict=True)]
    (tmp_path / "test.txt").write_text("".join(lines))
    flags = [f"--data={tmp_path / 'test.txt'}", "--timeout=60", f"--server={rest_server}", "--protocol=rest"]
    found = [line.split("\t") for line in scripts.check_run(CLIENT, *flags).splitlines()]
    scores = MODEL(FEATURES[np.newaxis]).numpy()[0]
    assert [line[:3] for line in found] == [["7", str(i), "abc"[at]] for i, at in enumerate(np.argsort(-scores), 1)]
    np.testing.assert_allclose([float(line[3]) for line in found], np.sort(scores)[::-1], atol=2e-6)
    failed = scripts.run(CLIENT, *flags, "--model=other")
    assert failed.returncode == 1 and "answered 404: " in failed.stderr

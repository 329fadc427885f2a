"""The HTTP server answers many clients with the results of a saved estimator, and names what is wrong in a request."""

import concurrent.futures
import contextlib
import json
import socket
import threading
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pytest
import uvicorn

import tfr_smooth
from tests.helpers import scripts
from tests.ranker.test_ranker import FRAME, NEW, SMALL
from tests.recommendation.groups import likes
from tfr_smooth import recommendation


@contextlib.contextmanager
def running(path):
    """A real server of a file; yields a function that sends a body, or None to get, and returns status and JSON."""
    make_app = scripts.load("examples/serve_http.py").make_app
    server = uvicorn.Server(uvicorn.Config(make_app(str(path)), log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"

        def send(route, body=None):
            data = None if body is None else json.dumps(body, default=str).encode()
            request = urllib.request.Request(address + route, data, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)

        try:
            yield send
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def ranker():
    return tfr_smooth.Ranker(**SMALL).fit(FRAME, label="label", query="query", query_features=["age"])


@pytest.fixture(scope="module")
def send(ranker, tmp_path_factory):
    ranker.save(path := tmp_path_factory.mktemp("ranker") / "ranker.keras")
    with running(path) as send:
        yield send


COLUMNS = [name for name in FRAME.columns if name not in ("query", "label", "age")]


def plain(value):
    """A value as JSON or a database has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return None if not isinstance(value, list) and pd.isna(value) else value


def body_of(frame):
    """A request, with the days as text in ISO 8601."""
    rows = frame[COLUMNS].itertuples(index=False)
    documents = [{name: plain(value) for name, value in zip(COLUMNS, row, strict=True)} for row in rows]
    return {"query": {"age": int(frame["age"].iloc[0])}, "documents": documents}


@pytest.mark.slow
def test_sixteen_clients_at_once_get_the_scores_of_predict(send, ranker):
    """Each of two lists is asked for by eight."""
    frames = [frame for _, frame in NEW.groupby("query", sort=False)][:2]
    expected = [ranker.predict(frame) for frame in frames]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda frame: send("/rank", body_of(frame)), frames * 8))
    for scored, (status, answer) in zip(expected * 8, answers, strict=True):
        assert status == 200
        scores = [document["score"] for document in sorted(answer["ranking"], key=lambda each: each["place"])]
        np.testing.assert_allclose(scores, scored, rtol=1e-6, atol=1e-6)
    bodies = [body_of(frame) for frame in frames]
    several = {name: [body[name] for body in bodies] for name in ("query", "documents")}
    assert send("/rank", several)[1]["rankings"] == [answer["ranking"] for _, answer in answers[:2]]
    assert send("/health")[0] == 200 and send("/health")[1]["status"] == "ok"
    assert {"price": "number", "listed": "date"}.items() <= send("/metadata")[1]["columns"].items()
    assert send("/rank", {"documents": []})[1] == {"ranking": []}


def test_wrong_requests_name_the_column_and_what_was_expected(send, tmp_path):
    body, table = body_of(NEW[:3]), tmp_path / "table.csv"
    NEW[:1].to_csv(table, index=False)  # which no client reads by its name
    wrong = {
        ("price", "numbers"): {**body, "documents": [{**body["documents"][0], "price": "cheap"}]},
        ("documents", "required"): {"query": body["query"]},
        ("`documents`", "a list"): {"query": [body["query"]] * 2, "documents": [body["documents"], None]},
        ("`query`", "an object"): {**body, "query": "age"},
        ("`documents`", "an object"): {**body, "documents": [str(table)]},
        ("`documents`", "for each"): {**body, "documents": [body["documents"][0], None]},
        ("'age'", "in each row"): {"documents": body["documents"]},
        ("'age'", "the same in all rows"): {
            "documents": [{**row, "age": -5 * place} for place, row in enumerate(body["documents"])]
        },
    }
    for (name, expected), content in wrong.items():
        status, answer = send("/rank", content)
        assert status == 422 and name in str(answer["detail"]) and expected in str(answer["detail"])


@pytest.mark.slow
def test_rankers_of_a_matrix_take_lists_of_numbers(tmp_path):
    X = np.random.default_rng(0).normal(size=[40, 3])
    ranker = tfr_smooth.Ranker(members=1, hidden=[4], epochs=1, trees=False, verbose=False)
    ranker.fit(X, X[:, 0] > 0, group=[10] * 4).save(tmp_path / "ranker.keras")
    with running(tmp_path / "ranker.keras") as send:
        _, answer = send("/rank", {"documents": X[:10].tolist()})
        status, wrong = send("/rank", {"documents": [["a.csv"]]})
    scores = [document["score"] for document in sorted(answer["ranking"], key=lambda each: each["place"])]
    np.testing.assert_allclose(scores, ranker.predict(X[:10], group=[10]), rtol=1e-5)
    assert status == 422 and "must be a table or numbers" in wrong["detail"]


@pytest.mark.slow
def test_recommenders_have_their_own_route(tmp_path):
    options = {"dim": 8, "softmax_epochs": 1, "softmax_batch_size": 4, "loss": None, "refit": False, "verbose": False}
    interactions = recommendation.Interactions(likes(), [f"u{user}" for user in range(24)], [*range(24)])
    recommender = recommendation.Recommender(**options).fit(interactions)
    recommender.save(tmp_path / "recommender.keras")
    with running(tmp_path / "recommender.keras") as send:
        expected = recommender.recommend(["u3"], topn=4)
        status, answer = send("/recommend", {"users": ["u3"], "topn": 4})
        assert status == 200 and [item["item"] for item in answer["items"][0]] == expected.items[0].tolist()
        expected = recommender.recommend(histories=[[3, 4]], exclude=[5])
        _, answer = send("/recommend", {"histories": [[3, 4]], "exclude": [5]})
        assert [item["item"] for item in answer["items"][0]] == expected.items[0].tolist()
        status, answer = send("/recommend", {"users": ["u3", "u4"], "exclude": [[5]]})
        assert status == 422 and "`exclude`" in answer["detail"]
        assert len(send("/recommend", {"users": ["u3"], "topn": 10**15})[1]["items"][0]) <= 24
        assert send("/recommend", {})[0] == 422


@pytest.mark.slow
def test_text_rankers_take_texts(tmp_path):
    texts = pytest.importorskip("tests.text.conftest", reason="text reranking needs Keras 3")
    from tfr_smooth import text

    options = {"encoder": texts.write_checkpoint(tmp_path / "bert"), "architecture": "single", "epochs": 0}
    ranker = text.TextRanker(**options, **texts.LENGTHS["single"], verbose=False).fit(texts.made_up_table(queries=4))
    ranker.save(tmp_path / "ranker.keras")
    body = {"query": "wing lift", "documents": ["heat", "wing", ""]}
    with running(tmp_path / "ranker.keras") as send:
        (_, answer), (status, wrong) = send("/rank", body), send("/rank", {**body, "documents": ["heat", 7]})
    scores = ranker.predict({"query": [body["query"]] * 3, "text": body["documents"]})
    found = [document["score"] for document in sorted(answer["ranking"], key=lambda each: each["place"])]
    np.testing.assert_allclose(found, scores, rtol=1e-5)
    assert status == 422 and "column 'text'" in wrong["detail"]

"""Serves a saved estimator over HTTP, without Docker.

    pip install '.[serve]' absl-py
    python examples/serve_http.py --model=output/ranker.keras --port=8000
    curl localhost:8000/rank -H 'Content-Type: application/json' \\
        -d '{"query": {"age": 30}, "documents": [{"price": 9.5, "color": "red"}, {"price": null, "color": "blue"}]}'

POST /rank takes the columns of the query and those of each document as a JSON object, or texts for a `TextRanker`; for
several queries, lists of these. The answer has the places of the documents in the request, best first. POST /recommend
takes the arguments of `Recommender.recommend`. GET /metadata returns the names and kinds of the columns, and GET
/health the file. Wrong input is answered with the status 422 and a message that names the column. GET /docs describes
the requests.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Mapping
from typing import Annotated, Any

import fastapi
import numpy as np
import startup
import uvicorn
from absl import app, flags
from fastapi import Body
from fastapi.responses import JSONResponse

import tfr_smooth

_MODEL = flags.DEFINE_string("model", None, "File of `save` of an estimator.", required=True)
_HOST = flags.DEFINE_string("host", "127.0.0.1", "Address to listen on; 0.0.0.0 for all.")
_PORT = flags.DEFINE_integer("port", 8000, "Port to listen on; 0 for a free one.")


def make_app(path: str) -> fastapi.FastAPI:
    """The routes of an estimator. FastAPI calls functions that are not async in threads."""
    api, model = fastapi.FastAPI(title="Ranking service"), tfr_smooth.load(path)

    @api.exception_handler(ValueError)
    def refuse(request: fastapi.Request, error: ValueError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, status_code=422)

    @api.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok", "model": path}

    @api.get("/metadata")
    def metadata() -> dict[str, Any]:
        columns = {column.name: column.kind for column in getattr(model, "columns_", ()) if hasattr(column, "kind")}
        return {"estimator": type(model).__name__, "columns": columns}

    if hasattr(model, "recommend"):

        @api.post("/recommend")
        def recommend(
            users: Annotated[list[Any] | None, Body()] = None,
            histories: Annotated[list[list[Any]] | None, Body()] = None,
            topn: Annotated[int, Body()] = 10,
            exclude: Annotated[list[Any] | None, Body()] = None,
            only: Annotated[list[Any] | None, Body()] = None,
        ) -> JSONResponse:
            if users is None and histories is None:
                raise ValueError("One of `users` and `histories` must be given, got none.")
            topn = min(topn, model.interactions_.num_items)  # of which a client may ask for more than fit into memory
            best = model.recommend(users, histories=histories, topn=topn, exclude=exclude, only=only)
            pairs = [zip(*lists, strict=True) for lists in zip(best.items.tolist(), best.scores.tolist(), strict=True)]
            # A response is sent as it is; FastAPI would look at each value of a dict.
            found = [[{"item": item, "score": score} for item, score in of if np.isfinite(score)] for of in pairs]
            return JSONResponse({"items": found})

    else:

        @api.post("/rank")
        def rank(documents: Annotated[list[Any], Body()], query: Annotated[Any, Body()] = None) -> JSONResponse:
            if not isinstance(query, list):
                return JSONResponse({"ranking": rankings(model, [query], [documents])[0]})
            return JSONResponse({"rankings": rankings(model, query, documents)})

    return api


def rankings(model: Any, queries: list[Any], lists: list[Any]) -> list[list[dict[str, Any]]]:
    """The places of the documents of each query, best first, and their scores."""
    if len(queries) != len(lists) or not all(isinstance(documents, list) for documents in lists):
        raise ValueError(f"`documents` must be a list for each of the {len(queries)} queries.")
    rows, lengths = [*itertools.chain(*lists)], [len(documents) for documents in lists]
    of_rows = [*itertools.chain(*map(itertools.repeat, queries, lengths))]
    if not rows:
        return [[] for _ in lists]
    if isinstance(model, tfr_smooth.Ranker):
        for query in queries:
            if query is not None and not isinstance(query, Mapping):
                raise ValueError(f"`query` must be an object with the columns of a query, got {query!r:.60}.")
        for row in rows:  # `predict` reads files if it gets texts: a client must not name any.
            if not isinstance(row, (Mapping, list)):
                raise ValueError(f"`documents` must be an object with the columns for each, got {row!r:.60}.")
        pairs = zip(rows, of_rows, strict=True)
        given = [{**row, **(query or {})} if isinstance(row, Mapping) else row for row, query in pairs]
        scores = model.predict(given, group=[length for length in lengths if length])
    else:
        scores = model.predict({model.columns_["query"]: of_rows, model.columns_["text"]: rows})
    answers = []
    for part in np.split(scores, np.cumsum(lengths)[:-1]):
        order = np.argsort(-part, kind="stable")
        answers.append([{"place": int(place), "score": float(part[place])} for place in order])
    return answers


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    api = make_app(_MODEL.value)
    with socket.create_server((_HOST.value, _PORT.value)) as listening:
        # Connections inherit it; without it, the body of an answer waits 40 ms for the client's confirmation.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"Listening on http://{_HOST.value}:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(api, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    startup.run(main)

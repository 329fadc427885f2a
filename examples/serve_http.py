"""Serves an export over HTTP, without Docker.

    pip install '.[serve]' absl-py
    python examples/serve_http.py --model_dir=output/demo/export --port=8000
    curl localhost:8000/rank -H 'Content-Type: application/json' \\
        -d '{"query": {"age": 30}, "documents": [{"price": 9.5, "color": "red"}, {"price": null, "color": "blue"}]}'

POST /rank takes the arguments of `rank` of the loaded export, and POST /recommend those of `recommend`, as a JSON
object. The answer to /rank has the places of the documents in the request, best first. GET /metadata returns the model
card, with the names and kinds of the columns, and GET /health the version. Wrong input is answered with the status 422
and a message that names the column. GET /docs describes the requests.
"""

from __future__ import annotations

import socket
from typing import Annotated, Any

import fastapi
import startup
import uvicorn
from absl import app, flags
from fastapi import Body
from fastapi.responses import JSONResponse

from tfr_smooth import serving

_MODEL_DIR = flags.DEFINE_string(
    "model_dir", None, "Folder of the versions of an export, or of one version.", required=True
)
_HOST = flags.DEFINE_string("host", "127.0.0.1", "Address to listen on; 0.0.0.0 for all.")
_PORT = flags.DEFINE_integer("port", 8000, "Port to listen on; 0 for a free one.")


def make_app(model: Any) -> fastapi.FastAPI:
    """The routes of a loaded export. FastAPI calls functions that are not async in threads."""
    api = fastapi.FastAPI(title="Ranking service")

    @api.exception_handler(ValueError)
    def refuse(request: fastapi.Request, error: ValueError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, status_code=422)

    @api.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok", "version": str(model.path)}

    @api.get("/metadata")
    def metadata() -> dict[str, Any]:
        return model.card

    if hasattr(model, "recommend"):

        @api.post("/recommend")
        def recommend(
            users: Annotated[list[Any] | None, Body()] = None,
            histories: Annotated[list[list[Any]] | None, Body()] = None,
            topn: Annotated[int, Body()] = 10,
            exclude: Annotated[list[Any] | None, Body()] = None,
            only: Annotated[list[Any] | None, Body()] = None,
        ) -> JSONResponse:
            lists = model.recommend(users, histories=histories, topn=topn, exclude=exclude, only=only)
            # A response is sent as it is; FastAPI would look at each value of a dict.
            return JSONResponse({"items": [[item._asdict() for item in items] for items in lists]})

    else:

        @api.post("/rank")
        def rank(documents: Annotated[list[Any], Body()], query: Annotated[Any, Body()] = None) -> JSONResponse:
            ranking = model.rank(query, documents=documents)
            if isinstance(query, list):
                return JSONResponse({"rankings": [places(of_query) for of_query in ranking]})
            return JSONResponse({"ranking": places(ranking)})

    return api


def places(ranking: list[Any]) -> list[dict[str, Any]]:
    """The places of the documents in the request, best first, and their scores."""
    return [{"place": document.place, "score": document.score} for document in ranking]


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    api = make_app(serving.load(_MODEL_DIR.value))
    with socket.create_server((_HOST.value, _PORT.value)) as listening:
        # Connections inherit it; without it, the body of an answer waits 40 ms for the client's confirmation.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"Listening on http://{_HOST.value}:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(api, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    startup.run(main)

"""Pairs of texts per second in training and reranking, beside the cross-encoder of sentence-transformers.

python benchmarks/rerankers.py --model_dir=cross-encoder --threads=1 --runs=3 --warm_runs=1

All sides tokenize the same texts, of made-up words, and use the same checkpoint: a cross-encoder with one label, as
`CrossEncoder("all-MiniLM-L6-v2", num_labels=1).save_pretrained(folder)` writes. Training steps have 8 lists of a
relevant and three other documents, a softmax loss, all layers and Adam. sentence-transformers is used if it is
installed. ONNX files also have weights of 8 bits.
"""

from __future__ import annotations

import importlib.util
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import harness
import numpy as np
from absl import app, flags

# The inputs of ONNX files, as the encodings of the package tokenizers have them.
INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
_MODEL_DIR = flags.DEFINE_string("model_dir", None, "Folder of a cross-encoder of BERT.", required=True)
_QUERIES = flags.DEFINE_integer("queries", 16, "Queries, a multiple of 8.", lower_bound=8)
_DEPTH = flags.DEFINE_integer("depth", 32, "Documents per query that are reranked.", lower_bound=4)
_WORDS = flags.DEFINE_integer("words", 60, "Mean number of words per document.", lower_bound=1)
_LENGTH = flags.DEFINE_integer("length", 128, "Maximum tokens per pair.", lower_bound=8)

LISTS, DOCUMENTS = 8, 4
BATCH = 32  # pairs at once in ONNX Runtime


def texts() -> tuple[dict[str, str], dict[str, list[str]]]:
    """Returns queries, and the documents of each query."""
    random = np.random.default_rng(0)
    vocabulary = (pathlib.Path(_MODEL_DIR.value) / "vocab.txt").read_text(encoding="utf-8")
    words = [word for word in vocabulary.split() if word.isascii() and word.isalpha() and len(word) > 2]

    def some(count: int) -> str:
        return " ".join(random.choice(words, count))

    queries = {f"q{number}": some(6) for number in range(_QUERIES.value)}
    return queries, {query: [some(random.poisson(_WORDS.value) + 1) for _ in range(_DEPTH.value)] for query in queries}


def ours(queries: dict[str, str], documents: dict[str, list[str]]) -> dict[str, Sequence[Callable[[], Any]]]:
    """Returns functions that rerank, with the scores as result, and that train; for ONNX only the first."""
    import pandas as pd
    import tensorflow as tf

    from tfr_smooth import losses, text
    from tfr_smooth.text import text_lists

    rows = [
        (queries[query], each, int(number == 0))
        for query, found in documents.items()
        for number, each in enumerate(found)
    ]
    table = pd.DataFrame(rows, columns=["query", "text", "label"])
    ranker = text.TextRanker.from_pretrained(_MODEL_DIR.value, length=_LENGTH.value)
    model = ranker.model_
    model.compile(tf.keras.optimizers.Adam(2e-5), losses.SoftmaxLoss())

    def train() -> None:
        lists = text_lists.lists_of(table, ranker.columns_, labeled=True)
        inputs = text_lists.PairInputs(model.encoder, *text_lists.texts_of(lists), length=_LENGTH.value, passages=1)
        drawn = text_lists.TrainingLists(lists, relevant=1, negatives=DOCUMENTS - 1, seed=0)
        model.fit(drawn.dataset(inputs, batch_size=LISTS, epochs=range(1)), verbose=0, shuffle=False)

    folder = pathlib.Path(tempfile.mkdtemp()) / "onnx"
    ranker.export(folder, format="onnx")
    onnxruntime, quantization = (importlib.import_module(f"onnxruntime{part}") for part in ("", ".quantization"))
    onnxruntime.set_default_logger_severity(3)
    quantization.quantize_dynamic(folder / "model.onnx", folder / "int8.onnx", per_channel=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = harness.threads()
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()

    def by_onnx(name: str) -> Callable[[], np.ndarray]:
        session = onnxruntime.InferenceSession(folder / name, options)

        def rerank() -> np.ndarray:
            encoded, wanted = (
                tokenizer.encode_batch([row[:2] for row in rows]),
                [each.name for each in session.get_inputs()],
            )
            order, scores = sorted(range(len(rows)), key=lambda row: len(encoded[row])), np.zeros(len(rows), np.float32)
            for some in (order[start : start + BATCH] for start in range(0, len(rows), BATCH)):
                padded = {name: np.zeros([len(some), len(encoded[some[-1]])], np.int64) for name in wanted}
                for name, array in padded.items():
                    for place, row in enumerate(some):
                        array[place, : len(encoded[row])] = getattr(encoded[row], INPUTS[name])
                scores[some] = session.run(["scores"], padded)[0]
            return scores.reshape(len(queries), -1)

        return rerank

    sides: dict[str, Sequence[Callable[[], Any]]] = {"onnx": [by_onnx("model.onnx")], "int8": [by_onnx("int8.onnx")]}
    return {"ours": (lambda: ranker.predict(table).reshape(len(queries), -1), train), **sides}


def theirs(queries: dict[str, str], documents: dict[str, list[str]]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Returns the same functions with sentence-transformers."""
    torch = harness.torch()
    from sentence_transformers import CrossEncoder

    options = {"num_labels": 1, "max_length": _LENGTH.value, "activation_fn": torch.nn.Identity(), "device": "cpu"}
    peer = CrossEncoder(_MODEL_DIR.value, **options)
    optimizer = torch.optim.Adam(peer.model.parameters(), 2e-5)

    def rerank() -> np.ndarray:
        pairs = [(queries[query], each) for query, found in documents.items() for each in found]
        return peer.predict(pairs, batch_size=64, show_progress_bar=False).reshape(len(queries), -1)

    def train() -> None:
        peer.model.train()
        names = list(queries)
        for start in range(0, len(names), LISTS):
            some = names[start : start + LISTS]
            pairs = [(queries[query], each) for query in some for each in documents[query][:DOCUMENTS]]
            inputs = peer.tokenizer(
                *map(list, zip(*pairs, strict=True)),
                padding=True,
                truncation=True,
                max_length=_LENGTH.value,
                return_tensors="pt",
            )
            logits = peer.model(**inputs).logits.reshape(LISTS, DOCUMENTS)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits, torch.zeros(LISTS, dtype=torch.long)).backward()
            optimizer.step()
        peer.model.eval()

    return rerank, train


def main(argv: list[str]) -> None:
    if len(argv) > 1 or _QUERIES.value % LISTS:
        raise app.UsageError(
            f"Unknown argument {argv[1]!r}." if len(argv) > 1 else "--queries must be a multiple of 8."
        )
    queries, documents = texts()
    peer = {}
    if importlib.util.find_spec("sentence_transformers") is None:
        print("sentence-transformers is not installed.")
    else:  # before TensorFlow: PyTorch may crash after it
        peer["sentence-transformers"] = theirs(queries, documents)
    harness.use_threads()
    sides: dict[str, Sequence[Callable[[], Any]]] = {**ours(queries, documents), **peer}
    results = []
    for place, (what, pairs) in enumerate(
        (("reranking", _QUERIES.value * _DEPTH.value), ("training", _QUERIES.value * DOCUMENTS))
    ):
        running = {name: each[place] for name, each in sides.items() if place < len(each)}
        if what == "reranking":
            scores = {name: side() for name, side in running.items()}
            print({name: f"{np.abs(each - scores['ours']).max():.1e} off" for name, each in scores.items()}, flush=True)
        result = harness.race(running, what=what, pairs=pairs)
        results.append(result)
        rates = {name: f"{1000.0 * pairs / ms:,.0f}" for name, ms in result["milliseconds"].items()}
        print(f"{what}: pairs per second {rates}", flush=True)
    harness.report(results, packages=["torch", "sentence_transformers"] if peer else [])


if __name__ == "__main__":
    app.run(main)

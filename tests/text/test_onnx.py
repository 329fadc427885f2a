"""ONNX files of token ids have the scores of the ranker, with the tokenizers beside them."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import tokenizers

from tests.text.conftest import encoded
from tests.text.test_published import FOLDER, frame_of
from tfr_smooth import text

TEXTS = ["", "Wing, HEAT!", "unknown " * 50, "ﬁn", "lift\u00a0of the\twing", "wi\u200bng …", "WÍNG", "ΣΊΣ", "[SEP] of"]


def run(folder, tokenizer, texts):
    session, inputs = onnxruntime.InferenceSession(folder / "model.onnx"), encoded(folder / tokenizer, texts)
    return session.run(None, {each.name: inputs[each.name] for each in session.get_inputs()})[0]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "xlm_roberta"])  # the kinds of tokenizers
def test_pairs_have_the_scores_of_the_ranker_and_its_tokenizer_json_is_enough(family, tmp_path):
    ranker = text.TextRanker.from_pretrained(FOLDER / family)
    folder = ranker.export(tmp_path / "onnx", format="onnx")
    _, expected = frame_of(family)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for pair, ids in zip(expected["pairs"], expected["ids"], strict=True):
        assert tokenizer.encode(*pair).ids == ids
    np.testing.assert_allclose(run(folder, "tokenizer.json", expected["pairs"]), expected["scores"], atol=1e-4)
    # Of other sizes, with texts that are cut, unknown or blank
    pairs = pd.DataFrame([("heat", each) for each in TEXTS * 4], columns=["query", "text"])
    found = run(folder, "tokenizer.json", pairs.to_numpy().tolist())
    np.testing.assert_allclose(found, ranker.predict(pairs), atol=1e-4)


@pytest.mark.slow
def test_vectors_are_those_of_encode(tmp_path):
    ranker = text.TextRanker(
        encoder=FOLDER / "bert", architecture="single", epochs=0, length=9, query_length=5, verbose=False
    ).fit(frame_of("bert")[0].assign(label=[0, 1, 0, 1, 0, 1, 0, 1]))
    folder = ranker.export(tmp_path / "onnx", format="onnx")
    texts = ["heat flow of the wing and drag of a jet tube", *TEXTS]
    for name, role in (("tokenizer.json", "document"), ("query_tokenizer.json", "query")):
        np.testing.assert_allclose(run(folder, name, texts), ranker.encode(texts, role=role), atol=1e-5)


@pytest.mark.slow
def test_token_vectors_have_the_scores_of_colbert(tmp_path):
    folder = text.TextRanker.from_pretrained(FOLDER / "colbert").export(tmp_path / "onnx", format="onnx")
    expected = json.loads((FOLDER / "colbert" / "scores.json").read_text())
    queries, documents = zip(*expected["pairs"], strict=True)
    queries, documents = run(folder, "query_tokenizer.json", queries), run(folder, "tokenizer.json", documents)
    cosines = np.einsum("bqw,bdw->bqd", queries, documents)
    cosines = np.where((documents != 0.0).any(axis=-1)[:, np.newaxis], cosines, -1.0)
    np.testing.assert_allclose(cosines.max(axis=-1).sum(axis=-1), expected["scores"], atol=1e-4)


def test_what_it_cannot_write_is_refused(tmp_path):
    ranker = text.TextRanker.from_pretrained(FOLDER / "bert", passages=2)
    with pytest.raises(ValueError, match="`passages` must be 1 for an export, got 2"):
        ranker.export(tmp_path / "onnx", format="onnx")
    with pytest.raises(ValueError, match="`format` must be one of 'saved_model', 'onnx', got 'tflite'"):
        ranker.export(tmp_path / "onnx", format="tflite")
    with pytest.raises(ValueError, match="`path` must be a new folder, got"):
        text.TextRanker.from_pretrained(FOLDER / "bert").export(tmp_path, format="onnx")
    assert list(tmp_path.iterdir()) == []

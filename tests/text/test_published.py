"""Published rerankers rank as they are, with the scores of their own library."""

import json
import pathlib
import shutil

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tokenizers
from safetensors import numpy as safetensors

from tfr_smooth import text
from tfr_smooth.text import published

# Written by benchmarks/published.py, with the package transformers 5.
FOLDER = pathlib.Path(__file__).parent / "published"
FAMILIES = ["distilbert", "roberta", "albert", "xlm_roberta", "electra"]
SIGMOID = "torch.nn.modules.activation.Sigmoid"


def frame_of(family):
    found = json.loads((FOLDER / family / "scores.json").read_text())
    queries, texts = zip(*found["pairs"], strict=True)
    return pd.DataFrame({"query": queries, "text": texts}), found


def changed(target, family="bert", name="config.json", **values):
    """Copies a folder with other values in a file of JSON; None removes one."""
    shutil.copytree(FOLDER / family, target, dirs_exist_ok=True)
    content = json.loads((target / name).read_text()) if (target / name).exists() else {}
    write(target / name, {key: value for key, value in {**content, **values}.items() if value is not None})
    return target


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize("family", ["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES)])
def test_a_cross_encoder_has_the_tokens_and_scores_of_transformers(family):
    ranker = text.TextRanker.from_pretrained(FOLDER / family)
    frame, expected = frame_of(family)
    inputs = ranker._inputs(ranker.model_.encoder, *(frame[name].tolist() for name in ("query", "text")))
    for found, ids in zip(inputs.ids["pair"][:, 0], expected["ids"], strict=True):
        assert found[: len(ids)].tolist() == ids and (found[len(ids) :] == ranker.model_.encoder.special.pad).all()
    np.testing.assert_allclose(ranker.predict(frame), expected["scores"], rtol=1e-4, atol=1e-4)
    assert ranker.get_params()["length"] == 40  # the tokenizer's


@pytest.mark.slow
def test_it_ranks_measures_saves_and_exports_without_training(tmp_path):
    ranker = text.TextRanker.from_pretrained(FOLDER / "bert", query_id="id", text="document")
    frame, expected = frame_of("bert")
    frame = frame.rename(columns={"text": "document"}).assign(id=[0, 1, 2])
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_allclose(text.TextRanker.load(tmp_path / "ranker.keras").predict(frame), ranker.predict(frame))
    path = ranker.export(tmp_path / "export")
    texts = {"query": tf.constant(frame["query"]), "documents": tf.constant(frame[["document"]].to_numpy(str))}
    found = tf.saved_model.load(path).signatures["serving_default"](**texts)["scores"]
    np.testing.assert_allclose(found[:, 0], expected["scores"], rtol=1e-4, atol=1e-4)
    one = frame.assign(query="wing", id=0, label=[0, 1, 0])
    assert ranker.rank(one)["score"].is_monotonic_decreasing
    assert 0.0 <= ranker.evaluate(one)["ndcg"].mean <= 1.0


def assert_near(ranker, expected, most):
    """The weights are equal up to `most`, and not equal if it is not 0."""
    pairs = zip(ranker.model_.get_weights(), expected.model_.get_weights(), strict=True)
    change = max(np.abs(found - weights).max() for found, weights in pairs)
    assert change <= most and (change > 0.0) == (most > 0.0)


@pytest.mark.slow
def test_training_starts_from_it(table):
    options = {"encoder": FOLDER / "bert", "length": 14, "verbose": False, "select_by": "last"}
    few, published = table[table["query_id"] < "q12"], text.TextRanker.from_pretrained(FOLDER / "bert", length=14)
    assert_near(text.TextRanker(**options, epochs=0).fit(few), published, 0.0)
    again = text.TextRanker(**options, epochs=0).fit(few, init_model=published)
    assert_near(again, published, 0.0)
    # The head is not new, and learns at the encoder's rate: one step of Adam for each of at most two batches.
    assert again.model_.head_rate == published.model_.head_rate == 1.0
    assert_near(text.TextRanker(**options, epochs=1).fit(few), published, 2.5 * 2e-5)


@pytest.mark.slow
def test_the_activation_is_that_of_the_configuration_and_no_part_of_the_training(tmp_path):
    folder = changed(tmp_path / "library")
    content = {"model_type": "CrossEncoder", "activation_fn": SIGMOID}  # as sentence-transformers 6 writes it
    write(folder / "config_sentence_transformers.json", content)
    others = [{"sentence_transformers": {"activation_fn": SIGMOID}}, {"sbert_ce_default_activation_function": SIGMOID}]
    others.append({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"})
    folders = [folder, *(changed(tmp_path / str(number), **values) for number, values in enumerate(others))]
    found = [published.read(each).head.options["output"] for each in [*folders, FOLDER / "bert"]]
    assert found == ["sigmoid"] * 3 + [None] * 2
    ranker, (frame, expected) = text.TextRanker.from_pretrained(folder), frame_of("bert")
    probabilities = 1.0 / (1.0 + np.exp(-np.array(expected["scores"])))
    np.testing.assert_allclose(ranker.predict(frame), probabilities, rtol=1e-4, atol=1e-4)
    model, ids = ranker.model_, {"pair_ids": tf.constant([[expected["ids"][:1]]])}
    model.encoder.backbone.trainable = False
    plain, probability = (float(model(ids, training=training)[0, 0]) for training in (True, False))
    assert probability == pytest.approx(probabilities[0], abs=1e-4) and abs(plain - probability) > 0.01


SBERT, TYPE = "sentence_transformers.models.", "a JSON file has other values: "
REFUSED = [  # a folder, a file with other values or another content, and what is refused
    ("bert", "config.json", {"id2label": {"0": "no", "1": "yes"}}, "config.json: the model must have one .*, got 2"),
    ("bert", "config.json", {"architectures": ["BertForMaskedLM"]}, "`checkpoint` must be a cross-encoder with one la"),
    ("bert", "config.json", {"sbert_ce_default_activation_function": "torch.nn.Tanh"}, "be one of 'Iden.*, .* 'Tanh'"),
    ("bert", "config.json", [], "config.json: must be a dict, got list"),
    ("electra", "config.json", {"embedding_size": 6}, "embedding_size must be hidden_size, got 6 and 12"),
    ("bert", "tokenizer_config.json", {"model_max_length": "40"}, TYPE + "TypeError: .* 'str'"),
    ("bert", "added_tokens.json", {"[Q]": 20}, r"must not be added, got \['\[Q\]'\]"),
    ("bert", "model.safetensors.index.json", {}, "classifier.* cannot be read|KeyError"),
    ("bert", "modules.json", {"path": "1"}, "modules.json: must be a list, got dict"),
    ("bert", "modules.json", [{"type": f"{SBERT}CNN", "path": "0"}], "modules must be an encoder, .*, got CNN"),
    ("bert", "modules.json", [{"type": SBERT + kind, "path": kind} for kind in published._MODULES[2]], "Dense/config"),
    ("colbert", "artifact.metadata", {"similarity": "l2"}, "artifact.metadata: similarity must be 'cosine', got 'l2'"),
    ("colbert", "artifact.metadata", {"query_token_id": "[Q]"}, r"`tokenizer` must have the token '\[Q\]'"),
    ("colbert", "artifact.metadata", '{"a": ', "artifact.metadata: not JSON: Expecting value"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_other_models_and_damaged_files_are_refused_by_name(case, tmp_path):
    family, name, content, message = REFUSED[case]
    folder = changed(tmp_path, family, **({"architectures": ["BertModel"]} if name == "modules.json" else {}))
    if isinstance(content, dict) and name != "modules.json":
        changed(folder, family, name, **content)
    else:
        write(folder / name, content)
    with pytest.raises(ValueError, match=message):
        text.TextRanker.from_pretrained(folder).predict({"query": ["wing"], "text": ["lift"]})


def test_damaged_and_missing_heads_are_refused_by_name(tmp_path):
    path = changed(tmp_path) / "model.safetensors"
    content, tensors = path.read_bytes(), safetensors.load_file(path)
    del tensors["classifier.weight"]
    safetensors.save_file(tensors, path)
    with pytest.raises(ValueError, match="model.safetensors: classifier.weight cannot be read"):
        text.TextRanker.from_pretrained(tmp_path)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="model.safetensors: .* cannot be read"):
        text.TextRanker.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="`checkpoint` must be a cross-encoder with one label, or"):
        text.TextRanker.from_pretrained(FOLDER / "colbert", architecture="cross")


def test_the_length_is_that_of_the_tokenizer_or_of_the_positions(tmp_path):
    for family, values, settings, expected in (
        ("bert", {"max_position_embeddings": 8192}, {"model_max_length": 10**30}, 512),
        ("roberta", {}, {}, 40),  # two places have other uses
        ("roberta", {}, {"model_max_length": 30}, 30),
    ):
        folder = changed(tmp_path / f"{expected}", family, **values)
        write(folder / "tokenizer_config.json", settings)
        assert published.read(folder).sizes == {"length": expected}


@pytest.mark.slow
def test_colbert_has_its_markers_masks_and_linear_layer(tmp_path):
    ranker = text.TextRanker.from_pretrained(FOLDER / "colbert")
    frame, expected = frame_of("colbert")
    sizes = {"architecture": "late", "length": 12, "query_length": 8}
    assert {**ranker.get_params(), **sizes} == ranker.get_params()
    ranker.save(tmp_path / "ranker.keras")
    for each in (ranker, text.TextRanker.load(tmp_path / "ranker.keras")):
        np.testing.assert_allclose(each.predict(frame), expected["scores"], rtol=1e-5)
    # In a list with other documents, and as text
    one = frame.assign(query="heat flow")
    served = tf.saved_model.load(ranker.export(tmp_path / "export")).signatures["serving_default"]
    texts = {"query": tf.constant(["heat flow"]), "documents": tf.constant([one["text"].tolist()])}
    np.testing.assert_allclose(served(**texts)["scores"][0], ranker.predict(one), rtol=1e-5)
    folder = changed(tmp_path / "counted", "colbert", "artifact.metadata", mask_punctuation=False)
    counted = text.TextRanker.from_pretrained(folder).predict(frame)
    assert (counted[:3] == pytest.approx(expected["scores"][:3])) and abs(counted[3] - expected["scores"][3]) > 1e-3


@pytest.mark.slow
def test_training_starts_from_colbert(table):
    options = {"encoder": FOLDER / "colbert", "architecture": "late", "length": 12, "query_length": 8, "verbose": False}
    first = text.TextRanker.from_pretrained(FOLDER / "colbert")
    assert_near(text.TextRanker(**options, epochs=0).fit(table), first, 0.0)
    assert_near(text.TextRanker(**options, epochs=1).fit(table[table["query_id"] < "q12"]), first, 0.01)
    single = text.TextRanker(**{**options, "architecture": "single"}, epochs=0).fit(table)
    assert single.model_.dense is None and not single.model_.encoder.markers  # they are those of token vectors


@pytest.mark.slow
@pytest.mark.parametrize("family", ["xlm_roberta", "albert"])
def test_a_tokenizer_json_has_the_pieces_of_sentencepiece(family, tmp_path):
    folder, (frame, expected) = changed(tmp_path, family), frame_of(family)
    next(folder.glob("s*.model")).unlink()
    np.testing.assert_allclose(text.TextRanker.from_pretrained(folder).predict(frame), expected["scores"], rtol=1e-4)


def with_tokenizer(target, family="bert", settings=None, **content):
    """Copies a folder with tokenizer.json in place of its tokenizer; without settings, no tokenizer_config.json."""
    folder = changed(target, family)
    if family == "bert":
        tokens = {token: number for number, token in enumerate((folder / "vocab.txt").read_text().split())}
        made = tokenizers.Tokenizer(tokenizers.models.WordPiece(tokens, unk_token="[UNK]"))
        made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=False)
        made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        made.save(str(folder / "tokenizer.json"))
    write(folder / "tokenizer.json", {**json.loads((folder / "tokenizer.json").read_text()), **content})
    for name in ("vocab.txt", "sentencepiece.bpe.model", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)
    if settings is not None:
        write(folder / "tokenizer_config.json", settings)
    return folder


@pytest.mark.parametrize(
    ("settings", "is_lower", "has_segments"),
    [
        (None, True, True),
        ({"tokenizer_class": "BertTokenizer", "do_lower_case": False}, False, True),
        ({"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": True}, False, False),  # as tokenizer.json says
    ],
)
def test_word_pieces_have_the_case_and_segments_of_transformers(settings, is_lower, has_segments, tmp_path):
    encoder = text.load_encoder(with_tokenizer(tmp_path, settings=settings))
    upper, lower = encoder.tokenize(["WING", "wing"]).to_list()
    assert (upper == lower) == is_lower and encoder.segments == has_segments


@pytest.mark.parametrize(
    ("family", "content", "message"),
    [
        ("bert", {"added_tokens": [{"content": "covid-19"}]}, r"must not be added, got \['covid-19'\]"),
        ("bert", {"model": None}, "tokenizer.json: has other values: TypeError"),
        ("xlm_roberta", {"normalizer": {"type": "Lowercase"}}, "normalizers must be among .*, got Lowercase"),
    ],
)
def test_tokenizers_with_other_tokens_than_transformers_are_refused(family, content, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        text.load_encoder(with_tokenizer(tmp_path, family, {}, **content))


@pytest.mark.slow
def test_multilingual_bert_has_the_tokenizer_of_xlm_roberta_and_no_segments(tmp_path):
    folder = changed(tmp_path, vocab_size=32)
    (folder / "vocab.txt").unlink()
    shutil.copy(FOLDER / "xlm_roberta" / "tokenizer.json", folder)
    write(folder / "tokenizer_config.json", {"tokenizer_class": "XLMRobertaTokenizer"})
    weights = safetensors.load_file(folder / "model.safetensors")
    table = "bert.embeddings.word_embeddings.weight"
    weights[table] = np.resize(weights[table], [32, weights[table].shape[1]])
    safetensors.save_file(weights, folder / "model.safetensors")
    encoder = text.load_encoder(folder)
    frame, expected = frame_of("xlm_roberta")
    ids = expected["ids"][0]
    assert encoder.tokenize([frame["query"][0]]).to_list()[0] == ids[1 : ids.index(2)]
    inputs = dict(zip(encoder.backbone.input, encoder._inputs(tf.constant([ids])), strict=True))
    assert inputs["segment_ids"].numpy().max() == 0


@pytest.mark.parametrize("family", ["roberta", pytest.param("albert", marks=pytest.mark.slow)])
def test_the_names_of_an_encoder_without_a_head_have_no_prefix(family, tmp_path):
    # Those of all-distilroberta-v1 and other models of sentence-transformers.
    folder = changed(tmp_path, family, architectures=["Model"])
    tensors = safetensors.load_file(folder / "model.safetensors")
    plain = {name.removeprefix(f"{family}."): value for name, value in tensors.items() if name.startswith(family)}
    safetensors.save_file(plain, folder / "model.safetensors")
    ids = tf.constant([[2, 5, 6, 7, 3]])
    found, expected = (text.load_encoder(path)(ids) for path in (folder, FOLDER / family))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_the_activation_of_distilbert_is_read(tmp_path):
    folder = changed(tmp_path, "distilbert", activation="relu")
    for layer in text.load_encoder(folder).backbone.transformer_layers:
        assert layer._feedforward_intermediate_dense.activation is tf.keras.activations.relu


@pytest.mark.slow
@pytest.mark.parametrize("has_dense", [False, True])
def test_a_model_of_vectors_ranks_by_cosines(has_dense, tmp_path):
    folder, random = changed(tmp_path, architectures=["BertModel"]), np.random.default_rng(0)
    kinds = ["Transformer", "Pooling", *["Dense"] * has_dense, "Normalize"]
    write(folder / "modules.json", [{"type": SBERT + kind, "path": kind} for kind in kinds])
    write(folder / "sentence_bert_config.json", {"max_seq_length": 20})
    kernel, bias = random.normal(size=[5, 12]).astype("f"), random.normal(size=5).astype("f")
    if has_dense:
        (folder / "Dense").mkdir()
        safetensors.save_file({"linear.weight": kernel, "linear.bias": bias}, folder / "Dense" / "model.safetensors")
        config = {"in_features": 12, "out_features": 5, "activation_function": "torch.nn.modules.Tanh"}
        write(folder / "Dense" / "config.json", config)
    ranker = text.TextRanker.from_pretrained(folder)
    assert ranker.get_params()["length"] == ranker.get_params()["query_length"] == 20
    frame, vectors = frame_of("bert")[0], []
    inputs = ranker._inputs(ranker.model_.encoder, frame["query"], frame["text"]).ids
    for name, role in (("query", "query"), ("text", "document")):
        hidden, mask = (each.numpy() for each in ranker.model_.encode(inputs[role]))
        mean = (hidden * mask[..., np.newaxis]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        if has_dense:
            mean = np.tanh(mean @ kernel.T + bias)
        vectors.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
        np.testing.assert_allclose(ranker.encode(frame[name], role=role), vectors[-1], atol=1e-6)
    expected = 20.0 * (vectors[0] * vectors[1]).sum(axis=1)
    np.testing.assert_allclose(ranker.predict(frame), expected, rtol=1e-4, atol=1e-5)
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_allclose(text.TextRanker.load(tmp_path / "ranker.keras").predict(frame), expected, rtol=1e-4)

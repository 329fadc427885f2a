"""Published rerankers rank as they are, with the scores of their own library."""

import json
import pathlib
import shutil

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import transformers
from safetensors import numpy as safetensors

from tests.text.conftest import served
from tfr_smooth import text
from tfr_smooth.text import checkpoints, configurations, layout

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
        size = ranker.model_.encoder.backbone.vocabulary_size
        assert (found[: len(ids)] % size).tolist() == ids and (found[len(ids) :] == layout.PADDING).all()
    np.testing.assert_allclose(ranker.predict(frame), expected["scores"], rtol=1e-5, atol=1e-5)
    assert ranker.get_params()["length"] == 40  # the tokenizer's


@pytest.mark.slow
def test_it_ranks_measures_saves_and_exports_without_training(tmp_path):
    ranker = text.TextRanker.from_pretrained(FOLDER / "bert", query_id="id", text="document")
    frame, expected = frame_of("bert")
    frame = frame.rename(columns={"text": "document"}).assign(id=range(len(frame)))
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_allclose(text.TextRanker.load(tmp_path / "ranker.keras").predict(frame), ranker.predict(frame))
    found = served(ranker.export(tmp_path / "export"), frame[["query", "document"]].to_numpy().tolist())
    np.testing.assert_allclose(found, expected["scores"], rtol=1e-5, atol=1e-5)
    one = frame.assign(query="wing", id=0, label=np.arange(len(frame)) % 2)
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
    found = [checkpoints.read(each).options["output"] for each in [*folders, FOLDER / "bert"]]
    assert found == ["sigmoid"] * 3 + [None] * 2
    ranker, (frame, expected) = text.TextRanker.from_pretrained(folder), frame_of("bert")
    probabilities = 1.0 / (1.0 + np.exp(-np.array(expected["scores"])))
    np.testing.assert_allclose(ranker.predict(frame), probabilities, rtol=1e-4, atol=1e-4)
    model, ids = ranker.model_, ranker._inputs(ranker.model_.encoder, ["heat flow"], expected["pairs"][0][1:])
    ids = ids.batch(np.array([[0]]))
    model.encoder.backbone.trainable = False
    plain, probability = (float(model(ids, training=training)[0, 0]) for training in (True, False))
    assert probability == pytest.approx(probabilities[0], abs=1e-4) and abs(plain - probability) > 0.01


LIBRARY = "config_sentence_transformers.json"
SBERT, TYPE = "sentence_transformers.models.", "a JSON file has other values: "
REFUSED = [  # a folder, a file with other values or another content, and what is refused
    ("bert", "config.json", {"id2label": {"0": "no", "1": "yes"}}, "config.json: the model must have one .*, got 2"),
    ("bert", "config.json", {"architectures": ["BertForMaskedLM"]}, "`checkpoint` must be a cross-encoder with one la"),
    ("bert", "config.json", {"sbert_ce_default_activation_function": "torch.nn.Tanh"}, "be one of 'Iden.*, .* 'Tanh'"),
    ("bert", "config.json", [], "config.json: must be a dict, got list"),
    ("electra", "config.json", {"embedding_size": 6}, "embedding_size must be hidden_size, got 6 and 12"),
    ("bert", "tokenizer_config.json", {"model_max_length": "40"}, TYPE + "TypeError: .* 'str'"),
    ("bert", "added_tokens.json", {"[Q]": 20}, "`tokenizer` must have at most 20 tokens, .* got 21"),
    ("bert", "config.json", {"swiglu": True}, "config.json: swiglu is not supported, and might change .*, got True"),
    ("bert", "config.json", {"type_vocab_size": 1}, "config.json: type_vocab_size must be 2, got 1"),
    ("bert", "config.json", {"position_embedding_type": "relative_key"}, "must be 'absolute', got 'relative_key'"),
    ("roberta", "config.json", {"pad_token_id": 0}, "config.json: pad_token_id must be 1, got 0"),
    ("bert", LIBRARY, {"prompts": {"q": "x"}, "default_prompt_name": "q"}, "default_prompt_name must be None for pair"),
    ("bert", LIBRARY, {"prompts": {"a": ""}, "default_prompt_name": "q"}, "default_prompt_name must be .*, got 'q'"),
    ("bert", "modules.json", [{"type": "own.Transformer", "path": ""}], "of sentence_transformers, got 'own.Trans"),
    ("bert", "tokenizer.json", "{}", "transformers cannot read its tokenizer: "),
    ("bert", "tokenizer_config.json", {"split_special_tokens": True}, "split_special_tokens must be False, got True"),
    ("bert", "model.safetensors.index.json", {}, "classifier.* cannot be read|KeyError"),
    ("bert", "modules.json", {"path": "1"}, "modules.json: must be a list, got dict"),
    ("bert", "modules.json", [{"type": f"{SBERT}CNN", "path": "0"}], "modules must be an encoder of .*, got CNN"),
    ("bert", "modules.json", [{"type": SBERT + kind, "path": kind} for kind in checkpoints._MODULES[2]], "Dense/"),
    ("bert", "modules.json", [{"type": SBERT + kind, "path": "0"} for kind in ("Pooling", "Dense")], "got Pooling"),
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
        assert checkpoints.read(folder).sizes == {"length": expected}


@pytest.mark.slow
def test_colbert_has_its_markers_masks_and_linear_layer(tmp_path):
    ranker = text.TextRanker.from_pretrained(FOLDER / "colbert")
    frame, expected = frame_of("colbert")
    sizes = {"architecture": "late", "length": 12, "query_length": 8}
    assert {**ranker.get_params(), **sizes} == ranker.get_params()
    ranker.save(tmp_path / "ranker.keras")
    for each in (ranker, text.TextRanker.load(tmp_path / "ranker.keras")):
        np.testing.assert_allclose(each.predict(frame), expected["scores"], rtol=1e-5)
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


LONG = "wing " * 20_000
ODD = [
    "",
    "he\x00at",
    "\u0e1b\u0e35\u0e01",
    "\u7ffc\u81a8",
    "\U0001f680",
    "wi\u00adng",
    "[SEP] <s> [MASK]</s>",
    "W\u00cdNG",
]


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "xlm_roberta"])
@pytest.mark.parametrize("is_json", [False, True])
def test_odd_texts_have_the_ids_of_transformers_by_each_file(family, is_json, tmp_path):
    folder = changed(tmp_path, family)
    if is_json:
        transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer.save(str(folder / "tokenizer.json"))
        for name in ("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model"):
            (folder / name).unlink(missing_ok=True)
    else:
        (folder / "tokenizer.json").unlink(missing_ok=True)
    tokenizer, encoder = transformers.AutoTokenizer.from_pretrained(folder), text.load_encoder(folder)
    pairs = [(query, document) for query in ODD for document in ODD] + [("wing", LONG), (LONG, "heat")]
    expected = tokenizer(pairs, truncation=True, max_length=40)
    queries, documents = (encoder.tokenize(texts) for texts in zip(*pairs, strict=True))
    found = encoder.layout.pairs(queries, documents, 40, 1)[:, 0]
    for number, row in enumerate(found):
        ids, segments = (
            row[row >= 0] % encoder.backbone.vocabulary_size,
            row[row >= 0] // encoder.backbone.vocabulary_size,
        )
        assert ids.tolist() == expected["input_ids"][number]
        assert segments.tolist() == expected.get("token_type_ids", [[0] * len(ids)] * len(pairs))[number]


# The keys of config.json of well-known rerankers and embedders, as their pages show them.
BERT = """
    _name_or_path architectures attention_probs_dropout_prob classifier_dropout gradient_checkpointing hidden_act
    hidden_dropout_prob hidden_size initializer_range intermediate_size layer_norm_eps max_position_embeddings
    model_type num_attention_heads num_hidden_layers pad_token_id position_embedding_type transformers_version
    type_vocab_size use_cache vocab_size
"""
PAIR = f"{BERT} id2label label2id sbert_ce_default_activation_function"
ROBERTA = f"{BERT} bos_token_id eos_token_id torch_dtype"
POOLER = (
    "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type"
)
DISTILBERT = """
    _name_or_path activation architectures attention_dropout dim dropout hidden_dim initializer_range
    max_position_embeddings model_type n_heads n_layers pad_token_id qa_dropout seq_classif_dropout
    sinusoidal_pos_embds tie_weights_ torch_dtype transformers_version vocab_size
"""
WELL_KNOWN = {
    "all-MiniLM-L6-v2": BERT,
    "all-MiniLM-L12-v2": BERT,
    "multi-qa-MiniLM-L6-cos-v1": BERT,
    "paraphrase-multilingual-MiniLM-L12-v2": BERT,
    "all-distilroberta-v1": f"{ROBERTA}",
    "msmarco-distilbert-base-v4": DISTILBERT,
    "distiluse-base-multilingual-cased-v2": f"{DISTILBERT} output_hidden_states output_past",
    "LaBSE": f"{BERT} {POOLER}",
    "bge-small-en-v1.5": f"{BERT} id2label label2id torch_dtype",
    "bge-m3": f"{ROBERTA} output_past",
    "e5-base-v2": f"{BERT} torch_dtype",
    "multilingual-e5-base": f"{ROBERTA} output_past",
    "gte-base": f"{BERT} torch_dtype",
    "mxbai-embed-large-v1": f"{BERT} torch_dtype",
    "ms-marco-MiniLM-L6-v2": f"{PAIR} sentence_transformers",
    "ms-marco-TinyBERT-L2-v2": PAIR,
    "ms-marco-electra-base": f"{PAIR} embedding_size summary_activation summary_last_dropout summary_type",
    "stsb-roberta-base": f"{PAIR} bos_token_id eos_token_id",
    "bge-reranker-base": f"{ROBERTA} id2label label2id output_past",
    "bge-reranker-v2-m3": f"{ROBERTA} id2label label2id output_past",
    "colbertv2.0": PAIR.replace("sbert_ce_default_activation_function", ""),
}


@pytest.mark.parametrize("name", WELL_KNOWN)
def test_each_setting_of_well_known_models_is_kept_without_effect_or_refused(name):
    known = configurations._SETTINGS["config.json"]
    assert not set(WELL_KNOWN[name].split()) - {*known["read"], *known["without_effect"], *known["one_of"]}


def test_no_setting_has_two_meanings():
    for known in configurations._SETTINGS.values():
        names = [*known["read"], *known["without_effect"], *known["one_of"]]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("settings", "upper", "segments"),
    [
        ({"tokenizer_class": "BertTokenizer", "do_lower_case": False}, [1], True),
        ({"tokenizer_class": "BertTokenizer", "do_lower_case": True}, [5], True),
        ({"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids", "attention_mask"]}, [5], False),
        ({"tokenizer_class": "BertTokenizer", "sep_token": "##s", "cls_token": "the"}, [5], True),
    ],
)
def test_the_settings_of_a_tokenizer_are_kept(settings, upper, segments, tmp_path):
    folder = changed(tmp_path)
    write(folder / "tokenizer_config.json", {"truncation_side": "left", **settings})
    encoder, tokenizer = text.load_encoder(folder), transformers.AutoTokenizer.from_pretrained(folder)
    assert encoder.tokenize(["WING"]) == [upper] and encoder.has_segments == segments
    assert encoder.truncation_side == "left"
    ids = encoder.layout.single(encoder.tokenize(["wing of heat"]), 4)[0].tolist()
    assert ids == tokenizer("wing of heat", truncation=True, max_length=4)["input_ids"]


def test_settings_of_sentence_transformers_are_kept(tmp_path):
    folder = changed(tmp_path, architectures=["BertModel"], layer_norm_eps=0.5)
    modules = [("Transformer", ""), ("Pooling", "own"), ("Normalize", "2")]
    write(folder / "modules.json", [{"type": SBERT + kind, "path": path} for kind, path in modules])
    (folder / "own").mkdir()
    write(folder / "own" / "config.json", {"pooling_mode": "cls"})
    prompts = {"query": "wing ", "passage": "heat ", "other": "drag "}
    write(folder / LIBRARY, {"prompts": prompts, "default_prompt_name": "other", "similarity_fn_name": "cosine"})
    changed_vocabulary = (folder / "tokenizer_config.json", {"do_lower_case": False})
    write(*changed_vocabulary)
    write(folder / "sentence_bert_config.json", {"do_lower_case": True, "max_seq_length": 9})
    ranker = text.TextRanker.from_pretrained(folder)
    encoder = ranker.model_.encoder
    assert encoder.pooling == "first" and encoder.epsilon == 0.5 and ranker.get_params()["length"] == 9
    assert encoder.prompts == {"query": "wing ", "document": "heat "}
    assert encoder.tokenize(["DRAG"], "query") == [[5, 9]] and encoder.tokenize(["of"], "document") == [[7, 17]]
    layers = [
        layer for layer in encoder.backbone._flatten_layers() if isinstance(layer, tf.keras.layers.LayerNormalization)
    ]
    assert len(layers) == 5 and {layer.epsilon for layer in layers} == {0.5}
    for name, content, message in (
        (
            LIBRARY,
            {"prompts": {}, "similarity_fn_name": "dot"},
            "similarity_fn_name must be 'cosine' or None, got 'dot'",
        ),
        (
            LIBRARY,
            {"model_type": "CrossEncoder"},
            "modules must be an encoder of vectors, .*, got Transformer, Pooling",
        ),
        (
            "own/config.json",
            {"pooling_mode": "cls", "include_prompt": False},
            "include_prompt must be True with the prom",
        ),
    ):
        copy = changed(tmp_path / message[:20].replace(" ", ""), name="config.json", architectures=["BertModel"])
        shutil.copytree(folder, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("include*", "modules*must*"))
        shutil.copy(folder / "modules.json", copy)
        write(copy / name, content)
        with pytest.raises(ValueError, match=message):
            text.TextRanker.from_pretrained(copy)


@pytest.mark.parametrize("family", ["roberta", pytest.param("albert", marks=pytest.mark.slow)])
def test_the_names_of_an_encoder_without_a_head_have_no_prefix(family, tmp_path):
    # Those of all-distilroberta-v1 and other models of sentence-transformers.
    folder = changed(tmp_path, family, architectures=["Model"])
    tensors = safetensors.load_file(folder / "model.safetensors")
    of_encoder = {name.removeprefix(f"{family}."): value for name, value in tensors.items() if name.startswith(family)}
    plain = {  # and layer normalization has the names of old files
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): value
        for name, value in of_encoder.items()
        if "pooler" not in name
    }
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
        config |= {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}
        write(folder / "Dense" / "config.json", config)
    ranker = text.TextRanker.from_pretrained(folder)
    assert ranker.get_params()["length"] == ranker.get_params()["query_length"] == 20
    frame, vectors = frame_of("bert")[0][:3], []
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

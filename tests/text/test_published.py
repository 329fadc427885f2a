"""Published rerankers rank as they are, with the scores of their own library."""

import base64
import importlib
import json
import pathlib
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tokenizers
from safetensors import numpy as safetensors

from tests.text.conftest import proto
from tfr_smooth import serving, text
from tfr_smooth.text import published

# Written by benchmarks/published.py, with the package transformers 5.
FOLDER = pathlib.Path(__file__).parent / "published"
FAMILIES = ["bert", "distilbert", "roberta", "albert", "xlm_roberta", "electra"]
every = pytest.mark.parametrize(
    "family", [FAMILIES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES[1:])]
)


def frame_of(family):
    found = json.loads((FOLDER / family / "scores.json").read_text())
    queries, texts = zip(*found["pairs"], strict=True)
    return pd.DataFrame({"query": queries, "text": texts}), found


def changed(target, family="bert", **values):
    """Copies a folder with other values in its configuration; None removes one."""
    shutil.copytree(FOLDER / family, target, dirs_exist_ok=True)
    config = {**json.loads((target / "config.json").read_text()), **values}
    (target / "config.json").write_text(
        json.dumps({name: value for name, value in config.items() if value is not None})
    )
    return target


@every
def test_a_cross_encoder_has_the_tokens_and_scores_of_transformers(family):
    ranker = text.TextRanker.from_pretrained(FOLDER / family)
    frame, expected = frame_of(family)
    inputs = ranker._inputs(ranker.model_.encoder, *(frame[name].tolist() for name in ("query", "text")))
    for found, ids in zip(inputs.ids["pair"][:, 0], expected["ids"], strict=True):
        assert found[: len(ids)].tolist() == ids and (found[len(ids) :] == ranker.model_.encoder.special.pad).all()
    np.testing.assert_allclose(ranker.predict(frame), expected["scores"], rtol=1e-4, atol=1e-4)
    assert ranker.get_params()["length"] == 40  # the tokenizer's


def test_it_ranks_measures_saves_and_exports_without_training(tmp_path):
    ranker = text.TextRanker.from_pretrained(FOLDER / "bert")
    frame, expected = frame_of("bert")
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_allclose(text.TextRanker.load(tmp_path / "ranker.keras").predict(frame), ranker.predict(frame))
    loaded = serving.load(ranker.export(tmp_path / "export"))
    np.testing.assert_allclose(loaded.score(frame), expected["scores"], rtol=1e-4, atol=1e-4)
    one = frame.assign(query="wing", label=[0, 1, 0])
    assert ranker.rank(one)["score"].is_monotonic_decreasing
    assert 0.0 <= ranker.evaluate(one)["ndcg"].mean <= 1.0


def test_partitions_have_its_scores_with_and_without_an_export(tmp_path):
    ranker = text.TextRanker.from_pretrained(FOLDER / "bert", query_id="id", text="document")
    frame = pd.concat([frame_of("bert")[0]] * 2, ignore_index=True).rename(columns={"text": "document"})
    frame["id"] = pd.factorize(frame["query"])[0]
    path = ranker.export(tmp_path)
    scorers = serving.PartitionScorer(ranker), serving.PartitionScorer(path, query="query", text="document")
    assert [scorer.key for scorer in scorers] == ["id", "query"]
    for scorer in scorers:
        found = pickle.loads(pickle.dumps(scorer))(frame.sample(frac=1.0, random_state=0)).sort_index()
        np.testing.assert_allclose(found["score"], ranker.predict(frame), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="`text` must be one of .*, got 'text'"):
        serving.PartitionScorer(path, query="query")(frame)


def test_training_starts_from_it(table):
    quick = {"length": 14, "epochs": 1, "verbose": False, "select_by": "last"}
    published = text.TextRanker.from_pretrained(FOLDER / "bert", length=14)
    none = text.TextRanker(encoder=FOLDER / "bert", **{**quick, "epochs": 0}).fit(table)
    np.testing.assert_allclose(none.predict(table), published.predict(table), rtol=1e-5, atol=1e-6)
    trained = text.TextRanker(encoder=FOLDER / "bert", **quick).fit(table)
    again = text.TextRanker(encoder=FOLDER / "bert", **quick).fit(table, init_model=published)
    np.testing.assert_allclose(again.predict(table), trained.predict(table), rtol=1e-5, atol=1e-6)
    change = np.abs(trained.predict(table) - published.predict(table)).max()
    assert 0.0 < change < 1.0  # the head is not new, and learns at the encoder's rate


@pytest.mark.parametrize(
    ("settings", "is_sigmoid"),
    [
        ({"sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"}, True),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, True),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("of_library", [False, True])
def test_the_activation_is_that_of_the_configuration(settings, is_sigmoid, of_library, tmp_path):
    frame, expected = frame_of("bert")
    folder = changed(tmp_path, **settings)
    if of_library and not settings:  # as sentence-transformers 6 writes it
        content = {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.activation.Sigmoid"}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(content))
        is_sigmoid = True
    scores = text.TextRanker.from_pretrained(folder).predict(frame)
    logits = np.array(expected["scores"])
    np.testing.assert_allclose(scores, 1.0 / (1.0 + np.exp(-logits)) if is_sigmoid else logits, rtol=1e-4, atol=1e-4)


def test_a_sigmoid_is_no_part_of_the_training(tmp_path):
    model = text.TextRanker.from_pretrained(
        changed(tmp_path, sbert_ce_default_activation_function="torch.nn.modules.activation.Sigmoid")
    ).model_
    ids = {"pair_ids": tf.constant([[[[2, 7, 8, 3, 18, 10, 3]]]])}
    model.encoder.backbone.trainable = False
    plain, probability = (float(model(ids, training=training)[0, 0]) for training in (True, False))
    assert 0.0 < probability < 1.0 and plain != probability


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"id2label": {"0": "no", "1": "yes"}},
            "config.json: the model must have one label, which is the score, got 2",
        ),
        ({"id2label": None}, "the model must have one label, which is the score, got 2"),
        ({"architectures": ["XLNetForSequenceClassification"]}, "architectures must be one of Bert.*, got XLNetFor"),
        ({"architectures": ["BertForMaskedLM"]}, "`checkpoint` must be a cross-encoder with one label, or a model"),
        ({"sbert_ce_default_activation_function": "torch.nn.Tanh"}, "activation` must be one of 'Identity', .* 'Tanh'"),
    ],
)
def test_other_models_are_refused_by_name(values, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        text.TextRanker.from_pretrained(changed(tmp_path, **values))


def test_damaged_and_missing_heads_are_refused_by_name(tmp_path):
    folder = changed(tmp_path / "without")
    tensors = safetensors.load_file(folder / "model.safetensors")
    del tensors["classifier.weight"]
    safetensors.save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ValueError, match="model.safetensors: classifier.weight cannot be read"):
        text.TextRanker.from_pretrained(folder)
    folder = changed(tmp_path / "truncated")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="model.safetensors: .* cannot be read"):
        text.TextRanker.from_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.CNN", "path": "0"}]))
    with pytest.raises(ValueError, match="modules.json: modules must be an encoder, its pooling, .*, got CNN"):
        text.TextRanker.from_pretrained(folder)


@pytest.mark.parametrize(
    ("family", "values", "tokenizer", "expected"),
    [
        ("bert", {"max_position_embeddings": 8192}, 10**30, 512),
        ("bert", {}, None, 42),
        ("roberta", {}, None, 40),  # two places have other uses
        ("roberta", {}, 30, 30),
    ],
)
def test_the_length_is_that_of_the_tokenizer_or_of_the_positions(family, values, tokenizer, expected, tmp_path):
    folder = changed(tmp_path, family, **values)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({} if tokenizer is None else {"model_max_length": tokenizer})
    )
    assert published.read(folder).sizes == {"length": expected}


def test_colbert_has_its_markers_masks_and_linear_layer(tmp_path):
    ranker = text.TextRanker.from_pretrained(FOLDER / "colbert")
    frame, expected = frame_of("colbert")
    assert {name: ranker.get_params()[name] for name in ("architecture", "length", "query_length")} == {
        "architecture": "late",
        "length": 12,
        "query_length": 8,
    }
    np.testing.assert_allclose(ranker.predict(frame), expected["scores"], rtol=1e-5)
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_allclose(
        text.TextRanker.load(tmp_path / "ranker.keras").predict(frame), expected["scores"], rtol=1e-5
    )
    # In a list with other documents, and as text
    loaded = serving.load(ranker.export(tmp_path / "export"))
    np.testing.assert_allclose(
        loaded.score(frame.assign(query="heat flow")), ranker.predict(frame.assign(query="heat flow")), rtol=1e-5
    )
    counted = text.TextRanker.from_pretrained(colbert(tmp_path / "counted", mask_punctuation=False)).predict(frame)
    assert (counted[:3] == pytest.approx(expected["scores"][:3])) and abs(counted[3] - expected["scores"][3]) > 1e-3


def colbert(target, **values):
    folder = changed(target, "colbert")
    config = json.loads((folder / "artifact.metadata").read_text())
    (folder / "artifact.metadata").write_text(json.dumps({**config, **values}))
    return folder


def test_training_starts_from_colbert(table):
    options = {"encoder": FOLDER / "colbert", "architecture": "late", "length": 12, "query_length": 8, "verbose": False}
    first = text.TextRanker.from_pretrained(FOLDER / "colbert").predict(table)
    np.testing.assert_allclose(text.TextRanker(**options, epochs=0).fit(table).predict(table), first, rtol=1e-5)
    trained = text.TextRanker(**options, epochs=1).fit(table)
    assert 0.0 < np.abs(trained.predict(table) - first).max() < 1.0
    single = text.TextRanker(**{**options, "architecture": "single"}, epochs=0).fit(table)
    assert single.model_.dense is None and not single.model_.encoder.markers  # they are those of token vectors


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"similarity": "l2"}, "artifact.metadata: similarity must be 'cosine', got 'l2'"),
        ({"attend_to_mask_tokens": True}, "artifact.metadata: attend_to_mask_tokens must be False, got True"),
        ({"query_token_id": "[Q]"}, r"`tokenizer` must have the token '\[Q\]'"),
    ],
)
def test_another_colbert_is_refused_by_name(values, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        text.TextRanker.from_pretrained(colbert(tmp_path, **values)).predict(frame_of("colbert")[0])


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_a_tokenizer_json_is_enough(family, tmp_path):
    # transformers 5 writes no other file of the tokenizer.
    folder = changed(tmp_path / "model", family)
    ranker = text.TextRanker.from_pretrained(folder)
    ranker.export(tmp_path / "onnx", format="onnx")
    shutil.copy(tmp_path / "onnx" / "tokenizer.json", folder)
    for name in ("vocab.txt", "vocab.json", "merges.txt"):
        (folder / name).unlink(missing_ok=True)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("do_lower_case", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    frame, expected = frame_of(family)
    frame.loc[1, "query"] = "WING"
    found = text.TextRanker.from_pretrained(folder).predict(frame)
    np.testing.assert_array_equal(found, ranker.predict(frame))
    np.testing.assert_allclose(found[[0, 2]], np.array(expected["scores"])[[0, 2]], rtol=1e-4)


@pytest.mark.parametrize("family", ["xlm_roberta", pytest.param("albert", marks=pytest.mark.slow)])
def test_a_tokenizer_json_has_the_pieces_and_the_characters_of_sentencepiece(family, tmp_path):
    folder, (frame, expected) = changed(tmp_path, family), frame_of(family)
    next(folder.glob("s*.model")).unlink()
    np.testing.assert_allclose(text.TextRanker.from_pretrained(folder).predict(frame), expected["scores"], rtol=1e-4)
    # With the replaced characters of sentencepiece, such as full-width letters; the fixture has none.
    message = importlib.import_module("sentencepiece.sentencepiece_model_pb2").ModelProto.FromString(proto())
    charsmap = base64.b64encode(message.normalizer_spec.precompiled_charsmap).decode()
    content = json.loads((folder / "tokenizer.json").read_text())
    steps = (content["normalizer"] or {}).get("normalizers", [])
    step = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    content["normalizer"] = {"type": "Sequence", "normalizers": [*steps, step]} if steps else step
    (folder / "tokenizer.json").write_text(json.dumps(content))
    tokenize = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).encode
    written = ["\uff57ing  of the jet", "plate \u2460 xyz"]
    assert text.load_encoder(folder).tokenize(written).to_list() == [
        tokenize(each, add_special_tokens=False).ids for each in written
    ]


def with_tokenizer(target, family="bert", settings=None, **content):
    """Copies a folder with tokenizer.json in place of its tokenizer; without settings, no tokenizer_config.json."""
    folder = changed(target, family)
    if family == "bert":
        tokens = {token: number for number, token in enumerate((folder / "vocab.txt").read_text().split())}
        made = tokenizers.Tokenizer(tokenizers.models.WordPiece(tokens, unk_token="[UNK]"))
        made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=False)
        made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        made.save(str(folder / "tokenizer.json"))
    written = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**written, **content}))
    for name in ("vocab.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(
    ("settings", "is_lower"),
    [
        (None, True),
        ({"model_max_length": 40}, True),
        ({"tokenizer_class": "BertTokenizer", "do_lower_case": False}, False),
        ({"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": True}, False),  # as tokenizer.json says
        ({"tokenizer_class": None}, True),
    ],
)
def test_word_pieces_have_the_case_that_transformers_gives_them(settings, is_lower, tmp_path):
    tokenize = text.load_encoder(with_tokenizer(tmp_path, settings=settings)).tokenize
    upper, lower = tokenize(["WING"]).to_list()[0], tokenize(["wing"]).to_list()[0]
    assert (upper == lower) == is_lower


@pytest.mark.parametrize(
    ("family", "settings", "content", "message"),
    [
        ("bert", {}, {"added_tokens": [{"content": "covid-19"}]}, r"must not be added, got \['covid-19'\]"),
        (
            "bert",
            {},
            {"model": {"type": "WordPiece", "vocab": {"a": 1}}},
            "tokenizer.json: model must be WordPiece wit",
        ),
        ("bert", {}, {"model": None}, "tokenizer.json: has other values: TypeError"),
        ("bert", {"tokenizer_class": "TokenizersBackend"}, {"normalizer": None}, "must be BertNormalizer, got None"),
        ("xlm_roberta", {}, {"normalizer": {"type": "Lowercase"}}, "normalizers must be among .*, got Lowercase"),
        (
            "xlm_roberta",
            {},
            {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", 0.0]]}},
            "tokenizer.json: the vocabulary must begin with .*, and may only end with <mask>",
        ),
    ],
)
def test_tokenizers_with_other_tokens_than_transformers_are_refused(family, settings, content, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        text.load_encoder(with_tokenizer(tmp_path, family, settings, **content))


@pytest.mark.parametrize(
    ("family", "name", "content", "message"),
    [
        ("roberta", "tokenizer_config.json", {"add_prefix_space": True}, "add_prefix_space of the tokenizer must be"),
        ("bert", "added_tokens.json", {"[Q]": 20}, r"must not be added, got \['\[Q\]'\]"),
    ],
)
def test_settings_that_give_other_tokens_are_refused(family, name, content, message, tmp_path):
    folder = changed(tmp_path, family)
    (folder / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        text.load_encoder(folder)


@pytest.mark.parametrize(
    ("settings", "has_segments"),
    [
        ({}, True),
        ({"model_input_names": ["input_ids", "attention_mask"]}, False),
        ({"tokenizer_class": "PreTrainedTokenizerFast"}, False),
        (
            {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "token_type_ids"]},
            True,
        ),
    ],
)
def test_pairs_have_segments_if_the_tokenizer_gives_them(settings, has_segments, tmp_path):
    folder = with_tokenizer(tmp_path, settings={"do_lower_case": True, **settings})
    frame, expected = frame_of("bert")
    scores = text.TextRanker.from_pretrained(folder, length=40).predict(frame)
    assert np.allclose(scores, expected["scores"], rtol=1e-4) == has_segments


@pytest.mark.parametrize("name", ["XLMRobertaTokenizer", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("is_json", [True, False])
def test_multilingual_bert_has_the_tokenizer_of_xlm_roberta_and_no_segments(name, is_json, tmp_path):
    folder = changed(tmp_path, "bert")
    for each in ("vocab.txt", "tokenizer_config.json"):
        (folder / each).unlink()
    shutil.copy(FOLDER / "xlm_roberta" / ("tokenizer.json" if is_json else "sentencepiece.bpe.model"), folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    weights = safetensors.load_file(folder / "model.safetensors")
    table = "bert.embeddings.word_embeddings.weight"
    weights[table] = np.resize(weights[table], [32, weights[table].shape[1]])
    safetensors.save_file(weights, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 32}))
    encoder = text.load_encoder(folder)
    frame, expected = frame_of("xlm_roberta")
    ids = tf.constant(expected["ids"][:1])
    assert encoder.tokenize([frame["query"][0]]).to_list()[0] == expected["ids"][0][1 : expected["ids"][0].index(2)]
    assert dict(zip(encoder.backbone.input, encoder._inputs(ids), strict=True))["segment_ids"].numpy().max() == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", [], "config.json: must be a dict, got list"),
        ("modules.json", {"path": "1"}, "modules.json: must be a list, got dict"),
        ("modules.json", [{"path": "1"}], "a JSON file has other values: KeyError: 'type'"),
        ("tokenizer_config.json", {"model_max_length": "40"}, "a JSON file has other values: TypeError: .* 'str'"),
        ("model.safetensors.index.json", {}, None),
    ],
)
def test_values_of_other_types_are_refused(name, content, message, tmp_path):
    folder = changed(tmp_path, **({"architectures": ["BertModel"]} if name == "modules.json" else {}))
    (folder / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        text.TextRanker.from_pretrained(folder)


def test_a_dense_layer_without_its_files_is_named(tmp_path):
    folder = changed(tmp_path, architectures=["BertModel"])
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": kind} for kind in published._MODULES[2]]
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ValueError, match="Dense/config.json: not JSON: .* No such file"):
        text.TextRanker.from_pretrained(folder)


def test_a_cross_encoder_without_a_head_and_another_encoder_are_refused():
    with pytest.raises(ValueError, match="`checkpoint` must be a cross-encoder with one label, or"):
        text.TextRanker.from_pretrained(FOLDER / "colbert", architecture="cross")
    with pytest.raises(TypeError, match="multiple values for keyword argument 'encoder'"):
        text.TextRanker.from_pretrained(FOLDER / "bert", encoder=FOLDER / "roberta")


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "artifact.metadata"])
def test_a_damaged_file_is_named(name, tmp_path):
    folder = changed(tmp_path, "colbert")
    (folder / name).write_text('{"a": ')
    with pytest.raises(ValueError, match=f"{name}: not JSON: Expecting value"):
        text.TextRanker.from_pretrained(folder)


@pytest.mark.parametrize(
    "family", ["roberta", *(pytest.param(name, marks=pytest.mark.slow) for name in ("distilbert", "albert"))]
)
def test_the_names_of_an_encoder_without_a_head_have_no_prefix(family, tmp_path):
    # Those of all-distilroberta-v1 and other models of sentence-transformers.
    folder = changed(tmp_path, family, architectures=["Model"])
    tensors = safetensors.load_file(folder / "model.safetensors")
    plain = {name.removeprefix(f"{family}."): value for name, value in tensors.items() if name.startswith(family)}
    safetensors.save_file(plain, folder / "model.safetensors")
    ids = tf.constant([[2, 5, 6, 7, 3]])
    found, expected = (text.load_encoder(path)(ids) for path in (folder, FOLDER / family))
    np.testing.assert_array_equal(found, expected)


def test_the_activation_of_distilbert_is_read(tmp_path):
    folder = changed(tmp_path, "distilbert", activation="relu")
    for layer in text.load_encoder(folder).backbone.transformer_layers:
        assert layer._feedforward_intermediate_dense.activation is tf.keras.activations.relu


def test_texts_of_albert_have_lower_case_without_accents(tmp_path):
    encoder = text.load_encoder(FOLDER / "albert")
    # The ids of the first one are those of transformers.
    for each in ("Wíng HÉAT", "wing heat"):
        assert encoder.tokenize([each]).to_list() == [[18, 14, 15, 10, 5, 30, 17]]
    folder = changed(tmp_path, "albert")
    (folder / "tokenizer_config.json").write_text('{"keep_accents": true}')
    with pytest.raises(ValueError, match="tokenizer_config.json: ALBERT must have lower case without accents"):
        text.load_encoder(folder)


def test_electra_with_small_embeddings_is_refused(tmp_path):
    with pytest.raises(ValueError, match="config.json: embedding_size must be hidden_size, got 6 and 12"):
        text.TextRanker.from_pretrained(changed(tmp_path, "electra", embedding_size=6))


@pytest.mark.parametrize("activation", [None, "Identity", "Tanh"])
def test_a_model_of_vectors_ranks_by_cosines(activation, tmp_path):
    folder, random = changed(tmp_path, architectures=["BertModel"]), np.random.default_rng(0)
    kinds = ["Transformer", "Pooling", *(["Dense"] if activation else []), "Normalize"]
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": kind} for kind in kinds]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 20}')
    kernel, bias = random.normal(size=[5, 12]).astype("f"), random.normal(size=5).astype("f")
    if activation:
        (folder / "Dense").mkdir()
        safetensors.save_file({"linear.weight": kernel, "linear.bias": bias}, folder / "Dense" / "model.safetensors")
        config = {"in_features": 12, "out_features": 5, "activation_function": f"torch.nn.modules.{activation}"}
        (folder / "Dense" / "config.json").write_text(json.dumps(config))
    ranker = text.TextRanker.from_pretrained(folder)
    assert ranker.get_params()["length"] == ranker.get_params()["query_length"] == 20
    frame, vectors = frame_of("bert")[0], []
    for name in ("query", "text"):
        inputs = ranker._inputs(
            ranker.model_.encoder, *([frame["query"], []] if name == "query" else [[], frame["text"]])
        )
        ids = inputs.ids["query" if name == "query" else "document"]
        hidden, mask = (each.numpy() for each in ranker.model_.encode(ids))
        mean = (hidden * mask[..., np.newaxis]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        if activation:
            mean = {"Identity": lambda x: x, "Tanh": np.tanh}[activation](mean @ kernel.T + bias)
        vectors.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
        np.testing.assert_allclose(
            ranker.encode(frame[name], role=name.replace("text", "document")), vectors[-1], atol=1e-6
        )
    expected = 20.0 * (vectors[0] * vectors[1]).sum(axis=1)
    np.testing.assert_allclose(ranker.predict(frame), expected, rtol=1e-4, atol=1e-5)
    ranker.save(tmp_path / "ranker.keras")
    np.testing.assert_allclose(text.TextRanker.load(tmp_path / "ranker.keras").predict(frame), expected, rtol=1e-4)

"""Encoders of several families, and the folders of checkpoints."""

import fnmatch
import json
import shutil
import sys

import huggingface_hub
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
import tokenizers

from tests.text.conftest import VOCABULARY, few_families, make, word_piece
from tfr_smooth import text


def token_ids(encoder, lengths=(7, 3), size=8):
    """Returns texts of random tokens with special tokens, padded to a size."""
    ids, (start, end) = np.full((len(lengths), size), -1, np.int32), encoder.layout.around(None)
    for row, length in zip(ids, lengths, strict=True):
        words = np.random.RandomState(length).randint(5, 17, length - 2)
        row[:length] = [*start, *words, *end]
    return tf.constant(ids)


@few_families
def test_padding_changes_nothing_and_frozen_layers_with_the_others_are_the_whole_encoder(family):
    whole = make(family, num_layers=2)
    ids = token_ids(whole)
    np.testing.assert_array_equal(whole.mask(ids), [[True] * 7 + [False], [True] * 3 + [False] * 5])
    expected = whole(ids)
    np.testing.assert_allclose(expected[1:, :3], whole(ids[1:, :3]), atol=1e-5)
    assert expected.shape[-1] == whole.width == 12
    for frozen_layers in (1, 2):
        encoder = make(family, num_layers=2, frozen_layers=frozen_layers)
        np.testing.assert_allclose(encoder(ids, encoder.frozen(ids)), expected, atol=1e-6)
    np.testing.assert_allclose(encoder(ids), expected, atol=1e-6)
    assert encoder.trainable_variables == []


@few_families
def test_training_changes_only_the_layers_that_are_not_frozen(family):
    for frozen_layers in (0, 1):
        encoder = make(family, num_layers=2, frozen_layers=frozen_layers)
        ids, weights = token_ids(encoder), encoder.backbone.weights
        before = [variable.numpy() for variable in weights]
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(encoder(ids, training=True) ** 3)
        trained = encoder.trainable_variables
        gradients = tape.gradient(loss, trained)
        assert all(gradient is not None for gradient in gradients)
        tf.keras.optimizers.SGD(0.01).apply_gradients(zip(gradients, trained, strict=True))
    changed = {id(new) for new, old in zip(weights, before, strict=True) if (new.numpy() != old).any()}
    last = {id(variable) for variable in encoder.backbone.transformer_layers[1].weights}
    # A bias of the attention's keys changes all logits of a query alike.
    assert changed <= last and len(last - changed) <= 1


def test_a_code_has_the_token_and_its_segment():
    encoder = make("bert")
    ids, segments = np.int32([[2, 5, 6, 3, 7, 3]]), np.int32([[0, 0, 0, 0, 1, 1]])
    codes = encoder.layout.pairs(encoder.tokenize(["wing lift"]), encoder.tokenize(["heat"]), 6, 1)[0]
    np.testing.assert_array_equal(codes, ids + encoder.backbone.vocabulary_size * segments)
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids), "segment_ids": segments}
    np.testing.assert_allclose(encoder(tf.constant(codes)), encoder.backbone(inputs)["sequence_output"], atol=1e-6)


def test_other_architectures_are_refused():
    words = word_piece()
    small = {"vocabulary_size": 30, "num_layers": 1, "num_heads": 2, "hidden_dim": 4, "intermediate_dim": 4}
    with pytest.raises(ValueError, match="`backbone` must have inputs among .*, with token_ids, got .*decoder_"):
        text.Encoder(keras_hub.models.BartBackbone(**small), words)
    ids = tf.keras.Input([None], dtype="int32")
    mean = tf.keras.layers.GlobalAveragePooling1D()(tf.keras.layers.Embedding(30, 4)(ids))
    with pytest.raises(ValueError, match="`backbone` must return hidden states .texts, tokens, width., got "):
        text.Encoder(tf.keras.Model({"token_ids": ids}, mean), words)
    albert = keras_hub.models.AlbertBackbone(**small, embedding_dim=4)
    with pytest.raises(ValueError, match="`frozen_layers` must be 0 for AlbertBackbone, .* got 1"):
        text.Encoder(albert, words, frozen_layers=1)
    many = {str(number): number for number in range(40)}
    for tokenizer, message in (
        (3, "be a tokenizer of the package tokenizers, or .* got int"),
        ("{}", "be the text of tokenizer.json, got another one: "),
        (tokenizers.Tokenizer(tokenizers.models.WordPiece({"a": 0})), "put a token before and after each text, got "),
        (
            tokenizers.Tokenizer(tokenizers.models.WordPiece(many)),
            "have at most 30 tokens, the embeddings of the backbone, got 40",
        ),
    ):
        with pytest.raises(ValueError, match=f"`tokenizer` must {message}"):
            text.Encoder(albert, tokenizer)


def test_bad_arguments_are_refused():
    encoder, tokens = make("deberta"), tf.ones([1, 41], tf.int32)
    for call, message in (
        (
            lambda: text.Encoder(encoder.backbone, encoder.tokenizer, activation="gelu"),
            "`activation` must be None for De",
        ),
        (lambda: make(frozen_layers=2), "`frozen_layers` must be at most 1, the number of layers, got 2"),
        (lambda: make()(tokens), "`ids` must have at most 40 tokens per text, got 41"),
        (lambda: make().frozen(tokens), "`frozen_layers` must be > 0 for `frozen`, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


# Folders.


def test_a_preset_is_read(checkpoint):
    encoder = text.load_encoder(checkpoint, frozen_layers=1)
    same = make(frozen_layers=1)
    ids = token_ids(encoder)
    np.testing.assert_array_equal(encoder(ids), same(ids))
    assert encoder.tokenize(["Wings, of HÉAT"]) == [[5, 17, 1, 21, 7]]


def test_word_pieces_of_kerashub_are_read_and_its_other_tokenizers_are_refused(checkpoint, tmp_path):
    shutil.copytree(checkpoint, tmp_path, dirs_exist_ok=True)
    keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True).save_to_preset(str(tmp_path))
    assert text.load_encoder(tmp_path).tokenize(["Wings, of"]) == [[5, 17, 1, 21]]
    (tmp_path / "tokenizer.json").write_text(" " * 2 * 10**6 + "{}")
    with pytest.raises(ValueError, match="tokenizer.json: must have at most 1010000 bytes for 25 tokens, got 2000002"):
        text.load_encoder(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"class_name": "RobertaTokenizer", "config": {}}))
    with pytest.raises(ValueError, match="tokenizer.json: must be of .* or KerasHub's of word pieces, got RobertaTok"):
        text.load_encoder(tmp_path)


def test_a_folder_that_cannot_be_read_is_an_error_of_one_line(tmp_path):
    for name in (tmp_path, "a/b/c", ""):
        with pytest.raises(
            ValueError, match="`checkpoint` must be a folder with config.json or a name on Hugging Face"
        ):
            text.load_encoder(name)
    for config, message in (
        ({"model_type": "electron"}, "KerasHub cannot read it: ValueError: KerasHub has no converter .*'electron'"),
        ({"model_type": "bert"}, "KerasHub cannot read it: KeyError: 'vocab_size'"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match=message) as raised:
            text.load_encoder(tmp_path)
        assert "\n" not in str(raised.value)


# Names on Hugging Face.


def test_a_name_is_downloaded_without_the_weights_of_other_libraries(checkpoint, tmp_path, monkeypatch):
    def download(repository, *, allow_patterns):
        assert repository == "sentence-transformers/all-MiniLM-L6-v2"
        for path in checkpoint.rglob("*"):
            target = path.relative_to(checkpoint)
            if path.is_file() and any(fnmatch.fnmatch(target.as_posix(), pattern) for pattern in allow_patterns):
                (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, tmp_path / target)
        others = ("pytorch_model.bin", "tf_model.h5", "onnx/model.safetensors", "openvino/config.json")
        assert not any(fnmatch.fnmatch(other, pattern) for other in others for pattern in allow_patterns)
        for name in ("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"):
            assert any(fnmatch.fnmatch(name, pattern) for pattern in allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    encoder = text.load_encoder("all-MiniLM-L6-v2")
    np.testing.assert_array_equal(encoder(token_ids(encoder)), make()(token_ids(encoder)))


def test_a_failed_download_says_what_to_do(monkeypatch):
    def download(repository, **_):
        raise huggingface_hub.errors.LocalEntryNotFoundError("no\nconnection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    failed = "the download of some/model failed: LocalEntryNotFoundError: no connection"
    with pytest.raises(ValueError, match=f"{failed} .* run `hf download some/model "):
        text.load_encoder("some/model")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"needs huggingface-hub: pip install 'tfr_smooth\[hub\]'"):
        text.load_encoder("some/model")


# The pooling of sentence-transformers.


def test_the_pooling_of_a_checkpoint_is_read(checkpoint, tmp_path):
    shutil.copytree(checkpoint, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "1_Pooling" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}))
    assert text.load_encoder(tmp_path).pooling == "mean"
    path.write_text(json.dumps({"pooling_mode": "cls"}))
    assert text.load_encoder(tmp_path).pooling == "first"
    path.write_text(json.dumps({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}))
    with pytest.raises(ValueError, match="config.json: the pooling must be one of .*, got "):
        text.load_encoder(tmp_path)


@pytest.mark.parametrize(("policy", "tolerance"), [("float32", 1e-5), ("mixed_bfloat16", 1e-2)])
def test_feed_forward_networks_are_those_of_keras_with_the_activation(policy, tolerance):
    sizes = {"vocabulary_size": 22, "num_layers": 1, "num_heads": 2, "hidden_dim": 6, "intermediate_dim": 20}
    backbone = keras_hub.models.BertBackbone(**sizes, dtype=policy)
    dense = backbone.transformer_layers[0]._feedforward_intermediate_dense
    dense.activation = tf.keras.activations.gelu
    inputs = tf.random.stateless_normal([3, 5, 6], [0, 1], 0.0, 30.0)
    expected = dense(inputs)
    text.Encoder(backbone, word_piece(), activation="gelu")
    found = tf.function(dense)(inputs)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    in_float32 = (tf.cast(each, tf.float32) for each in (found, expected))
    np.testing.assert_allclose(*in_float32, rtol=tolerance, atol=tolerance)

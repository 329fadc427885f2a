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

from tests.text.conftest import few_families, make, word_piece
from tfr_smooth import text


def token_ids(encoder, lengths=(7, 3), size=8):
    """Returns texts of random tokens with special tokens, padded to a size."""
    ids = np.full((len(lengths), size), encoder.special.pad, np.int32)
    for row, length in zip(ids, lengths, strict=True):
        words = np.random.RandomState(length).randint(5, 17, length - 2)
        row[:length] = [encoder.special.start, *words, encoder.special.end]
    return tf.constant(ids)


@few_families
def test_padding_changes_nothing_and_frozen_layers_with_the_others_are_the_whole_encoder(family):
    encoder, whole = make(family, frozen_layers=1), make(family)
    ids = token_ids(whole)
    np.testing.assert_array_equal(whole.mask(ids), [[True] * 7 + [False], [True] * 3 + [False] * 5])
    expected = whole(ids)
    np.testing.assert_allclose(expected[1:, :3], whole(ids[1:, :3]), atol=1e-5)
    assert expected.shape[-1] == whole.width == 12
    np.testing.assert_allclose(encoder(ids, encoder.frozen(ids)), expected, atol=1e-6)
    np.testing.assert_allclose(encoder(ids), expected, atol=1e-6)


@pytest.mark.slow
def test_all_layers_may_be_frozen():
    encoder = make(frozen_layers=2)
    ids = token_ids(encoder)
    np.testing.assert_allclose(encoder(ids, encoder.frozen(ids)), make()(ids), atol=1e-6)
    assert encoder.trainable_variables == []


@few_families
def test_training_changes_only_the_layers_that_are_not_frozen(family):
    for frozen_layers in (0, 1):
        encoder = make(family, frozen_layers=frozen_layers)
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


def test_the_second_segment_starts_after_the_first_separator():
    encoder = make("bert")
    ids = np.int32([[2, 5, 6, 3, 7, 3]])
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids), "segment_ids": np.int32([[0, 0, 0, 0, 1, 1]])}
    np.testing.assert_allclose(encoder(tf.constant(ids)), encoder.backbone(inputs)["sequence_output"], atol=1e-6)


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
    with pytest.raises(ValueError, match="`tokenizer` must be a KerasHub tokenizer .* got ByteTokenizer"):
        text.Encoder(albert, keras_hub.tokenizers.ByteTokenizer()).special  # noqa: B018


def test_bad_arguments_are_refused():
    encoder = make("deberta")
    with pytest.raises(ValueError, match="`activation` must be None for DebertaV3Backbone, got 'gelu'"):
        text.Encoder(encoder.backbone, encoder.tokenizer, activation="gelu")
    with pytest.raises(ValueError, match="`activation` must be one of .*'gelu_new'.*, got 'mish'"):
        text.Encoder(make().backbone, word_piece(), activation="mish")
    with pytest.raises(ValueError, match="`frozen_layers` must be at most 2, the number of layers, got 3"):
        make(frozen_layers=3)
    with pytest.raises(ValueError, match="`ids` must have at most 40 tokens per text, got 41"):
        make()(tf.ones([1, 41], tf.int32))
    with pytest.raises(ValueError, match="`frozen_layers` must be > 0 for `frozen`, got 0"):
        make().frozen(tf.ones([1, 4], tf.int32))


# Folders.


def test_a_preset_is_read(checkpoint):
    encoder = text.load_encoder(checkpoint, frozen_layers=1)
    same = make(frozen_layers=1)
    ids = token_ids(encoder)
    np.testing.assert_array_equal(encoder(ids), same(ids))
    assert encoder.tokenizer(["Wings, of HÉAT"]) == [[5, 17, 1, 21, 7]]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "`checkpoint` must be a folder with config.json or a name on Hugging Face, got"),
        ({"model_type": "electron"}, "KerasHub cannot read it: ValueError: KerasHub has no converter .*'electron'"),
        ({"model_type": "bert"}, "KerasHub cannot read it: KeyError: 'vocab_size'"),
    ],
)
def test_a_folder_that_cannot_be_read_is_an_error_of_one_line(tmp_path, config, message):
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message) as raised:
        text.load_encoder(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(tmp_path):
    encoder = make()
    encoder.backbone.save_to_preset(str(tmp_path))
    keras_hub.models.BertTokenizer([*encoder.tokenizer.get_vocabulary(), *"abcd"]).save_to_preset(str(tmp_path))
    with pytest.raises(ValueError, match="the tokenizer has 26 tokens, but the model has embeddings of only 25"):
        text.load_encoder(tmp_path)


# Names on Hugging Face.


def test_a_name_is_downloaded_without_the_weights_of_other_libraries(checkpoint, tmp_path, monkeypatch):
    def download(repository, *, allow_patterns):
        assert repository == "sentence-transformers/all-MiniLM-L6-v2"
        for path in checkpoint.rglob("*"):
            target = path.relative_to(checkpoint)
            if path.is_file() and any(fnmatch.fnmatch(target.as_posix(), pattern) for pattern in allow_patterns):
                (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, tmp_path / target)
        others = (
            "pytorch_model.bin",
            "tf_model.h5",
            "onnx/model.onnx",
            "onnx/model.safetensors",
            "openvino/config.json",
        )
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


def test_what_is_neither_a_folder_nor_a_name_is_refused():
    for name in ("a/b/c", "", "no folder"):
        with pytest.raises(ValueError, match="`checkpoint` must be a folder with config.json or a name"):
            text.load_encoder(name)


# The pooling of sentence-transformers.


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True, "include_prompt": True}, "mean"),
        ({"pooling_mode": "cls"}, "first"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, None),
    ],
)
def test_the_pooling_of_a_checkpoint_is_read(checkpoint, tmp_path, config, pooling):
    shutil.copytree(checkpoint, tmp_path, dirs_exist_ok=True)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(config))
    if pooling is None:
        with pytest.raises(ValueError, match="config.json: the pooling must be one of .*, got "):
            text.load_encoder(tmp_path)
    else:
        assert text.load_encoder(tmp_path).pooling == pooling


@pytest.mark.parametrize(
    ("activation", "policy"),
    [("gelu", "float32"), ("gelu", "mixed_bfloat16"), ("gelu_new", "float32"), ("relu", "float32")],
)
def test_feed_forward_networks_are_those_of_keras_with_the_activation(activation, policy):
    sizes = {"vocabulary_size": 9, "num_layers": 1, "num_heads": 2, "hidden_dim": 6, "intermediate_dim": 20}
    backbone = keras_hub.models.BertBackbone(**sizes, dtype=policy)
    (block,) = backbone.transformer_layers
    dense, inputs = block._feedforward_intermediate_dense, tf.random.stateless_normal([3, 5, 6], [0, 1], 0.0, 30.0)
    dense.activation = {
        "gelu": tf.keras.activations.gelu,
        "gelu_new": lambda x: tf.keras.activations.gelu(x, approximate=True),
        "relu": tf.nn.relu,
    }[activation]
    expected = dense(inputs)
    text.Encoder(backbone, word_piece(), activation=activation)
    found = tf.function(dense)(inputs)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    tolerance = 1e-2 if "16" in policy else 1e-5
    in_float32 = (tf.cast(each, tf.float32) for each in (found, expected))
    np.testing.assert_allclose(*in_float32, rtol=tolerance, atol=tolerance)

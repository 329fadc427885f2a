"""Writes small cross-encoders with random weights and their scores by `transformers`, which tests/text read.

    python benchmarks/published.py --folder=tests/text/published

This needs PyTorch, transformers, tokenizers and sentencepiece.
"""

from __future__ import annotations

import importlib
import json
import pathlib
from typing import Any

import numpy as np
from absl import app, flags

_FOLDER = flags.DEFINE_string("folder", "tests/text/published", "The folder of a folder for each model.")

WORDS = ["wing", "lift", "heat", "flow", "drag", "shock", "plate", "gas", "jet", "tube", "cone", "wave", "of", "the"]
PAIRS = [["heat flow", "the shock wave of gas jets"], ["wing", "lift of the wing"], ["drag flow", "tube"]]
SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
OF_DISTILBERT = {"dim": 12, "n_layers": 2, "n_heads": 2, "hidden_dim": 20}
LENGTH = 40


def word_pieces(folder: pathlib.Path) -> dict[str, Any]:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s"]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return {"size": len(tokens), "class": "BertTokenizer", "do_lower_case": True}


def byte_pairs(folder: pathlib.Path) -> dict[str, Any]:
    tokenizer = importlib.import_module("tokenizers").ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator([" ".join(WORDS)] * 20, vocab_size=300, min_frequency=1, special_tokens=special)
    tokenizer.save_model(str(folder))
    return {"size": tokenizer.get_vocab_size(), "class": "RobertaTokenizer"}


def sentence_pieces(folder: pathlib.Path, name: str, **special: Any) -> int:
    module: Any = importlib.import_module("sentencepiece")
    module.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS)] * 20),
        model_prefix=str(folder / name),
        vocab_size=50,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        minloglevel=2,
        **special,
    )
    (folder / f"{name}.vocab").unlink()
    return module.SentencePieceProcessor(model_file=str(folder / f"{name}.model")).get_piece_size()


def of_albert(folder: pathlib.Path) -> dict[str, Any]:
    special = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "pad_piece": "<pad>", "unk_piece": "<unk>"}
    size = sentence_pieces(folder, "spiece", user_defined_symbols="[CLS],[SEP],[MASK]", **special)
    return {"size": size, "class": "AlbertTokenizer"}


def of_xlm(folder: pathlib.Path) -> dict[str, Any]:
    size = sentence_pieces(folder, "sentencepiece.bpe", unk_id=0, bos_id=1, eos_id=2, pad_id=-1)
    return {"size": size + 2, "class": "XLMRobertaTokenizer"}  # <pad> and <mask>


ROBERTA = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1, **SIZES}
# By name of the folder: the prefix of the classes, the tokenizer, and the sizes.
MODELS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "bert": ("Bert", word_pieces, SIZES),
    "distilbert": ("DistilBert", word_pieces, OF_DISTILBERT),
    "roberta": ("Roberta", byte_pairs, ROBERTA),
    "albert": ("Albert", of_albert, {"embedding_size": 6, "bos_token_id": 2, "eos_token_id": 3, **SIZES}),
    "xlm_roberta": ("XLMRoberta", of_xlm, ROBERTA),
}


def write(folder: pathlib.Path, prefix: str, write_tokenizer: Any, sizes: dict[str, Any]) -> None:
    """Writes a model, its tokenizer, and the scores of pairs."""
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    folder.mkdir(parents=True, exist_ok=True)
    tokens = write_tokenizer(folder)
    of_tokenizer = {"tokenizer_class": tokens.pop("class"), "model_max_length": LENGTH}
    size = tokens.pop("size")
    (folder / "tokenizer_config.json").write_text(json.dumps({**of_tokenizer, **tokens}))
    options = {"vocab_size": size, "max_position_embeddings": LENGTH + 2, "num_labels": 1, **sizes}
    config = getattr(transformers, f"{prefix}Config")(**options)
    model = getattr(transformers, f"{prefix}ForSequenceClassification")(config).eval()
    random = np.random.default_rng(0)
    for _, parameter in sorted(model.named_parameters()):
        parameter.data = torch.tensor(
            random.normal(0.2 * (parameter.dim() == 1), 0.6, parameter.shape), dtype=torch.float32
        )
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    scores, ids = [], []
    for query, document in PAIRS:
        row = tokenizer(query, document)["input_ids"]
        inputs = {"input_ids": torch.tensor([row])}
        if prefix in ("Bert", "Albert"):
            first = row.index(tokenizer.sep_token_id) + 1
            inputs["token_type_ids"] = torch.tensor([[0] * first + [1] * (len(row) - first)])
        with torch.no_grad():
            scores.append(float(model(**inputs).logits[0, 0]))
        ids.append(row)
    (folder / "scores.json").write_text(json.dumps({"pairs": PAIRS, "ids": ids, "scores": scores}) + "\n")


def main(_: list[str]) -> None:
    for name, (prefix, tokenizer, sizes) in MODELS.items():
        write(pathlib.Path(_FOLDER.value) / name, prefix, tokenizer, sizes)


if __name__ == "__main__":
    app.run(main)

"""Writes small rerankers with random weights and their scores by `transformers`, which tests/text read.

    python benchmarks/published.py --folder=tests/text/published

This needs PyTorch, transformers, tokenizers and sentencepiece.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import string
from typing import Any

import numpy as np
from absl import app, flags

_FOLDER = flags.DEFINE_string("folder", "tests/text/published", "The folder of a folder for each model.")

WORDS = ["wing", "lift", "heat", "flow", "drag", "shock", "plate", "gas", "jet", "tube", "cone", "wave", "of", "the"]
PAIRS = [["heat flow", "the shock wave of gas jets"], ["wing", "lift of the wing"], ["drag flow", "tube"]]
ODD = [
    ["wing", ""],
    ["wing [SEP] <s> lift", "heat [MASK] of [CLS] the </s> wing <mask>"],
    ["\u7ffc wing\u00adlift", "\u0e1b\u0e35\u0e01 he\u0301at \U0001f680 \u00c9cone \u03a3\u03af\u03c3 ''tube``"],
    ["lift\x00drag\ufffd \t\u2003gas", "wave\u200bs  the\r\nshock"],
    ["plate of the " * 20, "jet " * 500],
]
SIZES = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
OF_DISTILBERT = {"dim": 12, "n_layers": 2, "n_heads": 2, "hidden_dim": 20}
LENGTH = 40


def word_pieces(folder: pathlib.Path, *more: str) -> dict[str, Any]:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", *more]
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
    "electra": ("Electra", word_pieces, {"embedding_size": 12, **SIZES}),
    "albert": ("Albert", of_albert, {"embedding_size": 6, "bos_token_id": 2, "eos_token_id": 3, **SIZES}),
    "xlm_roberta": ("XLMRoberta", of_xlm, ROBERTA),
}


def randomize(model: Any) -> None:
    torch, random = importlib.import_module("torch"), np.random.default_rng(0)
    for _, parameter in sorted(model.named_parameters()):
        parameter.data = torch.tensor(
            random.normal(0.2 * (parameter.dim() == 1), 0.6, parameter.shape), dtype=torch.float32
        )


def write_colbert(folder: pathlib.Path) -> None:
    """Writes a ColBERT, and the scores of pairs by the steps of its paper: markers, [MASK] in queries, MaxSim."""
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    folder.mkdir(parents=True, exist_ok=True)
    size = word_pieces(folder, "[unused0]", "[unused1]", *string.punctuation)["size"]
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    )
    lengths = {"query_maxlen": 8, "doc_maxlen": 12}
    torch.manual_seed(0)
    options = {"vocab_size": size, "max_position_embeddings": 16, "initializer_range": 0.5, **SIZES}
    model = transformers.BertModel(transformers.BertConfig(**options)).eval()
    linear = torch.nn.Linear(SIZES["hidden_size"], 5, bias=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    mask, ignored = tokenizer.mask_token_id, tokenizer.convert_tokens_to_ids(list(string.punctuation))

    def vectors(text: str, marker: str, length: int, is_query: bool) -> Any:
        ids = tokenizer.encode(text, add_special_tokens=False)[: length - 3]
        ids = [tokenizer.cls_token_id, tokenizer.convert_tokens_to_ids(marker), *ids, tokenizer.sep_token_id]
        real = [1] * len(ids)
        if is_query:
            ids, real = [ids + [mask] * (length - len(ids)), real + [0] * (length - len(real))]
        with torch.no_grad():
            hidden = model(torch.tensor([ids]), attention_mask=torch.tensor([real])).last_hidden_state[0]
            found = torch.nn.functional.normalize(linear(hidden), dim=-1)
        return found if is_query else found[[token not in ignored for token in ids]]

    pairs = [*PAIRS, ["wing , lift of the drag jet", "heat , flow . of the gas jets !"], ["tube", "cone " * 20]]
    scores = []
    for query, document in pairs:
        of_query = vectors(query, "[unused0]", lengths["query_maxlen"], True)
        of_document = vectors(document, "[unused1]", lengths["doc_maxlen"], False)
        scores.append(float((of_query @ of_document.T).max(dim=1).values.sum()))
    tensors = {f"bert.{name}": value for name, value in model.state_dict().items()}
    save = importlib.import_module("safetensors.torch").save_file
    save({**tensors, "linear.weight": linear.weight.data}, folder / "model.safetensors", metadata={"format": "pt"})
    config = {**model.config.to_dict(), "architectures": ["HF_ColBERT"]}
    (folder / "config.json").write_text(json.dumps(config, default=str))
    (folder / "artifact.metadata").write_text(json.dumps({**lengths, "dim": 5, "mask_punctuation": True}))
    (folder / "scores.json").write_text(json.dumps({"pairs": pairs, "scores": scores}) + "\n")


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
    randomize(model)
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if prefix in ("Albert", "XLMRoberta"):
        tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    scores, ids = [], []
    for query, document in PAIRS + ODD:
        row = tokenizer([query], [document], truncation=True, return_tensors="pt")
        with torch.no_grad():
            scores.append(float(model(**row).logits[0, 0]))
        ids.append(row["input_ids"][0].tolist())
    (folder / "scores.json").write_text(json.dumps({"pairs": PAIRS + ODD, "ids": ids, "scores": scores}) + "\n")


def main(_: list[str]) -> None:
    for name, (prefix, tokenizer, sizes) in MODELS.items():
        write(pathlib.Path(_FOLDER.value) / name, prefix, tokenizer, sizes)
    write_colbert(pathlib.Path(_FOLDER.value) / "colbert")


if __name__ == "__main__":
    app.run(main)

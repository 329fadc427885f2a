"""Tiny encoders of several families with random weights, and a made-up collection."""

import functools

import keras_hub
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tokenizers
from tokenizers import processors

from experiments import text_collections
from tfr_smooth import text
from tfr_smooth.text import text_lists

WORDS = ["wing", "lift", "heat", "flow", "drag", "shock", "plate", "gas", "jet", "tube", "cone", "wave"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", "##ed", ".", "the", "of"]
SIZES = {"num_heads": 2, "hidden_dim": 12, "intermediate_dim": 20, "max_sequence_length": 40}


def word_piece():
    return tokenizers.BertWordPieceTokenizer({token: number for number, token in enumerate(VOCABULARY)})


def byte_pairs():
    """The vocabulary has each letter, and each word after a space."""
    starts = [["\u0120" + word[:end] for end in range(len(word) + 1)] for word in WORDS]
    merges = {f"{longer[:-1]} {longer[-1]}": longer for parts in starts for longer in parts[1:]}
    special = ["<s>", "<pad>", "</s>", "<mask>"]
    tokens = dict.fromkeys([*special, *"abcdefghijklmnopqrstuvwxyz.,\u0120", *merges.values()])
    merges = [tuple(merge.split(" ")) for merge in merges]
    found = tokenizers.ByteLevelBPETokenizer({token: number for number, token in enumerate(tokens)}, merges)
    found.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return found


def sentence_pieces():
    pieces = [
        "[PAD]",
        "[CLS]",
        "[SEP]",
        "[UNK]",
        "[MASK]",
        *("\u2581" + word for word in WORDS),
        *"abcdefghijklmnopqrst",
    ]
    model = tokenizers.models.Unigram([(piece, -float(number)) for number, piece in enumerate(pieces)], unk_id=3)
    found = tokenizers.Tokenizer(model)
    found.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    templates = {"single": "[CLS] $A [SEP]", "pair": "[CLS] $A [SEP] $B:1 [SEP]:1"}
    found.post_processor = processors.TemplateProcessing(**templates, special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return found


# Tokenizer and backbone by family.
FAMILIES = {
    "bert": (word_piece, keras_hub.models.BertBackbone),
    "roberta": (byte_pairs, keras_hub.models.RobertaBackbone),
    "deberta": (sentence_pieces, functools.partial(keras_hub.models.DebertaV3Backbone, bucket_size=6)),
}
few_families = pytest.mark.parametrize(
    "family", [pytest.param(family, marks=[pytest.mark.slow] * (family != "bert")) for family in FAMILIES]
)


def make(family="bert", *, num_layers=1, frozen_layers=0, dropout=0.1, seed=0):
    """Returns an encoder."""
    tokenizer, backbone = FAMILIES[family]
    tokenizer = tokenizer()
    num_tokens = tokenizer.get_vocab_size() + 3  # with unused rows
    model = backbone(vocabulary_size=num_tokens, num_layers=num_layers, dropout=dropout, **SIZES)
    random = np.random.RandomState(seed)
    for variable in model.weights:
        variable.assign(random.normal(variable.name == "gamma", 0.3, variable.shape))
    return text.Encoder(model, tokenizer, frozen_layers=frozen_layers)


def write_checkpoint(folder, family="bert", **arguments):
    """Writes a preset of KerasHub."""
    encoder = make(family, **arguments)
    encoder.backbone.save_to_preset(str(folder))
    encoder.tokenizer.save(f"{folder}/tokenizer.json")
    return folder


def encoded(path, texts):
    """Returns the inputs of an export by its tokenizer."""
    names = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    rows = tokenizers.Tokenizer.from_file(str(path)).encode_batch(texts)
    return {name: np.array([getattr(row, kind) for row in rows], np.int64) for name, kind in names.items()}


def served(folder, texts, tokenizer="tokenizer.json"):
    """Returns the output of a SavedModel for texts or pairs of them."""
    serve = tf.saved_model.load(folder).signatures["serving_default"]
    inputs = encoded(folder / "assets.extra" / tokenizer, texts)
    (output,) = serve(**{name: tf.constant(inputs[name]) for name in serve.structured_input_signature[1]}).values()
    return output.numpy()


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("bert"))


LENGTHS = dict.fromkeys(("late", "single"), {"query_length": 6, "length": 12}) | {
    "cross": {"length": 14, "passages": 2}
}


@pytest.fixture(scope="session")
def single(checkpoint, table):
    """An untrained ranker by single vectors."""
    options = {"architecture": "single", "epochs": 0, "verbose": False, **LENGTHS["single"]}
    return text.TextRanker(encoder=checkpoint, **options).fit(table)


def inputs_of(architecture, encoder, table):
    kind = text_lists.PairInputs if architecture == "cross" else text_lists.LateInputs
    return kind(encoder, table["query"].tolist(), table["text"].tolist(), **LENGTHS[architecture])


def made_up(queries=18):
    """Queries of two words, documents with titles, and labels. Documents with both words are relevant."""
    random = np.random.RandomState(0)
    texts = {f"d{n}": (random.choice(WORDS), " ".join(random.choice(WORDS, 6))) for n in range(60)}
    words_of = {doc_id: " ".join(document).split() for doc_id, document in texts.items()}
    asked, labels = {}, {}
    for query_id in (f"q{number}" for number in range(queries)):
        first, second = random.choice(WORDS, 2, replace=False)
        grades = {doc_id: min(2, words.count(first) * words.count(second)) for doc_id, words in words_of.items()}
        asked[query_id] = f"{first} {second}"
        labels[query_id] = {doc_id: grade for doc_id, grade in grades.items() if grade}
    return texts, asked, labels


def made_up_table(queries=18):
    """Candidates of BM25; relevant documents that are none have no score."""
    texts, asked, labels = made_up(queries)
    queries, contents = pd.Series(asked), pd.Series(texts).str.join(" ")
    best = text_collections.best_documents(queries, contents, topn=15).set_index(["query_id", "doc_id"])["score"]
    pairs = [(query, name) for query in asked for name in dict.fromkeys([*best[query].index, *labels[query]])]
    rows = [
        (*pair, asked[pair[0]], contents[pair[1]], labels[pair[0]].get(pair[1], 0), best.get(pair)) for pair in pairs
    ]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "query", "text", "label", "score"])


@pytest.fixture(scope="session")
def table():
    return made_up_table()

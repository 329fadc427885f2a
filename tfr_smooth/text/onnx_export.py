"""Export of a text model as an ONNX file of token ids, with the files of its tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf

from tfr_smooth import _arguments, _files
from tfr_smooth.serving.onnx_export import converted
from tfr_smooth.text import layout
from tfr_smooth.text.late_interaction import LateInteraction, SingleVector
from tfr_smooth.text.reranker import Reranker


def write(model: Reranker, folder: Path, sizes: dict[str, int]) -> None:
    """Writes model.onnx and tokenizer.json; for vectors, query_tokenizer.json, too.

    Args:
      model: The model.
      folder: The folder to fill.
      sizes: The most tokens, by argument of `TextRanker`.
    """
    name = "vectors" if isinstance(model, LateInteraction) else "scores"

    def outputs(ids: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = tf.cast(ids, tf.int32)
        if not isinstance(model, LateInteraction):
            return {name: model({"pair_ids": ids[tf.newaxis, :, tf.newaxis]}, training=False)[0]}
        vectors = model.vectors(ids)
        return {name: vectors[:, 0] if isinstance(model, SingleVector) else vectors}

    signature = tf.TensorSpec([None, None], tf.int64, name="input_ids")
    proto = converted(tf.function(outputs, autograph=False), [signature])
    for dimension, label in zip(proto.graph.input[0].type.tensor_type.shape.dim, ("texts", "tokens"), strict=True):
        dimension.dim_param = label
    _files.write_bytes(folder / "model.onnx", [proto.SerializeToString()])
    for role in layout.ROLES if isinstance(model, LateInteraction) else (None,):
        path = folder / ("query_tokenizer.json" if role == "query" else "tokenizer.json")
        _tokenizer(model, role, sizes["query_length" if role == "query" else "length"]).save(str(path))


def _tokenizer(model: Reranker, role: str | None, length: int) -> Any:
    """Returns the tokenizer of pairs, or of the texts of a role, for the package tokenizers."""
    with _arguments.needed("tokenizers", extra="text", by="ONNX of texts"):
        import tokenizers
        from tokenizers import normalizers, pre_tokenizers, processors
    from keras_hub import tokenizers as kinds

    known, special = model.encoder.tokenizer, model.encoder.special
    by_id = [str(known.id_to_token(number)) for number in range(known.vocabulary_size())]
    tokens = {token: number for number, token in enumerate(by_id)}
    if isinstance(known, kinds.WordPieceTokenizer):
        found = tokenizers.Tokenizer(tokenizers.models.WordPiece(tokens, unk_token=known.oov_token))
        options = {"lowercase": known.lowercase, "strip_accents": known.strip_accents}
        found.normalizer = normalizers.BertNormalizer(**options)
        found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    elif isinstance(known, kinds.BytePairTokenizer):
        merges = [tuple(merge.split(" ")) for merge in known.merges if not merge.startswith("#version")]
        found = tokenizers.Tokenizer(tokenizers.models.BPE(tokens, merges))
        found.normalizer = normalizers.Strip()
        found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    elif isinstance(known, kinds.SentencePieceTokenizer):
        from sentencepiece import sentencepiece_model_pb2

        proto = sentencepiece_model_pb2.ModelProto.FromString(known.proto)  # type: ignore[attr-defined]
        scores = {piece.piece: piece.score for piece in proto.pieces}
        pieces = [(token, scores.get(token, 0.0)) for token in by_id]
        found = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, tokens["<unk>"]))
        charsmap = proto.normalizer_spec.precompiled_charsmap
        quotes = [normalizers.Replace(quote, '"') for quote in ("``", "''")]
        lower = [*quotes, normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
        steps = lower if layout.is_albert(known) else []
        steps += [normalizers.Precompiled(charsmap)] if charsmap else []
        found.normalizer = normalizers.Sequence([*steps, normalizers.Strip()])
        found.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    else:
        raise ValueError(f"`encoder` must have a tokenizer of the package tokenizers, got {type(known).__name__}.")
    marker = special.markers.get(role or "", ())
    ids = {"start": (special.start, *marker), "between": special.between, "end": (special.end,)}
    parts = {name: " ".join(by_id[number] for number in numbers) for name, numbers in ids.items()}
    templates = {"single": f"{parts['start']} $A {parts['end']}"}
    templates["pair"] = f"{parts['start']} $A {parts['between']} $B:1 {parts['end']}:1"
    used = {by_id[number]: number for numbers in ids.values() for number in numbers}
    found.post_processor = processors.TemplateProcessing(**templates, special_tokens=list(used.items()))
    found.enable_truncation(length)
    fill = special.fill if role == "query" else None
    pad = special.pad if fill is None else fill
    found.enable_padding(pad_id=pad, pad_token=by_id[pad], length=None if fill is None else length)
    return found

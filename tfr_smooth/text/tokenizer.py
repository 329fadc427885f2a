"""WordPiece tokenization, using the package tokenizers."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tfr_smooth import _extras
from tfr_smooth.text.layout import SpecialTokens


class Tokenizer:
    """The WordPiece tokenizer of a BERT checkpoint.

    Args:
      folder: The folder of the checkpoint, with `tokenizer.json` or `vocab.txt`. With `vocab.txt`, texts are lowercased
        unless `do_lower_case` is false in `tokenizer_config.json`.

    Attributes:
      special: The ids of the special tokens: `special.pad`, `special.cls` and `special.sep`.

    Raises:
      ValueError: If the folder contains neither file, or the vocabulary lacks [PAD], [CLS] or [SEP].
      ImportError: If the extra `tfr_smooth[text]` is not installed.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import text
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> _ = (folder / "vocab.txt").write_text("[PAD] [UNK] [CLS] [SEP] wing lift ##s".replace(" ", chr(10)))
      >>> text.Tokenizer(folder).tokens(["Wings lift"]).to_list()
      [[4, 6, 5]]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        with _extras.needed("tokenizers", extra="text", by="`Tokenizer`"):
            import tokenizers
        folder = Path(folder)
        if (folder / "tokenizer.json").is_file():
            self._tokenizer = tokenizers.Tokenizer.from_file(os.fspath(folder / "tokenizer.json"))
        elif (folder / "vocab.txt").is_file():
            settings = folder / "tokenizer_config.json"
            lowercase = not settings.is_file() or json.loads(settings.read_text()).get("do_lower_case", True)
            # Created without a vocabulary, which would require special tokens; they are checked below.
            self._tokenizer = tokenizers.BertWordPieceTokenizer(lowercase=lowercase)._tokenizer
            vocabulary = os.fspath(folder / "vocab.txt")
            self._tokenizer.model = tokenizers.models.WordPiece.from_file(vocabulary, unk_token="[UNK]")
        else:
            raise ValueError(f"`folder` must contain tokenizer.json or vocab.txt, got {os.fspath(folder)}.")
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        ids = [self._tokenizer.token_to_id(token) for token in ("[PAD]", "[CLS]", "[SEP]")]
        if None in ids:
            raise ValueError(
                f"`folder` must have a vocabulary with [PAD], [CLS] and [SEP], got one without in {os.fspath(folder)}."
            )
        self.special = SpecialTokens(*map(int, ids))  # type: ignore[arg-type]

    @property
    def vocabulary(self) -> list[str]:
        """The tokens, in the order of their ids."""
        ids = self._tokenizer.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    @property
    def lowercase(self) -> bool:
        """Whether texts are lowercased."""
        normalizer = self._tokenizer.normalizer
        return normalizer is not None and normalizer.normalize_str("A") == "a"

    def tokens(self, texts: Sequence[str]) -> tf.RaggedTensor:
        """Returns the token ids of texts, without special tokens.

        Args:
          texts: The texts.

        Returns:
          Token ids, a ragged int32 tensor [texts, (tokens)].
        """
        found = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        values = np.fromiter(itertools.chain.from_iterable(found), np.int32)
        return tf.RaggedTensor.from_row_lengths(values, [len(ids) for ids in found])

"""The layout of tokens in the encoders' inputs.

A token is a code: its id in the vocabulary, plus the size of the vocabulary in the second segment of a pair; `PADDING`;
or `FILL`. Special tokens that are written in a text are thus never mistaken for those of the layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

PADDING, FILL = -1, -2
ROLES = ("query", "document")
Tokens = Sequence[int] | np.ndarray


class Layout:
    """The special tokens around texts, as the post-processor of a tokenizer puts them.

    Args:
      tokenizer: A `tokenizers.Tokenizer`.
      size: The size of the vocabulary.
      markers: As for `Encoder`.
      is_filled: Whether queries are filled up to their length.
      segments: As for `Encoder`.
      keeps_end: Whether truncation keeps the end of a text, and not its start.

    Raises:
      ValueError: If the tokenizer does not put a token before and after each text.
    """

    def __init__(
        self, tokenizer: Any, size: int, *, markers: Sequence[str], is_filled: bool, segments: bool, keeps_end: bool
    ) -> None:
        self._is_filled, self._keeps_end = is_filled, keeps_end
        words = (words for words in (["a"], tokenizer.get_vocab()))  # of a large vocabulary, only if it is needed
        word = next(
            (word for some in words for word in some if tokenizer.encode(word, add_special_tokens=False).ids), ""
        )
        single, pair = tokenizer.encode(word), tokenizer.encode(word, word)
        (self._start, _, self._end), _ = _parts(single, size, segments)
        found, offsets = _parts(pair, size, segments)
        if not (self._start and self._end and len(found) == 5):
            raise ValueError(f"`tokenizer` must put a token before and after each text, got {single.tokens}.")
        (self._before, _, self._between, _, self._after), self._offsets = found, offsets
        self._markers = {role: ids_of(tokenizer, [token]) for role, token in zip(ROLES, markers, strict=False)}

    @property
    def least_pair(self) -> int:
        """The minimum length of `pairs`: a token of each text, and the special tokens."""
        return 2 + len(self._before) + len(self._between) + len(self._after)

    def around(self, role: str | None) -> tuple[list[int], list[int]]:
        """Returns the tokens before and after a text of a role."""
        return [*self._start, *self._markers.get(role or "", ())], self._end

    def single(self, texts: Sequence[Tokens], length: int, role: str | None = None) -> np.ndarray:
        """Returns `[CLS] text [SEP]` for each text, truncated and padded to a length, int32 [texts, length].

        Args:
          texts: The ids of each text.
          length: The length, >= 3.
          role: "query" or "document", whose marker follows [CLS]; None for none.
        """
        start, end = self.around(role)
        space = length - len(start) - len(end)
        found = np.full([len(texts), length], FILL if role == "query" and self._is_filled else PADDING, np.int32)
        for row, tokens in zip(found, texts, strict=True):
            _write(row, (start, self._cut(tokens, space), end))
        return found

    def pairs(self, queries: Sequence[Tokens], documents: Sequence[Tokens], length: int, passages: int) -> np.ndarray:
        """Returns `[CLS] query [SEP] passage [SEP]` for each passage of each document, int32 [pairs, passages, length].

        A document that does not fit in one input is split into at most `passages` passages of equal length; the rest is
        truncated. The query is truncated to half of the input, or a longer query to what the document leaves, as by the
        package tokenizers. Unused passages contain only padding.

        Args:
          queries: The ids of the query of each pair.
          documents: The ids of the document of each pair.
          length: The length of an input, at least `least_pair`.
          passages: Maximum number of passages per document, >= 1.
        """
        space = length - self.least_pair + 2
        half = space // 2
        found = np.full([len(queries), passages, length], PADDING, np.int32)
        for rows, query, document in zip(found, queries, documents, strict=True):
            most = space - min(len(document), half) if len(query) > len(document) else half
            query = np.asarray(self._cut(query, most), np.int32)
            room = max(space - len(query), 1)  # 0 with an empty document
            document = np.asarray(self._cut(document, room * passages), np.int32)
            count = max(-(-len(document) // room), 1)
            size = -(-len(document) // count)
            for number, row in enumerate(rows[:count]):
                passage = document[number * size : (number + 1) * size] + self._offsets[1]
                _write(row, (self._before, query + self._offsets[0], self._between, passage, self._after))
        return found

    def _cut(self, tokens: Tokens, most: int) -> Tokens:
        return tokens[max(len(tokens) - most, 0) :] if self._keeps_end else tokens[:most]


def ids_of(tokenizer: Any, tokens: Iterable[str]) -> list[int]:
    """Returns the ids of tokens, or raises a ValueError with a token that is not there."""
    found = {token: tokenizer.token_to_id(token) for token in tokens}
    for token, number in found.items():
        if number is None:
            raise ValueError(f"`tokenizer` must have the token {token!r}, got {tokenizer.get_vocab_size()} others.")
    return list(found.values())


def _parts(encoding: Any, size: int, segments: bool) -> tuple[list[list[int]], list[int]]:
    """Returns the codes of the special tokens and texts in turn, and what is added to the ids of each text."""
    parts: list[list[int]] = [[]]
    offsets, of_text = [], None
    for number, kind, text in zip(encoding.ids, encoding.type_ids, encoding.sequence_ids, strict=True):
        offset = size * bool(kind) if segments else 0
        if text != of_text:
            parts.append([])
            of_text = text
            offsets += [] if text is None else [offset]
        parts[-1].append(number + offset)
    return (parts if of_text is None else [*parts, []]), offsets


def _write(row: np.ndarray, parts: Iterable[Tokens]) -> None:
    """Writes the parts one after the other to the start of a row."""
    start = 0
    for part in parts:
        row[start : start + len(part)] = part
        start += len(part)

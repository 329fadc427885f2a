"""Writes tfr_smooth/columns/words.npz: what each code point of Unicode becomes in `columns.text.normalized`.

The table is a file, and not made from `unicodedata` on use, so that words do not depend on the version of Python.

Arrays, int32: the value of code point c is `values[blocks[c >> 7], c & 127]`, which is
- -1: the code point itself;
- 0 or more: one code point, with its canonical combining class in the bits from 21 on;
- other: -2 - (32 * start + length), for `expansions[start:start + length]`, none if it is deleted.
"""

import pathlib
import unicodedata

import numpy as np

PATH = pathlib.Path(__file__).parents[1] / "tfr_smooth" / "columns" / "words.npz"
SAME, SPACE = -1, ord(" ")
DELETED = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0}  # ignorable letters and marks
DELETED |= {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}  # variation selectors, tags
SEPARATORS = {0x200B, 0x2120, 0x2122}  # the zero width space, and the signs SM and TM, which are no letters of a name


def value(code: int) -> int:
    """Returns a code point with its combining class; a space for what is not in words."""
    character = chr(code)
    return code | unicodedata.combining(character) << 21 if unicodedata.category(character)[0] in "LMN" else SPACE


def folded(character: str) -> list[int]:
    """Returns the values of a character of a decomposed text."""
    if character == "ı":
        return [ord("i")]
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character.casefold()).casefold())
    values = [value(ord(part)) for part in text]
    # The iota subscript becomes a letter, but keeps its place among the marks.
    return [values[0] | unicodedata.combining(character) << 21] if unicodedata.combining(character) else values


def values(code: int) -> list[int]:
    """Returns the values that a code point becomes."""
    character = chr(code)
    category = unicodedata.category(character)
    if code in SEPARATORS or category == "Cs":
        return [SPACE]
    if code in DELETED or category in ("Cf", "Me"):
        return []
    if category == "Cn":
        return [code if 0x20000 <= code < 0x40000 else SPACE]  # these planes are for ideographs
    decomposed = unicodedata.normalize("NFKD", character)
    if decomposed[0] == " ":  # also accents without a letter
        return [SPACE]
    return [value for part in decomposed for value in folded(part)]


def arrays() -> dict[str, np.ndarray]:
    """Returns the table."""
    table, expansions = np.full(0x110000, SAME, np.int32), []
    starts: dict[tuple[int, ...], int] = {}
    for code in range(len(table)):
        becomes = values(code)
        if len(becomes) == 1:
            table[code] = SAME if becomes[0] == code and code != SPACE else becomes[0]
        else:
            start = starts.setdefault(tuple(becomes), len(expansions))
            if start == len(expansions):
                expansions += becomes
            table[code] = -2 - (32 * start + len(becomes))
    blocks, numbers = np.unique(table.reshape(-1, 128), axis=0, return_inverse=True)
    return {"blocks": numbers.reshape(-1), "values": blocks, "expansions": np.array(expansions)}


if __name__ == "__main__":
    table = {name: array.astype(np.int32) for name, array in arrays().items()}
    np.savez_compressed(PATH, **table)
    print(f"Unicode {unicodedata.unidata_version}: {PATH.stat().st_size} bytes")
    print({name: (array.shape, array.nbytes) for name, array in table.items()})

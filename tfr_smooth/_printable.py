"""Names from data in text for people, where they must not change the text around them."""

from __future__ import annotations


def printable(value: object) -> str:
    """Returns text in one line: characters that move the cursor or are invisible are shown as escapes."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in str(value))

"""Texts: what a tool answers, as plain text. It is data, whatever it says."""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

# Sequences that a terminal takes for colours and movements.
_TERMINAL = re.compile(r"\x1b\[[0-?]*+[ -/]*+[@-~]")
_LINE_ENDS = re.compile(r"\r\n?|[\u2028\u2029\x85]")
_KEPT = "\n\t"


class _Visible(dict[int, int | None]):
    """Maps each character to itself, or to None if it is invisible: a control, format or half one."""

    def __missing__(self, code: int) -> int | None:
        letter = chr(code)
        dropped = unicodedata.category(letter) in ("Cc", "Cf", "Cs") and letter not in _KEPT
        self[code] = None if dropped else code
        return self[code]


_VISIBLE = _Visible()
# Characters that are dropped take no place, so a few more are read than are kept.
_READ = 4


def plain(text: str, most: int) -> tuple[str, bool]:
    """Return a text without invisible characters, and whether its end was left out.

    Args:
        text: any text.
        most: maximum number of characters.
    """
    read = text[: _READ * most]
    found = _LINE_ENDS.sub("\n", _TERMINAL.sub("", read)).translate(_VISIBLE)
    return found[:most].strip("\n"), len(found) > most or len(text) > len(read)


def of_content(content: Sequence[Any], structured: Any) -> str:
    """Return the text of a tool's answer.

    Args:
        content: blocks of the answer, as the SDK gives them.
        structured: the answer as JSON; it counts only if no block has a text.
    """
    blocks = [_of_block(block) for block in content]
    if structured is not None and not any(is_text for _, is_text in blocks):
        return json.dumps(structured, ensure_ascii=False, indent=1)
    return "\n".join(text for text, _ in blocks)


def _of_block(block: Any) -> tuple[str, bool]:
    """Return the text of a block, or what kind of block is left out."""
    if block.type == "text":
        return str(block.text), True
    resource = getattr(block, "resource", None)
    text = getattr(resource, "text", None)
    return (text, True) if isinstance(text, str) else (f"[{block.type} left out]", False)

"""Spreadsheets: CSV with cells that no spreadsheet evaluates. Pure functions."""

import csv
import io
import unicodedata
from collections.abc import Iterable

# Characters that begin a formula in a spreadsheet, after NFKC (full-width and small forms).
_FORMULA = ("=", "+", "-", "@", "\u2212")
# Categories of characters without a visible form: control, format (with BOM and zero-width space),
# surrogates, unassigned, private, separators, combining marks.
_INVISIBLE = ("C", "Z", "M")
# Letters and symbols without a visible form: Hangul fillers and the empty Braille pattern.
_BLANK = "\u115f\u1160\u3164\uffa0\u2800"


def as_csv(table: Iterable[Iterable[object]]) -> str:
    """Return rows of cells as lines of CSV, each cell made harmless."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([harmless(cell) for cell in row] for row in table)
    return text.getvalue()


def harmless(cell: object) -> object:
    """Escape a cell that a spreadsheet would evaluate as a formula. Pure.

    Cells contain text from the web or from a file, which may be malicious. An apostrophe is put in
    front of anything that looks like a formula, also behind characters that are not visible: a
    spreadsheet or a later import may remove them.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\0", "")
    first = next((letter for letter in text if not _is_invisible(letter)), "")
    is_formula = unicodedata.normalize("NFKC", first).startswith(_FORMULA)
    return f"'{text}" if is_formula or _is_invisible(text[:1]) else text


def _is_invisible(letter: str) -> bool:
    return bool(letter) and (letter in _BLANK or unicodedata.category(letter)[0] in _INVISIBLE)

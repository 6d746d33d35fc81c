"""Read the sentences of this folder and compare a checker's edits with the marked ones."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent
# Every third sentence of a file is held out: no rule was written with it in view.
HELD_OUT = 3
_MARK = re.compile(r"\{([^|{}]*)\|([^|{}]*)\|([a-z_]+)\}")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Edit:
    """Words that replace others: character offsets in the sentence, and the new words."""

    start: int
    end: int
    words: str


@dataclass(frozen=True)
class Mistake:
    """One marked mistake: its type, and its right corrections."""

    type: str
    start: int
    end: int
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence as a learner wrote it. A correct one has no mistakes."""

    text: str
    mistakes: tuple[Mistake, ...]
    held_out: bool

    def edits(self) -> list[tuple[Mistake, set[Edit]]]:
        """Return each mistake with its right edits."""
        return [
            (each, {smallest(self.text, Edit(each.start, each.end, r)) for r in each.remedies})
            for each in self.mistakes
        ]


def wrong() -> list[Sentence]:
    """Return the sentences with mistakes."""
    return _read("wrong.txt")


def right() -> list[Sentence]:
    """Return the correct sentences."""
    return _read("right.txt")


def _read(name: str) -> list[Sentence]:
    lines = (_FOLDER / name).read_text(encoding="utf-8").splitlines()
    marked = [line for line in lines if line and not line.startswith("#")]
    return [parse(line, i % HELD_OUT == HELD_OUT - 1) for i, line in enumerate(marked)]


def parse(line: str, held_out: bool = False) -> Sentence:
    """Read one marked sentence."""
    text, mistakes, last = "", [], 0
    for mark in _MARK.finditer(line):
        text += line[last : mark.start()]
        wrong_words, remedies, kind = mark.groups()
        end = len(text) + len(wrong_words)
        mistakes.append(Mistake(kind, len(text), end, tuple(remedies.split("/"))))
        text, last = text + wrong_words, mark.end()
    return Sentence(text + line[last:], tuple(mistakes), held_out)


def smallest(text: str, edit: Edit) -> Edit:
    """Return the same change with whole words only, and as few of them as possible."""
    start, end = edit.start, edit.end
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    new = text[start : edit.start] + edit.words + text[edit.end : end]
    old = [(start + m.start(), start + m.end()) for m in _WORD.finditer(text[start:end])]
    words = new.split()
    while old and words and text[slice(*old[0])] == words[0]:
        old, words = old[1:], words[1:]
    while old and words and text[slice(*old[-1])] == words[-1]:
        old, words = old[:-1], words[:-1]
    if old:
        return Edit(old[0][0], old[-1][1], " ".join(words))
    # An insertion stands before the next word, whatever space the checker put around it.
    place = [m.end() for m in _WORD.finditer(text[:end])]
    count = len(_WORD.findall(text[:start])) + _common(text[start:end].split(), new.split())
    return Edit(place[count - 1] if count else 0, place[count - 1] if count else 0, " ".join(words))


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def split(sentences: Iterable[Sentence], *, held_out: bool) -> list[Sentence]:
    """Return the sentences of one part."""
    return [each for each in sentences if each.held_out == held_out]

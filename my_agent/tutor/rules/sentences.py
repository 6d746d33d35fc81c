"""Sentences and words of a text, with their positions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from my_agent.tutor.corrections import Issue, IssueType

_SENTENCE = re.compile(r"[^.!?\n]*(?:\.(?=[\w@])[^.!?\n]*)*[.!?\n]*")
_TOKEN = re.compile(r"\w*(?:_\w*|\d[^\W\d]\w*)+|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d+|[^\w\s]")


_BEGINNING = re.compile(r"(?:^|[.!?:]\s+|\n\s*)[\"'“\u2018(¿¡]*$")


@dataclass(frozen=True)
class Word:
    """A word, a number or a sign. `start` and `end` are offsets in the message."""

    text: str
    start: int
    end: int

    @cached_property
    def low(self) -> str:
        """The word in lower case, with a straight apostrophe."""
        return self.text.lower().replace("\u2019", "'")

    @property
    def is_capital(self) -> bool:
        """Whether the word begins with a capital letter."""
        return self.text[:1].isupper()


END = Word("", 0, 0)


@dataclass(frozen=True)
class Sentence:
    """A sentence of a message."""

    message: str
    start: int
    end: int
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The sentence as it stands in the message."""
        return self.message[self.start : self.end]

    @property
    def is_question(self) -> bool:
        """Whether the sentence ends with a question mark."""
        return self.text.rstrip().endswith("?")

    def at(self, index: int) -> Word:
        """Return the word at an index; `END` outside of the sentence."""
        return self.words[index] if 0 <= index < len(self.words) else END

    def low(self, index: int) -> str:
        """Return the word at an index in lower case; an empty text outside of the sentence."""
        return self.at(index).low

    def issue(
        self, kind: IssueType, first: int, last: int, replacement: str, message: str
    ) -> Issue:
        """Return an issue about the words from `first` to `last`, both included."""
        start, end = self.words[first].start, self.words[last].end
        return make(self.message, kind, start, end, replacement, message)


def make(text: str, kind: IssueType, start: int, end: int, replacement: str, message: str) -> Issue:
    """Return an issue about characters of a message. The case of its first letter stays."""
    original = text[start:end]
    if original[:1].isupper() and replacement[:1].islower() and _BEGINNING.search(text[:start]):
        replacement = replacement[0].upper() + replacement[1:]
    return Issue(
        type=kind,
        start=start,
        end=end,
        original=original,
        replacement=replacement,
        message=message,
        sources=["rules"],
    )


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a message."""
    for found in _SENTENCE.finditer(text):
        words = tuple(
            Word(each.group(), found.start() + each.start(), found.start() + each.end())
            for each in _TOKEN.finditer(found.group())
        )
        if words:
            yield Sentence(text, found.start(), found.end(), words)

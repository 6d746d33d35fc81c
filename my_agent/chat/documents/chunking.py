"""Chunking: a document to passages, short enough to be found and quoted by themselves."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from my_agent.chat.documents.reading import Document

# Characters: a few paragraphs, well below what the embedding model reads at a time.
LENGTH = 900
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_SENTENCES = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\u201d\u2019])\s+|\n")


@dataclass(frozen=True)
class Passage:
    """A part of a section.

    Attributes:
        number: its place in the document, from 1.
        title: of the document.
        section: headings that it is under; may be empty.
    """

    number: int
    title: str
    section: str
    text: str

    @property
    def in_context(self) -> str:
        """The text below what it is about, which it need not say again."""
        return f"{' > '.join(filter(None, (self.title, self.section)))}\n{self.text}"


def chunk(document: Document) -> list[Passage]:
    """The passages of a document, none of which goes over the end of a section."""
    texts = (
        (section.heading, text) for section in document.sections for text in _packed(section.text)
    )
    return [
        Passage(number, document.title, heading, text)
        for number, (heading, text) in enumerate(texts, 1)
    ]


def sentences(text: str) -> list[str]:
    """The sentences of a text, and the lines of lists."""
    return [found for part in _SENTENCES.split(text) if (found := part.strip())]


def _packed(text: str) -> Iterator[str]:
    """Paragraphs together as long as they fit; what is longer is cut between sentences, or words."""
    packed = ""
    for piece in _pieces(text):
        joined = f"{packed}\n\n{piece}" if packed else piece
        if len(joined) > LENGTH:
            yield packed
            joined = piece
        packed = joined
    if packed:
        yield packed


def _pieces(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPHS.split(text):
        if len(paragraph := paragraph.strip()) <= LENGTH:
            if paragraph:
                yield paragraph
        else:
            yield from _cut(paragraph)


def _cut(paragraph: str) -> Iterator[str]:
    """A long paragraph in parts of `LENGTH` at most."""
    part = ""
    for sentence in sentences(paragraph):
        for bit in [sentence] if len(sentence) <= LENGTH else _words(sentence):
            if part and len(part) + 1 + len(bit) > LENGTH:
                yield part
                part = bit
            else:
                part = f"{part} {bit}" if part else bit
    yield part


def _words(sentence: str) -> Iterator[str]:
    """A sentence in parts between words; a word without end is cut wherever it is."""
    while len(sentence) > LENGTH:
        at = sentence.rfind(" ", 1, LENGTH + 1)
        at = at if at > 0 else LENGTH
        yield sentence[:at].rstrip()
        sentence = sentence[at:].lstrip()
    if sentence:
        yield sentence

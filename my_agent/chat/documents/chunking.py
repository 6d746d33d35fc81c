"""Chunking: split a document into passages that can be found and quoted on their own."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from my_agent.chat.documents.reading import Document

# Characters of one passage: a few paragraphs, well below the embedding model's limit.
LENGTH = 900
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_SENTENCES = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\u201d\u2019])\s+|\n")


@dataclass(frozen=True)
class Passage:
    """A part of one section of a document.

    Attributes:
        number: position in the document, from 1.
        title: title of the document.
        section: headings above the passage, joined by " > "; may be empty.
        text: the text of the passage.
    """

    number: int
    title: str
    section: str
    text: str

    @property
    def in_context(self) -> str:
        """Return the text preceded by title and headings, which the text itself may not repeat."""
        return f"{' > '.join(filter(None, (self.title, self.section)))}\n{self.text}"


def chunk(document: Document) -> list[Passage]:
    """Split a document into passages. No passage crosses the end of a section."""
    texts = (
        (section.heading, text) for section in document.sections for text in _packed(section.text)
    )
    return [
        Passage(number, document.title, heading, text)
        for number, (heading, text) in enumerate(texts, 1)
    ]


def sentences(text: str) -> list[str]:
    """Split a text into sentences; each line of a list counts as one."""
    return [found for part in _SENTENCES.split(text) if (found := part.strip())]


def _packed(text: str) -> Iterator[str]:
    """Join paragraphs while they fit into `LENGTH`. Cut longer ones between sentences or words."""
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
    """Cut a long paragraph into parts of at most `LENGTH` characters."""
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
    """Cut a sentence between words. A single word longer than `LENGTH` is cut inside."""
    while len(sentence) > LENGTH:
        at = sentence.rfind(" ", 1, LENGTH + 1)
        at = at if at > 0 else LENGTH
        yield sentence[:at].rstrip()
        sentence = sentence[at:].lstrip()
    if sentence:
        yield sentence

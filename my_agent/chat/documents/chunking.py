"""Chunking: split a document into passages that can be found and quoted on their own.

A passage is a slice of the document's text, so its offsets hold, and tables and code keep their
lines.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from my_agent.chat.documents.reading import Document, parse

# Characters of one passage: a few paragraphs, well below the embedding model's limit.
LENGTH = 900
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_SENTENCES = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\u201d\u2019])\s+|\n")
# Rows of a Markdown table: the header, and the line below it.
_TABLE = re.compile(r"[ \t]*+(\|.*\|)[ \t]*+\n(?=[ \t:|]*+-)[ \t:|-]++(?:\n|$)")
# Characters of a table's header that each part of the table repeats in its headings.
_HEADER = 200

Span = tuple[int, int]


@dataclass(frozen=True)
class Passage:
    """A part of one section of a document.

    Attributes:
        number: position in the document, from 1.
        title: title of the document.
        section: headings above the passage, joined by " > "; may be empty.
        text: the text of the passage.
        document_id: id of the stored document; empty before it is stored.
        path: path or name of a file with this content.
        page: page of the file, from 1; None if the file has no pages.
        start: offset of the first character in the document's text.
        end: offset behind the last character.
    """

    number: int
    title: str
    section: str
    text: str
    document_id: str = field(default="", compare=False)
    path: str = field(default="", compare=False)
    page: int | None = field(default=None, compare=False)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    @property
    def in_context(self) -> str:
        """Return the text preceded by title and headings, which the text itself may not repeat."""
        return f"{' > '.join(filter(None, (self.title, self.section)))}\n{self.text}"


def passages(name: str, content: bytes) -> list[Passage]:
    """Parse a file and split it into passages; for a worker process.

    Args:
        name: name of the file, for its suffix and as its title if it has none.
        content: the bytes of the file.

    Raises:
        Unreadable: the content has no text, too much text, or is damaged.
    """
    return chunk(parse(Path(name), content))


def chunk(document: Document) -> list[Passage]:
    """Split a document into passages. No passage crosses the end of a section.

    Offsets count in `Document.text`.
    """
    found: list[Passage] = []
    base = 0
    for section in document.sections:
        for (start, end), header in _packed(section.text):
            heading = " > ".join(filter(None, (section.heading, header)))
            text = section.text[start:end]
            found.append(
                Passage(
                    len(found) + 1,
                    document.title,
                    heading,
                    text,
                    page=section.page,
                    start=base + start,
                    end=base + end,
                )
            )
        base += len(section.text) + len(document.JOINT)
    return found


def sentences(text: str) -> list[str]:
    """Split a text into sentences; each line of a list counts as one."""
    return [found for part in _SENTENCES.split(text) if (found := part.strip())]


def _packed(text: str) -> Iterator[tuple[Span, str]]:
    """Join pieces while they fit into `LENGTH`. Yield each span and its table's header."""
    start = end = -1
    header = ""
    for (begin, stop), above in _pieces(text):
        if start >= 0 and stop - start <= LENGTH and above == header:
            end = stop
            continue
        if start >= 0:
            yield (start, end), header
        start, end, header = begin, stop, above
    if start >= 0:
        yield (start, end), header


def _pieces(text: str) -> Iterator[tuple[Span, str]]:
    """Yield paragraphs, and parts of longer ones; parts of a table come with its header."""
    for paragraph in _split(text, (0, len(text)), _PARAGRAPHS):
        begin, stop = paragraph
        if stop - begin <= LENGTH:
            yield paragraph, ""
            continue
        table = _TABLE.match(text, begin, stop)
        header = " ".join(table[1].split())[:_HEADER] if table else ""
        for number, part in enumerate(_parts(text, paragraph)):
            # The first part contains the header itself.
            yield part, header if number and not part[0] < (table.end() if table else 0) else ""


def _parts(text: str, paragraph: Span) -> Iterator[Span]:
    """Cut a long paragraph into sentences and lines, and these between words."""
    for begin, stop in _split(text, paragraph, _SENTENCES):
        while stop - begin > LENGTH:
            at = max(text.rfind(" ", begin + 1, begin + LENGTH + 1), -1)
            at = at if at > begin else begin + LENGTH
            yield from _trimmed(text, begin, at)
            begin = at
        yield from _trimmed(text, begin, stop)


def _split(text: str, span: Span, at: re.Pattern[str]) -> Iterator[Span]:
    begin, stop = span
    for found in at.finditer(text, begin, stop):
        yield from _trimmed(text, begin, found.start())
        begin = found.end()
    yield from _trimmed(text, begin, stop)


def _trimmed(text: str, begin: int, stop: int) -> Iterator[Span]:
    """Yield the span without blank lines around it and white space behind it, unless it is empty.

    The indent of the first line stays: it means something in code.
    """
    part = text[begin:stop]
    if kept := part.strip():
        first = begin + part.index(kept[0])
        line = text.rfind("\n", begin, first) + 1
        indented = line if line > begin and not text[line:first].strip() else first
        yield indented, begin + len(part.rstrip())

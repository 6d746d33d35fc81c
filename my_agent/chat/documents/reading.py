"""Reading: parse a file into a title and sections of text.

A worker process calls `parse` (`my_agent/parsing`), because libraries may run long or crash.
"""

import csv
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

from my_agent.chat.documents import office, pdf
from my_agent.parsing import Unreadable

# Maximum length of a document's text, in characters. Longer files are data rather than documents.
LONGEST_TEXT = 20_000_000

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t](.*)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|--+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^title:(.*)", re.MULTILINE)
# Control characters other than white space, which text files do not contain.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True)
class Section:
    """A part of a document under one heading.

    Attributes:
        heading: the heading and those above it, without the document's title; empty before the
            first heading.
        text: the text below the heading.
        page: page of the file, from 1; None if the file has no pages.
    """

    heading: str
    text: str
    page: int | None = None


@dataclass(frozen=True)
class Document:
    """A parsed file."""

    JOINT: ClassVar[str] = "\n\n"
    """Stands between the texts of two sections in `text`."""

    title: str
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """Return the text of all sections, in which the offsets of passages count."""
        return self.JOINT.join(section.text for section in self.sections)


def suffixes() -> frozenset[str]:
    """Return the file suffixes that can be read."""
    return frozenset(_PARSERS)


def load(path: Path, largest: int) -> bytes:
    """Read the bytes of a regular file.

    Args:
        path: the file.
        largest: maximum size in bytes.

    Raises:
        Unreadable: the path is not a regular file, is empty, or is larger than `largest` bytes.
        OSError: the file cannot be opened or read.
    """
    # O_NONBLOCK: opening a named pipe must not wait for a writer. O_NOFOLLOW: a link that has
    # replaced the file since the check must not be followed.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("it is not a regular file")
        content = file.read(largest + 1)
    if not content:
        raise Unreadable("it is empty")
    if len(content) > largest:
        raise Unreadable(f"it is larger than {largest:,} bytes (CHAT_DOCUMENT_MAX_BYTES)")
    return content


def parse(path: Path, content: bytes) -> Document:
    """Parse the content of a file by the file's suffix.

    Args:
        path: the file, for its suffix and name; it is not read.
        content: the bytes of the file.

    Raises:
        Unreadable: the content has no text, too much text, or is damaged.
    """
    document = _PARSERS[path.suffix.lower()](content, path.stem)
    if sum(len(section.text) for section in document.sections) > LONGEST_TEXT:
        raise Unreadable(f"it has more than {LONGEST_TEXT:,} characters")
    sections = tuple(section for section in document.sections if section.text.strip())
    if not sections:
        raise Unreadable("it has no text")
    return Document(_line(document.title) or _line(path.stem), sections)


def decode(content: bytes) -> str:
    """Decode the bytes of a text file.

    Raises:
        Unreadable: the content is binary.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = content.decode("utf-16", "replace")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            # Older Windows editors write cp1252, which maps nearly every byte to a letter.
            text = content.decode("cp1252", "replace")
    if _CONTROL.search(text):
        raise Unreadable("it is binary")
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def markdown(text: str, name: str) -> Document:
    """Parse Markdown. Title: the front matter's, else the first level-1 heading, else `name`."""
    title, body = "", text
    if front := _FRONT_MATTER.match(text):
        title = _unquoted(found[1]) if (found := _TITLE.search(front[1])) else ""
        body = text[front.end() :]
    above: dict[int, str] = {}
    sections: list[Section] = []
    for heading, rank, lines in _parts(body):
        above = {each: words for each, words in above.items() if each < rank}
        if heading and rank == 1 and not title:
            title = heading
        elif heading and heading != title:
            above[rank] = heading
        sections.append(Section(" > ".join(above.values()), "\n".join(lines).strip()))
    return Document(title or name, tuple(sections))


def _parts(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Yield each heading, its level (0: no heading) and the lines below it."""
    heading, rank, lines, fence = "", 0, list[str](), ""
    for line in text.split("\n"):
        if found := _FENCE.match(line):
            fence = _fence_after(fence, found[1], found[2])
        if not fence and (found := _HEADING.fullmatch(line)):
            yield heading, rank, lines
            heading, rank, lines = _line(_without_closing(found[2])), len(found[1]), []
        elif not fence and _UNDERLINE.fullmatch(line) and lines and lines[-1].strip():
            under = lines.pop()
            yield heading, rank, lines
            heading, rank, lines = _line(under), 1 if "=" in line else 2, []
        else:
            lines.append(line)
    yield heading, rank, lines


def _fence_after(fence: str, marks: str, rest: str) -> str:
    """Return the fence that is open behind a line with the marks of a fence; empty: none."""
    if fence:
        closes = marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip()
        return "" if closes else fence
    # "```a```" is code within a line.
    return "" if marks[0] == "`" and "`" in rest else marks


def _without_closing(heading: str) -> str:
    """Return a heading without the marks that may close it: `# C# #` is "C#"."""
    words = heading.strip(" \t")
    bare = words.rstrip("#")
    return words if bare and not bare.endswith((" ", "\t")) else bare


def _unquoted(value: str) -> str:
    words = value.strip(" \t")
    is_quoted = len(words) > 1 and words[0] in "\"'" and words[-1] == words[0]
    return words[1:-1] if is_quoted else words


def _markdown(content: bytes, name: str) -> Document:
    return markdown(decode(content), name)


def _text(content: bytes, name: str) -> Document:
    return Document(name, (Section("", decode(content)),))


def _html(content: bytes, name: str) -> Document:
    from trafilatura import extract, extract_metadata

    if b"<body" not in content.lower():
        content = b"<html><body>" + content + b"</body></html>"
    text = extract(content, output_format="markdown", include_comments=False, config=_short_pages())
    if not text:
        raise Unreadable("it has no text")
    found = markdown(text, "")
    return Document(extract_metadata(content).title or found.title or name, found.sections)


@cache
def _short_pages() -> ConfigParser:
    """Return a trafilatura configuration that keeps the headings of very short pages."""
    from trafilatura.settings import use_config

    config = use_config()
    for size in ("MIN_EXTRACTED_SIZE", "MIN_OUTPUT_SIZE"):
        config["DEFAULT"][size] = "1"
    return config


def _pdf(content: bytes, name: str) -> Document:
    found = pdf.read(content)
    sections = (
        Section(f"p. {number}", _clean(page), number) for number, page in enumerate(found.pages, 1)
    )
    return Document(found.title or name, tuple(sections))


def _office(kind: str) -> Callable[[bytes, str], Document]:
    def parsed(content: bytes, name: str) -> Document:
        title, parts = office.read(content, kind)
        sections = (Section(_line(heading), _clean(text), page) for heading, text, page in parts)
        return Document(_clean(title) or name, tuple(sections))

    return parsed


def _csv(content: bytes, name: str) -> Document:
    text = decode(content)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:10_000], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    rows = ([" ".join(cell.split()) for cell in row] for row in csv.reader(StringIO(text), dialect))
    try:
        return Document(name, (Section("", "\n".join(office.records(rows))),))
    except csv.Error as error:
        raise Unreadable(f"it is no CSV ({error})") from error


def _clean(text: str) -> str:
    # A file may name halves of characters, which no database can hold.
    whole = text.encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFC", _CONTROL.sub(" ", whole))


def _line(text: str) -> str:
    # A file name may contain bytes that are not valid Unicode.
    clean = _CONTROL.sub(" ", text).encode("utf-8", "replace").decode()
    return " ".join(clean.split())[:200]


_PARSERS: dict[str, Callable[[bytes, str], Document]] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".txt": _text,
    ".text": _text,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".pdf": _pdf,
    ".docx": _office("docx"),
    ".xlsx": _office("xlsx"),
    ".pptx": _office("pptx"),
    ".csv": _csv,
}

"""Uploads: files that become sources of a session, received in parts and stored whole.

The bytes wait in a file without a name, so that memory does not grow with them, and a process that
is killed leaves nothing. They are read twice: to measure the text, and to write it with its event in
one transaction.
"""

import codecs
import hashlib
import re
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO, NamedTuple, Self

from sqlalchemy import Connection

from my_agent.diagnosis.reading.sources import sniff
from my_agent.diagnosis.reading.summary import Kind
from my_agent.diagnosis.record import log, texts
from my_agent.diagnosis.record.events import SourceAdded, new
from my_agent.diagnosis.record.fold import SOURCES
from my_agent.diagnosis.settings import DiagnosisSettings

PART = 1 << 18
"""Bytes that are read at once."""
HEAD = 1 << 16
"""Characters that tell the kind of a source."""
NAME = 200
"""The most characters of a name."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # Before UTF-16, whose mark is the beginning of this one.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_SUFFIX = re.compile(
    r"\.(?:log|txt|csv|json|jsonl|ndjson|out|err|yaml|yml|md|[0-9]{1,3})\Z", re.IGNORECASE
)
_SUFFIXES = 5
# Directions of text would show a name as another one.
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


class Unsuitable(RuntimeError):
    """A file cannot become a source. The message says what to do.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class SessionFull(RuntimeError):
    """A session takes no more sources. The message says what to do.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """


class Measured(NamedTuple):
    """What a file is, as the event of its source says.

    Attributes:
        encoding: how its bytes are read.
        source: the id of the source: the same text under the same name has the same one.
        name: the name without folders and suffixes.
        kind, format: what it looks like.
        text: what its text measures.
    """

    encoding: str
    source: str
    name: str
    kind: Kind
    format: str
    text: texts.Written


class Stored(NamedTuple):
    """A stored source.

    Attributes:
        seq: the last event of the session.
        source: its id.
        about: the source, as the state of the session has it.
        is_new: whether this upload has added it.
    """

    seq: int
    source: str
    about: dict[str, object]
    is_new: bool


class Upload:
    """A file that arrives in parts. Close it, or use it as a context.

    Args:
        name: the name of the file; it may have folders.
    """

    def __init__(self, name: str) -> None:
        self._name = _shown(name)
        self._file: IO[bytes] = TemporaryFile()  # noqa: SIM115  # `close` closes it
        self._measured: Measured | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the file."""
        self._file.close()

    def add(self, content: bytes) -> None:
        """Add the next bytes."""
        self._file.write(content)

    def measure(self) -> Measured:
        """Read the whole file, and return what it is. Takes up to a second.

        Raises:
            Unsuitable: it is empty or packed, or has no name.
        """
        if not self._name:
            raise Unsuitable("The file has no name: send PUT .../sources/NAME")
        begin = self._begin()
        if not begin:
            raise Unsuitable(f"The file {self._name} is empty")
        for mark, kind in _PACKED.items():
            if begin.startswith(mark):
                raise Unsuitable(f"The file {self._name} is packed with {kind}: unpack it first")
        encoding = self._encoding(begin)
        head = "".join(_first(self._parts(encoding), HEAD))
        name = _bare(self._name)
        kind, form = sniff(head, self._name)
        digest = hashlib.sha256(f"{name}\n".encode())

        def parts() -> Iterator[str]:
            for part in self._parts(encoding):
                digest.update(part.encode())
                yield part

        text = texts.measure(parts())
        source = f"s{digest.hexdigest()[:16]}"
        self._measured = Measured(encoding, source, name, kind, form[:40], text)
        return self._measured

    def store(
        self, connection: Connection, tenant: str, session: str, settings: DiagnosisSettings
    ) -> Stored:
        """Write the text and its event, after `measure`. It may be called again.

        Args:
            connection: a transaction that may write.
            tenant: the tenant.
            session: the session.
            settings: the limits.

        Raises:
            SessionFull: the session takes no more sources.
            UnknownEvent: the session has an event that this code does not know.
        """
        made = self._measured or self.measure()
        log.lock(connection, tenant, session)
        now = log.moment(connection, tenant, session)
        known = now.state["sources"]
        if made.source in known:
            return Stored(now.seq, made.source, known[made.source], is_new=False)
        used = sum(each["chars"] for each in known.values())
        if len(known) >= SOURCES or used + made.text.chars > settings.max_session_chars:
            raise SessionFull(
                f"A session has at most {SOURCES} sources with {settings.max_session_chars:,} "
                "characters: begin a new one"
            )
        texts.write(connection, tenant, session, made.source, self._parts(made.encoding))
        about = {"kind": made.kind, "format": made.format, "name": made.name}
        added = SourceAdded.model_validate({"id": made.source, **about, **made.text._asdict()})
        done = log.append(connection, tenant, session, [new(added)], snapshot=True)
        return Stored(done.seq, made.source, done.state["sources"][made.source], is_new=True)

    def _begin(self) -> bytes:
        self._file.seek(0)
        return self._file.read(8)

    def _encoding(self, begin: bytes) -> str:
        for mark, encoding in _MARKS:
            if begin.startswith(mark):
                return encoding
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for part in self._bytes():
                decoder.decode(part)
        except UnicodeDecodeError:
            return "latin-1"
        # A file that was cut may end within a character.
        return "utf-8"

    def _parts(self, encoding: str) -> Iterator[str]:
        """Yield the clean text."""
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        for part in self._bytes():
            yield texts.clean(decoder.decode(part))
        yield texts.clean(decoder.decode(b"", final=True))

    def _bytes(self) -> Iterator[bytes]:
        self._file.seek(0)
        while part := self._file.read(PART):
            yield part


def _first(parts: Iterator[str], size: int) -> Iterator[str]:
    for part in parts:
        yield part[:size]
        size -= len(part)
        if size <= 0:
            return


def _shown(name: str) -> str:
    """Return a name as people can read it."""
    return " ".join(texts.clean(_HIDDEN.sub(" ", name)).split())


def _bare(name: str) -> str:
    """Return the name of a file without its folders and suffixes, as in `==> name.log <==`."""
    bare = name.replace("\\", "/").rstrip("/").rpartition("/")[2].strip() or name
    for _ in range(_SUFFIXES):
        bare = _SUFFIX.sub("", bare) or bare
    return bare[:NAME]

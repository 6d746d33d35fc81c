"""Texts: the words of the sources of a session, in pieces that never change.

Every function works in the caller's transaction. Offsets are characters of the whole source, and
lines count from 1 and end with a line feed. A source of an older version has its text in its event;
it is read from there.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import Connection

from my_agent.diagnosis.reading.digest import Digest
from my_agent.diagnosis.record import log, statements
from my_agent.diagnosis.record.upcasting import current

PIECE = 1 << 18
"""The most characters of a piece."""
SHOWN = 2_000
"""The most characters of a line that is found; its offsets are those of the part that is shown."""
_TOGETHER = 4
"""Pieces that one statement writes."""
_WITHOUT_TEXT = 4
"""From this version on, the event of a source has no text."""
_DIGEST: TypeAdapter[Digest] = TypeAdapter(Digest)


class Written(NamedTuple):
    """What a text measures, as the event of its source says.

    Attributes:
        chars: its characters.
        lines: its lines; the last one may lack its end.
        sha256: of the text in UTF-8.
    """

    chars: int
    lines: int
    sha256: str


class Found(NamedTuple):
    """A line of a source, or the part of a long line around what was found.

    Attributes:
        source: the source.
        line: the number of the line, from 1.
        start, end: where `text` stands in the source.
        text: the words, without the end of the line.
    """

    source: str
    line: int
    start: int
    end: int
    text: str


class _Piece(NamedTuple):
    number: int
    start: int
    line: int
    text: str


def clean(text: str) -> str:
    """Return a text that each database can hold, of the same length.

    NUL and halves of characters become U+FFFD.
    """
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text)
    return text


def pieces(parts: Iterable[str]) -> Iterator[str]:
    """Cut a text, given in parts, into clean pieces: after line ends where it has some.

    It yields at least one piece. Equal texts give equal pieces, whatever their parts.
    """
    kept: list[str] = []
    size, empty = 0, True
    for part in parts:
        kept.append(clean(part))
        size += len(part)
        if size < PIECE:
            continue
        whole = "".join(kept)
        at = 0
        while len(whole) - at >= PIECE:
            end = whole.rfind("\n", at, at + PIECE) + 1 or at + PIECE
            yield whole[at:end]
            at, empty = end, False
        kept, size = [whole[at:]], len(whole) - at
    if size or empty:
        yield "".join(kept)


def measure(parts: Iterable[str]) -> Written:
    """Return what a text measures that `write` would write."""
    chars, ends, last, digest = 0, 0, "", hashlib.sha256()
    for piece in parts:
        piece = clean(piece)
        chars, ends, last = chars + len(piece), ends + piece.count("\n"), piece[-1:] or last
        digest.update(piece.encode())
    return Written(chars, ends + (last not in ("", "\n")), digest.hexdigest())


def write(
    connection: Connection, tenant: str, session: str, source: str, text: str | Iterable[str]
) -> None:
    """Write the text of a source. If the source has a text already, it stays as it is.

    Args:
        connection: a transaction that may write, and that also appends the source's event.
        tenant: the tenant.
        session: the session.
        source: the id of the source, which names its text.
        text: the text, whole or in parts.
    """
    log.lock(connection, tenant, session)
    if _is_written(connection, tenant, session, source):
        return
    same = {"tenant_id": tenant, "session_id": session, "source_id": source}
    rows: list[dict[str, Any]] = []
    start = line = 0
    for number, piece in enumerate(pieces([text] if isinstance(text, str) else text)):
        place = {"number": number, "start": start, "line": line}
        rows.append({**same, **place, "chars": len(piece), "text": piece})
        start, line = start + len(piece), line + piece.count("\n")
        if len(rows) == _TOGETHER:
            connection.execute(statements.ADD_PIECES, rows)
            rows = []
    if rows:
        connection.execute(statements.ADD_PIECES, rows)


def copy(connection: Connection, tenant: str, origin: str, into: str, source: str) -> bool:
    """Copy the text and digests of a source to another session, unless it has them.

    Returns:
        Whether the other session has the text now.
    """
    if _is_written(connection, tenant, into, source):
        return True
    values = {"tenant_id": tenant, "session_id": origin, "source_id": source, "into": into}
    connection.execute(statements.COPY_TEXT, values)
    connection.execute(statements.COPY_DIGESTS, values)
    return _is_written(connection, tenant, into, source)


def read(
    connection: Connection, tenant: str, session: str, source: str, start: int, end: int
) -> str:
    """Return the characters of a source from `start` to before `end`, as far as it has them."""
    start = max(0, start)
    parts = []
    for piece in _pieces_at(connection, tenant, session, source, start):
        if piece.start >= end:
            break
        parts.append(piece.text[max(0, start - piece.start) : end - piece.start])
    return "".join(parts)


def stream(connection: Connection, tenant: str, session: str, source: str) -> Iterator[str]:
    """Yield the text of a source in pieces; nothing if there is no such source."""
    for piece in _pieces(connection, tenant, session, source):
        yield piece.text


def search(
    connection: Connection,
    tenant: str,
    session: str,
    words: Sequence[str],
    *,
    source: str | None = None,
    most: int,
    first: int = 0,
) -> list[Found]:
    """Return the first lines that have all words, in any order and in capitals or not.

    It reads every piece once until it has found enough.

    Args:
        connection: a transaction.
        tenant: the tenant.
        session: the session.
        words: what a line must have; without one nothing is found.
        source: the source to search; None: all of the session, in the order of their ids.
        most: how many lines at most.
        first: the number of the first line to search in each source.
    """
    wanted = sorted({each.lower() for each in words if each}, key=len, reverse=True)
    if not wanted or most < 1:
        return []
    found: list[Found] = []
    for each in [source] if source is not None else ids(connection, tenant, session):
        for piece in _pieces(connection, tenant, session, each):
            found += [line for line in _matches(piece, each, wanted) if line.line >= first]
            if len(found) >= most:
                return found[:most]
    return found


def lines(
    connection: Connection, tenant: str, session: str, source: str, line: int, count: int
) -> list[Found]:
    """Return at most `count` lines of a source, from the line `line` on.

    Of a very long line, its beginning.
    """
    first, found, at = max(1, line), [], 0
    for piece in _pieces_of_line(connection, tenant, session, source, first):
        number, start = piece.line + 1, 0
        while start < len(piece.text):
            end = piece.text.find("\n", start)
            end = len(piece.text) if end < 0 else end
            # The rest of a line that began in an earlier piece is no line of its own.
            if number >= first and number > at:
                found.append(_shown(piece, source, number, start, end, start))
                at = number
                if len(found) >= count:
                    return found
            number, start = number + 1, end + 1
    return found


def ids(connection: Connection, tenant: str, session: str) -> list[str]:
    """Return the ids of the sources that have a text."""
    values = {"tenant_id": tenant, "session_id": session}
    kept = list(connection.execute(statements.TEXT_IDS, values).scalars())
    known = set(kept)
    return kept + [
        each["id"] for each in _old(connection, tenant, session) if each["id"] not in known
    ]


def digest(
    connection: Connection, tenant: str, session: str, source: str, reader: int
) -> Digest | None:
    """Return the digest of a source that readers of this version made, if it is kept."""
    values = {"tenant_id": tenant, "session_id": session, "source_id": source, "reader": reader}
    found = connection.execute(statements.DIGEST, values).scalar()
    return None if found is None else _DIGEST.validate_json(found)


def keep_digest(
    connection: Connection, tenant: str, session: str, source: str, reader: int, made: Digest
) -> None:
    """Keep the digest of a source in place of those of earlier readers.

    Of a session that was deleted meanwhile, nothing is kept.
    """
    if not log.lock(connection, tenant, session, opens=False):
        return
    values = {"tenant_id": tenant, "session_id": session, "source_id": source, "reader": reader}
    connection.execute(statements.FORGET_DIGESTS, values)
    row = {**values, "digest": _DIGEST.dump_json(made).decode()}
    connection.execute(statements.ADD_DIGEST, row)


def _is_written(connection: Connection, tenant: str, session: str, source: str) -> bool:
    values = {"tenant_id": tenant, "session_id": session, "source_id": source}
    return connection.execute(statements.HAS_TEXT, values).first() is not None


def _pieces(
    connection: Connection, tenant: str, session: str, source: str, after: int = -1
) -> Iterator[_Piece]:
    """Yield the pieces of a source after the piece `after`, one statement each."""
    values = {"tenant_id": tenant, "session_id": session, "source_id": source}
    known = False
    while True:
        row = connection.execute(statements.PIECES, {**values, "after": after}).first()
        if row is None:
            break
        known, after = True, row.number
        yield _Piece(*row)
    if not known and after < 0:
        yield from _old_pieces(connection, tenant, session, source)


def _pieces_at(
    connection: Connection, tenant: str, session: str, source: str, place: int
) -> Iterator[_Piece]:
    """Yield the pieces from the one with the character `place` on."""
    values = {"tenant_id": tenant, "session_id": session, "source_id": source, "place": place}
    number = connection.execute(statements.PIECE_AT, values).scalar()
    after = -1 if number is None else number - 1
    yield from _pieces(connection, tenant, session, source, after)


def _pieces_of_line(
    connection: Connection, tenant: str, session: str, source: str, line: int
) -> Iterator[_Piece]:
    """Yield the pieces from one at or before the beginning of a line on."""
    values = {"tenant_id": tenant, "session_id": session, "source_id": source, "place": line - 1}
    # The line begins after this many line ends, the last of which is in this piece.
    number = connection.execute(statements.PIECE_OF_LINE, values).scalar()
    after = -1 if number is None else number - 1
    yield from _pieces(connection, tenant, session, source, after)


def _old_pieces(connection: Connection, tenant: str, session: str, source: str) -> Iterator[_Piece]:
    """Yield the text of a source of an older version in pieces."""
    for data in _old(connection, tenant, session):
        if data["id"] != source:
            continue
        start = line = 0
        for number, text in enumerate(pieces([data["text"]])):
            yield _Piece(number, start, line, text)
            start, line = start + len(text), line + text.count("\n")
        return


def _old(connection: Connection, tenant: str, session: str) -> Iterator[dict[str, Any]]:
    """Yield the contents of the sources whose events have their text, in the current version."""
    values = {"tenant_id": tenant, "session_id": session, "below": _WITHOUT_TEXT}
    for version, data in connection.execute(statements.OLD_SOURCES, values).all():
        yield current("source_added", version, json.loads(data))


def _matches(piece: _Piece, source: str, wanted: Sequence[str]) -> Iterator[Found]:
    """Yield the lines of a piece that have all words; `wanted` begins with the longest."""
    lower = piece.text.lower()
    if len(lower) != len(piece.text):
        # Few capitals have a small letter of another length: these stay.
        lower = "".join(low if len(low := each.lower()) == 1 else each for each in piece.text)
    if any(each not in lower for each in wanted):
        return
    counted, number, at = 0, piece.line + 1, 0
    while (place := lower.find(wanted[0], at)) >= 0:
        start = lower.rfind("\n", 0, place) + 1
        end = lower.find("\n", place)
        end = len(lower) if end < 0 else end
        number, counted = number + lower.count("\n", counted, start), start
        line = lower[start:end]
        if all(each in line for each in wanted[1:]):
            yield _shown(piece, source, number, start, end, place)
        at = end + 1


def _shown(piece: _Piece, source: str, line: int, start: int, end: int, place: int) -> Found:
    """Return a line of a piece, or the part of it around a place."""
    if end - start > SHOWN:
        start = max(start, min(place - SHOWN // 4, end - SHOWN))
        end = start + SHOWN
    text = piece.text[start:end]
    if text.endswith("\r"):
        text, end = text[:-1], end - 1
    return Found(source, line, piece.start + start, piece.start + end, text)

"""Statements on the tables of the diagnosis, made once."""

from sqlalchemy import BindParameter, bindparam, delete, insert, select

from my_agent.diagnosis.tables import digests, events, sessions, texts

_TENANT: BindParameter[str] = bindparam("tenant_id")
_SESSION: BindParameter[str] = bindparam("session_id")
_OF_EVENTS = (events.c.tenant_id == _TENANT) & (events.c.session_id == _SESSION)
_SOURCE: BindParameter[str] = bindparam("source_id")
_OF_TEXT = (
    (texts.c.tenant_id == _TENANT)
    & (texts.c.session_id == _SESSION)
    & (texts.c.source_id == _SOURCE)
)
_OF_DIGESTS = (digests.c.tenant_id == _TENANT) & (digests.c.session_id == _SESSION)
_OF_SESSION = (sessions.c.tenant_id == _TENANT) & (sessions.c.session_id == _SESSION)
_EVENT = select(
    *(
        events.c[name]
        for name in ("seq", "type", "version", "data", "at", "command", "previous", "hash")
    )
)

RANGE = (
    _EVENT.where(_OF_EVENTS, events.c.seq > bindparam("after"), events.c.seq <= bindparam("to"))
    .order_by(events.c.seq)
    .limit(bindparam("count"))
)
HEAD = (
    select(events.c.seq, events.c.at, events.c.hash)
    .where(_OF_EVENTS)
    .order_by(events.c.tenant_id.desc(), events.c.session_id.desc(), events.c.seq.desc())
    .limit(1)
)
WRITTEN = select(events.c.seq).where(_OF_EVENTS, events.c.command == bindparam("command")).limit(1)
SNAPSHOT = (
    select(
        sessions.c.seq,
        sessions.c.fold,
        sessions.c.state,
        sessions.c.event_hash,
        sessions.c.checksum,
    )
    .where(
        _OF_SESSION,
        sessions.c.seq < bindparam("below"),
        sessions.c.at <= bindparam("at"),
        sessions.c.fold == bindparam("fold"),
    )
    .order_by(sessions.c.tenant_id.desc(), sessions.c.session_id.desc(), sessions.c.seq.desc())
    .limit(1)
)
FIRST = select(sessions.c.seq).where(_OF_SESSION, sessions.c.seq == 0)
LOCKED = FIRST.with_for_update()
KEPT = (
    select(sessions.c.seq)
    .where(_OF_SESSION, sessions.c.seq > 0, sessions.c.seq % bindparam("every") != 0)
    .order_by(sessions.c.seq.desc())
)
FORGET = delete(sessions).where(_OF_SESSION, sessions.c.seq == bindparam("gone"))
ADD_EVENT = insert(events)
ADD_SNAPSHOT = insert(sessions)

PIECES = (
    select(texts.c.number, texts.c.start, texts.c.line, texts.c.text)
    .where(_OF_TEXT, texts.c.number > bindparam("after"))
    .order_by(texts.c.number)
    .limit(1)
)
PIECE_AT = (
    select(texts.c.number)
    .where(_OF_TEXT, texts.c.start <= bindparam("place"))
    .order_by(texts.c.number.desc())
    .limit(1)
)
PIECE_OF_LINE = (
    select(texts.c.number)
    .where(_OF_TEXT, texts.c.line < bindparam("place"))
    .order_by(texts.c.number.desc())
    .limit(1)
)
HAS_TEXT = select(texts.c.number).where(_OF_TEXT, texts.c.number == 0)
TEXT_IDS = (
    select(texts.c.source_id)
    .where(texts.c.tenant_id == _TENANT, texts.c.session_id == _SESSION, texts.c.number == 0)
    .order_by(texts.c.source_id)
)
ADD_PIECES = insert(texts)
# Events of sources whose version still had the text.
OLD_SOURCES = (
    select(events.c.version, events.c.data)
    .where(_OF_EVENTS, events.c.type == "source_added", events.c.version < bindparam("below"))
    .order_by(events.c.seq)
)
DIGEST = select(digests.c.digest).where(
    _OF_DIGESTS, digests.c.source_id == _SOURCE, digests.c.reader == bindparam("reader")
)
FORGET_DIGESTS = delete(digests).where(
    _OF_DIGESTS, digests.c.source_id == _SOURCE, digests.c.reader <= bindparam("reader")
)
ADD_DIGEST = insert(digests)

"""Statements on the tables of the diagnosis, made once."""

from sqlalchemy import BindParameter, Text, bindparam, delete, insert, select

from my_agent.diagnosis.record.tables import digests, events, sessions, texts

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
TOLD = _EVENT.where(
    _OF_EVENTS,
    events.c.seq <= bindparam("to"),
    events.c.type.in_(["message_added", "session_branched"]),
).order_by(events.c.seq)
HEAD = (
    select(events.c.seq, events.c.at, events.c.hash)
    .where(_OF_EVENTS)
    .order_by(events.c.tenant_id.desc(), events.c.session_id.desc(), events.c.seq.desc())
    .limit(1)
)
WRITTEN = select(events.c.seq).where(_OF_EVENTS, events.c.command == bindparam("command")).limit(1)
# Runs write with a command; people write notes and upload sources without one.
WRITERS = (
    select(events.c.command)
    .where(_OF_EVENTS, events.c.seq > bindparam("after"), events.c.command.is_not(None))
    .distinct()
)
_SNAPSHOT = (
    select(
        sessions.c.seq,
        sessions.c.fold,
        sessions.c.state,
        sessions.c.event_hash,
        sessions.c.checksum,
        events.c.hash,
        events.c.state_hash,
    )
    .select_from(
        sessions.outerjoin(
            events,
            (events.c.tenant_id == sessions.c.tenant_id)
            & (events.c.session_id == sessions.c.session_id)
            & (events.c.seq == sessions.c.seq),
        )
    )
    .where(_OF_SESSION, sessions.c.fold == bindparam("fold"))
)
SNAPSHOT = (
    _SNAPSHOT.where(sessions.c.seq < bindparam("below"), sessions.c.at <= bindparam("at"))
    .order_by(sessions.c.tenant_id.desc(), sessions.c.session_id.desc(), sessions.c.seq.desc())
    .limit(1)
)
SNAPSHOT_AT = _SNAPSHOT.where(sessions.c.seq == bindparam("at_seq"))
SNAPSHOTS = (
    select(sessions.c.seq)
    .where(_OF_SESSION, sessions.c.fold == bindparam("fold"), sessions.c.seq > 0)
    .order_by(sessions.c.seq)
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
_INTO = bindparam("into", type_=Text)
COPY_TEXT = insert(texts).from_select(
    [each.name for each in texts.c],
    select(*(_INTO if each is texts.c.session_id else each for each in texts.c))
    .where(_OF_TEXT)
    .order_by(texts.c.number),
)
COPY_DIGESTS = insert(digests).from_select(
    [each.name for each in digests.c],
    select(*(_INTO if each is digests.c.session_id else each for each in digests.c)).where(
        _OF_DIGESTS, digests.c.source_id == _SOURCE
    ),
)
DIGEST = select(digests.c.digest).where(
    _OF_DIGESTS, digests.c.source_id == _SOURCE, digests.c.reader == bindparam("reader")
)
FORGET_DIGESTS = delete(digests).where(
    _OF_DIGESTS, digests.c.source_id == _SOURCE, digests.c.reader <= bindparam("reader")
)
ADD_DIGEST = insert(digests)

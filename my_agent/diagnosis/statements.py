"""Statements on the tables of the diagnosis, made once."""

from sqlalchemy import BindParameter, bindparam, delete, insert, select

from my_agent.diagnosis.tables import events, sessions

_TENANT: BindParameter[str] = bindparam("tenant_id")
_SESSION: BindParameter[str] = bindparam("session_id")
_OF_EVENTS = (events.c.tenant_id == _TENANT) & (events.c.session_id == _SESSION)
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

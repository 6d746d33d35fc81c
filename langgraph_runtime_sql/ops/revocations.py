"""Revocations: a deny-list of tokens and users.

Every function sees the entries of all tenants: a request is checked before its tenant is known.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import bindparam, or_, select

from langgraph_runtime_sql import runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.schema import crons, revocations
from langgraph_runtime_sql.database.statements import Prepared, Row
from langgraph_runtime_sql.gate import entries, writes
from langgraph_runtime_sql.gate.operations import REVOCATION_CREATE, REVOCATION_LIFT
from langgraph_runtime_sql.search import filters
from langgraph_runtime_sql.tenancy import scope

# Keys that one statement looks up.
PAGE = 200
# Entries that a list shows.
MAX_LISTED = 1000

_FIELDS = ("tenant", "subject", "token_id", "reason", "created_at", "expires_at")
_DELETE = Prepared(revocations.delete().where(revocations.c.key == bindparam("revoked")))
_INSERT = Prepared(revocations.insert())
_FORGET = Prepared(revocations.delete().where(revocations.c.expires_at <= bindparam("now")))


@dataclass(frozen=True)
class Target:
    """What is revoked: one token, or all tokens of a user.

    Attributes:
        tenant: The tenant of the user; None for a token.
        subject: The user; None for a token.
        token_id: The token's `jti`; None for a user.
    """

    tenant: str | None = None
    subject: str | None = None
    token_id: str | None = None

    def __post_init__(self) -> None:
        is_user = self.tenant is not None and self.subject is not None
        if is_user == (self.token_id is not None) or (self.tenant is None) != (
            self.subject is None
        ):
            raise ValueError("A revocation names either a token, or a tenant and a user")

    @property
    def fields(self) -> dict[str, str]:
        """What is named, for the audit log."""
        named = {"tenant": self.tenant, "user": self.subject, "token_id": self.token_id}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def key(self) -> str:
        """The key of the entry."""
        if self.token_id is not None:
            return json.dumps(["token", self.token_id])
        return json.dumps(["subject", self.tenant, self.subject])


async def revoke(
    target: Target,
    *,
    seconds: float | None = None,
    reason: str | None = None,
    owner: Mapping[str, Any] | None = None,
) -> int:
    """Refuse a token or a user from now on, and disable the user's crons.

    Args:
        target: What to refuse.
        seconds: The time for which it is refused; None has no end.
        reason: Note for operators.
        owner: The metadata of the crons to disable.

    Returns:
        The number of crons that were disabled.
    """

    def fn(conn: Connection) -> int:
        now = conn.now()
        conn.execute(_FORGET, {"now": now})
        conn.execute(_DELETE, {"revoked": target.key})
        entry = {
            "key": target.key,
            "tenant": target.tenant,
            "subject": target.subject,
            "token_id": target.token_id,
            "reason": reason,
            "created_at": now,
            "expires_at": None if seconds is None else now + timedelta(seconds=seconds),
        }
        conn.execute(_INSERT, entry)
        disabled = _disable(conn, owner) if owner else 0
        detail = {**target.fields, "seconds": seconds, "reason": reason, "crons": disabled}
        entries.record(conn, REVOCATION_CREATE, None, tenant=target.tenant, detail=detail)
        return disabled

    with scope.within(scope.EVERYTHING), writes.checked(REVOCATION_CREATE):
        return await runtime.current().database.write(fn)


def _disable(conn: Connection, owner: Mapping[str, Any]) -> int:
    theirs = filters.has(crons.c.metadata, dict(owner))
    return conn.execute(
        crons.update().where(crons.c.enabled.is_(True), theirs).values(enabled=False)
    )


async def lift(target: Target) -> bool:
    """Remove an entry, and return whether there was one. Crons stay disabled."""

    def fn(conn: Connection) -> bool:
        lifted = bool(conn.execute(_DELETE, {"revoked": target.key}))
        if lifted:
            entries.record(conn, REVOCATION_LIFT, None, tenant=target.tenant, detail=target.fields)
        return lifted

    with scope.within(scope.EVERYTHING), writes.checked(REVOCATION_LIFT):
        return await runtime.current().database.write(fn)


async def find(keys: Collection[str]) -> set[str]:
    """Return those of the keys that are revoked now."""
    asked, found = sorted(keys), set[str]()

    def fn(conn: Connection, *, page: list[str]) -> list[Row]:
        return conn.fetchall(
            select(revocations.c.key).where(revocations.c.key.in_(page), _in_force(conn.now()))
        )

    with scope.within(scope.EVERYTHING):
        for start in range(0, len(asked), PAGE):
            page = asked[start : start + PAGE]
            rows = await runtime.current().database.read(partial(fn, page=page))
            found |= {row["key"] for row in rows}
    return found


async def listed() -> list[Row]:
    """Return the entries in force, newest first."""

    def fn(conn: Connection) -> list[Row]:
        return conn.fetchall(
            select(*(revocations.c[name] for name in _FIELDS))
            .where(_in_force(conn.now()))
            .order_by(revocations.c.created_at.desc(), revocations.c.key)
            .limit(MAX_LISTED)
        )

    with scope.within(scope.EVERYTHING):
        return await runtime.current().database.read(fn)


def _in_force(now: datetime) -> Any:
    return or_(revocations.c.expires_at.is_(None), revocations.c.expires_at > now)

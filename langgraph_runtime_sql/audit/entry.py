"""Entries: the fields of an audit entry, and the two digests that protect them.

The fields about a person (tenant, user, roles, address, details) are not in the hash itself. The hash
covers `person`, their digest with a random salt. An erase removes these fields and the salt: nobody
can guess them from the digest, and the chain still verifies.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from langgraph_runtime_sql.database.statements import Row

ALLOWED, REFUSED, POLICY = "allowed", "refused", "policy"
DECISIONS = (ALLOWED, REFUSED, POLICY)

PERSONAL = ("tenant", "user_id", "roles", "address", "detail")
"""The fields about a person, which an erase removes together with the salt."""
HASHED = (
    *("chain", "number", "previous", "at", "method", "route", "action"),
    *("object_kind", "object_id", "decision", "status", "person"),
)
"""The fields of the hash, in its order."""

RETENTION = "remove_old_entries"
"""The action of the entry that retention writes."""
GENESIS = ""
"""The previous hash of the first entry of a database."""
SALT_BYTES = 16
MAX_TEXT = 500
MAX_DETAIL = 4000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The origin of a change: a request, a cron, or the platform itself.

    Attributes:
        tenant: The tenant of the user.
        user: The identity of the user.
        roles: The permissions of the user.
        address: The remote address of the request.
        method: The HTTP method, or `WEBSOCKET`.
        route: The path of the route with names for its parameters; `cron` for a cron's run.
    """

    tenant: str | None = None
    user: str | None = None
    roles: tuple[str, ...] = ()
    address: str | None = None
    method: str | None = None
    route: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """What an operation did, before the actor is known.

    Attributes:
        kind: The kind of the object: `thread`, `run`, `assistant`, `cron`, `item`.
        object_id: Its id. Other names belong into `detail`, which can be erased.
        action: `create`, `update`, `delete` and others, or the name of a policy decision.
        decision: One of `DECISIONS`.
        tenant: The object's tenant, for an actor without a tenant.
        detail: Further facts, as JSON values.
        status: The HTTP status of a refusal.
    """

    kind: str | None
    object_id: UUID | None
    action: str
    decision: str = ALLOWED
    tenant: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    status: int | None = None


def make(actor: Actor, note: Note, at: datetime, *, tenant: str | None = None) -> Row:
    """Make the row of an entry without its place in a chain.

    Args:
        at: When it happened.
        tenant: The tenant of the transaction, which overrides the actor's.
    """
    row: Row = {
        "at": at,
        # Unchanged: policies compare it. It is stored in other tables, too.
        "tenant": tenant or actor.tenant or note.tenant,
        "user_id": _text(actor.user),
        "roles": _text(" ".join(actor.roles)) if actor.roles else None,
        "address": _text(actor.address),
        "method": _text(actor.method),
        "route": _text(actor.route),
        "action": note.action,
        "object_kind": note.kind,
        "object_id": None if note.object_id is None else str(note.object_id),
        "decision": note.decision,
        "status": note.status,
        # The details of retention are needed to verify the chains.
        "detail": _detail(note.detail, None if note.action == RETENTION else MAX_DETAIL),
        "salt": os.urandom(SALT_BYTES).hex(),
    }
    return {**row, "person": person_digest(row)}


def person_digest(row: Mapping[str, Any]) -> str:
    """Return the digest of the fields about a person."""
    return _digest([row["salt"], *(row[name] for name in PERSONAL)])


def entry_hash(row: Mapping[str, Any]) -> str:
    """Return the hash of an entry, which covers the previous hash."""
    values = {**row, "at": (row["at"] - EPOCH) // MICROSECOND}
    return _digest([values[name] for name in HASHED])


def is_erased(row: Mapping[str, Any]) -> bool:
    """Return whether an erase removed the fields about a person."""
    return row["salt"] is None


def _digest(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values, separators=(",", ":")).encode()).hexdigest()


def _text(value: str | None) -> str | None:
    """Return a text that both databases can store."""
    if value is None:
        return None
    stored = value[:MAX_TEXT].replace("\0", "\ufffd")
    return stored.encode("utf-8", "replace").decode()


def _detail(detail: Mapping[str, Any], most: int | None) -> str | None:
    if not detail:
        return None
    # ASCII only, so that any text can be stored; text and not jsonb, so that no byte changes.
    text = json.dumps(detail, default=str, separators=(",", ":"))
    return (
        text if most is None or len(text) <= most else json.dumps({"omitted_characters": len(text)})
    )

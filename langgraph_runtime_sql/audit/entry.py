"""Entries: the fields of an audit entry, and the two digests that protect them.

The fields about a person (tenant, user, roles, address, details) are not in the hash itself. The hash
covers `person`, their digest with a random salt. An erase removes these fields and the salt: nobody
can guess them from the digest, and the chain still verifies.

The hash of a keyed entry is an HMAC. That of an entry without a key is a plain digest, which the owner
of the database can compute, too.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from langgraph_runtime_sql.audit.keys import Key, Keyring
from langgraph_runtime_sql.database.statements import Row

ALLOWED, REFUSED, POLICY = "allowed", "refused", "policy"
DECISIONS = (ALLOWED, REFUSED, POLICY)

PERSONAL = ("tenant", "user_id", "roles", "address", "detail")
"""The fields about a person, which an erase removes together with the salt."""
HASHED = (
    *("chain", "number", "previous", "at", "method", "route", "action"),
    *("object_kind", "object_id", "decision", "status", "person"),
)
"""The fields of the hash, in its order. A keyed entry has `key_id` after them."""

LOG = "audit"
"""The kind of the object of an entry about the log itself."""
RETENTION = "remove_old_entries"
"""The action of the entry that retention writes."""
LINK = "link"
"""The action of an entry that names the newest entries of chains."""
GENESIS = ""
"""The previous hash of the first entry of a database."""
SALT_BYTES = 16
MAX_TEXT = 500
MAX_DETAIL = 4000
MALFORMED = (ValueError, TypeError, LookupError, AttributeError)
"""The errors of a detail that no process writes."""
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
        method: The HTTP method, `WEBSOCKET`, or `COMMAND`.
        route: The path of the route that the client has called, with names for its parameters; the name
            of a command; `cron` for a cron's run.
    """

    tenant: str | None = None
    user: str | None = None
    roles: tuple[str, ...] = ()
    address: str | None = None
    method: str | None = None
    route: str | None = None


@dataclass(frozen=True)
class Broken:
    """An entry that was changed, or whose predecessor is missing.

    Attributes:
        seq: The number of its row.
        why: What is wrong.
    """

    seq: int
    why: str


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
        # Those about the log itself are needed to verify the chains.
        "detail": _detail(note.detail, None if note.kind == LOG else MAX_DETAIL),
        "salt": os.urandom(SALT_BYTES).hex(),
        "erased": None,
    }
    return {**row, "person": person_digest(row)}


def person_digest(row: Mapping[str, Any]) -> str:
    """Return the digest of the fields about a person."""
    return _digest([row["salt"], *(row[name] for name in PERSONAL)])


def entry_hash(row: Mapping[str, Any], key: Key | None) -> str:
    """Return the hash of an entry, which covers the previous hash.

    Args:
        key: The key that `key_id` names; None for an entry without a key.
    """
    values = {**row, "at": (row["at"] - EPOCH) // MICROSECOND}
    fields = [values[name] for name in HASHED]
    return _digest(fields) if key is None else key.digest(_text_of([*fields, row["key_id"]]))


def is_erased(row: Mapping[str, Any]) -> bool:
    """Return whether the fields about a person were removed."""
    return row["salt"] is None


def erasure(row: Mapping[str, Any], key: Key | None) -> str | None:
    """Return the mark of an entry whose fields about a person an erase removes.

    Without the key nobody can empty an entry unseen.
    """
    return None if key is None else f"{key.id}:{_erasure_digest(row, key)}"


def unknown_key(row: Mapping[str, Any], keys: Keyring) -> str | None:
    """Return the id of a key that the entry needs and that is not configured, or None."""
    needed = (row["key_id"], _mark(row)[0] if is_erased(row) and row["key_id"] else None)
    return next((each for each in needed if each and keys.find(each) is None), None)


def fault(row: Mapping[str, Any], keys: Keyring) -> str | None:
    """Return how an entry differs from what was written, or None.

    What needs an unknown key is not checked.
    """
    if row["key_id"] is not None and is_erased(row):
        if not _is_erased_by_key(row, keys):
            return "its user, tenant, address and detail were removed without a key"
    elif not is_erased(row) and person_digest(row) != row["person"]:
        return "its user, tenant, address or detail was changed"
    key = keys.find(row["key_id"])
    if key is None and row["key_id"] is not None:
        return None
    return None if entry_hash(row, key) == row["hash"] else "it was changed"


def is_believed(row: Mapping[str, Any], keys: Keyring) -> bool:
    """Return whether an entry about the log itself can be believed: nobody without a key wrote it.

    Without any key, all that are unchanged are believed: then nothing is proven.
    """
    return (
        row["object_kind"] == LOG
        and not is_erased(row)
        and (row["key_id"] is not None or not keys.keys)
        and unknown_key(row, keys) is None
        and fault(row, keys) is None
    )


def detail_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the detail of an entry."""
    found: dict[str, Any] = json.loads(row["detail"])
    return found


def _is_erased_by_key(row: Mapping[str, Any], keys: Keyring) -> bool:
    """Return whether an erase with a key emptied an entry, as far as its key is known."""
    key_id, digest = _mark(row)
    if not digest or row["tenant"] is not None or row["object_kind"] == LOG:
        return False
    key = keys.find(key_id)
    return key is None or _erasure_digest(row, key) == digest


def _mark(row: Mapping[str, Any]) -> tuple[str, str]:
    key_id, _, digest = (row["erased"] or "").partition(":")
    return key_id, digest


def _erasure_digest(row: Mapping[str, Any], key: Key) -> str:
    return key.digest(_ERASED + row["hash"].encode())


_ERASED = b"erased\0"


def _digest(values: list[Any]) -> str:
    return hashlib.sha256(_text_of(values)).hexdigest()


def _text_of(values: list[Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode()


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

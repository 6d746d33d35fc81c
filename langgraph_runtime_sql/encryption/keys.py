"""Tenant keys: a random data key for each tenant, wrapped by the master key in `tenant_keys`.

Each database has one cache of unwrapped keys in the process. Its entries end after `CACHE_SECONDS`,
so that a key that another process has erased is soon forgotten here too.
"""

import time
from datetime import datetime
from functools import partial
from typing import TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from sqlalchemy import Text, bindparam, func, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import database_settings, tenant_keys
from langgraph_runtime_sql.database.statements import InsertNew, Prepared, Row
from langgraph_runtime_sql.encryption import master
from langgraph_runtime_sql.encryption.envelope import Key
from langgraph_runtime_sql.errors import NotStarted, RuntimeSqlError

K = TypeVar("K")

CACHE_SECONDS = 60.0
# How long a process may not know that `keys encrypt` has ended.
LOOK_SECONDS = 1.0
# Many tenants: the cache is emptied when it is full.
CACHED = 10_000
NO_TENANT = ""
"""The tenant of rows without one."""

_keys = tenant_keys.c
_INSERT = Prepared(InsertNew(tenant_keys).values({c.name: bindparam(c.name) for c in _keys}))
_BY_ID = Prepared(select(tenant_keys).where(_keys.key_id == bindparam("id")))
_NEWEST = Prepared(
    select(tenant_keys)
    .where(_keys.tenant == bindparam("of_tenant", type_=Text), _keys.wrapped.is_not(None))
    .order_by(_keys.version.desc())
    .limit(1)
)
_LAST_VERSION = Prepared(
    select(func.coalesce(func.max(_keys.version), 0).label("version")).where(
        _keys.tenant == bindparam("of_tenant", type_=Text)
    )
)
_ERASE = Prepared(
    tenant_keys.update()
    .where(_keys.tenant == bindparam("of_tenant", type_=Text), _keys.wrapped.is_not(None))
    .values(wrapped=None, master=None, erased_at=bindparam("now"))
)


LEFT_OUT = (
    "This database was restored from a backup, which does not contain its encryption keys: add "
    "them with `keys import FILE`"
)


ENCRYPTED = "encrypted"
"""The fact that all rows of a database are encrypted."""
_facts = database_settings.c
_IS_ENCRYPTED = Prepared(select(_facts.value).where(_facts.name == ENCRYPTED))
_SET_ENCRYPTED = Prepared(
    InsertNew(database_settings).values(name=ENCRYPTED, value=bindparam("since", type_=Text))
)


class CannotDecrypt(RuntimeSqlError):
    """Stored data is encrypted, and this process has no key that opens it."""


class KeyErased(HTTPException):
    """The key of the data was erased, and the data with it. Answers 410."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        super().__init__(410, "This data was erased: its encryption key no longer exists")


class TenantKeys:
    """The unwrapped keys of one database."""

    def __init__(self) -> None:
        self._by_id: dict[UUID, tuple[float, Key]] = {}
        self._newest: dict[str, tuple[float, Key]] = {}
        self._only_sealed = False
        self._look_at = 0.0

    def only_sealed(self, conn: Connection) -> bool:
        """Return whether `keys encrypt` has ended, so that plain rows are refused.

        Once true, it stays true. Other processes learn of it within `LOOK_SECONDS`.
        """
        if not self._only_sealed and time.monotonic() >= self._look_at:
            self._only_sealed = conn.scalar(_IS_ENCRYPTED) is not None
            self._look_at = time.monotonic() + LOOK_SECONDS
        return self._only_sealed

    def cached(self, tenant: str) -> Key | None:
        """Return the tenant's key for new data if it is cached."""
        until, key = self._newest.get(tenant, (0.0, None))
        return key if until > time.monotonic() else None

    def cached_by_id(self, key_id: UUID) -> Key | None:
        """Return a key by its id if it is cached."""
        until, key = self._by_id.get(key_id, (0.0, None))
        return key if until > time.monotonic() else None

    def for_writing(self, conn: Connection, tenant: str | None) -> Key:
        """Return the tenant's key for new data; the first use creates it.

        Args:
            conn: A transaction that writes.
            tenant: The tenant of the row, None for the system's.

        Raises:
            CannotDecrypt: no configured master key unwraps it.
        """
        name = tenant or NO_TENANT
        key = self.cached(name)
        if key is None:
            row = conn.fetchone(_NEWEST, {"of_tenant": name}) or _created(conn, name)
            key = _unwrapped(row)
            # Not before the commit: a key that was rolled back must not encrypt anything.
            conn.after_commit(partial(self._remember, key))
        return key

    def find(self, conn: Connection, key_id: UUID) -> Key | None:
        """Return the key of an envelope, or None if the database has no such key.

        Raises:
            KeyErased: the key was erased.
            CannotDecrypt: no configured master key unwraps it.
        """
        key = self.cached_by_id(key_id)
        if key is None:
            row = conn.fetchone(_BY_ID, {"id": key_id})
            if row is None:
                return None
            key = _unwrapped(row)
            _put(self._by_id, key_id, key)
        return key

    def forget(self, tenant: str) -> None:
        """Remove a tenant's keys from the cache."""
        self._newest.pop(tenant, None)
        for key_id in [each for each, (_, key) in self._by_id.items() if key.tenant == tenant]:
            del self._by_id[key_id]

    def _remember(self, key: Key) -> None:
        _put(self._newest, key.tenant, key)
        _put(self._by_id, key.id, key)


_of_databases: WeakKeyDictionary[Database, TenantKeys] = WeakKeyDictionary()


def of(database: Database) -> TenantKeys:
    """Return the cache of a database."""
    return _of_databases.setdefault(database, TenantKeys())


def current() -> TenantKeys:
    """Return the cache of the running platform's database; outside of it, an empty one."""
    try:
        return of(process.current().database)
    except NotStarted:
        return TenantKeys()


def erase_key(conn: Connection, tenant: str | None) -> int:
    """Erase all keys of a tenant, so that its encrypted data cannot be read again.

    The tenant's next data gets a new key. Other processes forget an erased key within
    `CACHE_SECONDS`. A backup holds the wrapped keys only if it was made together with them.

    Args:
        conn: A transaction that writes.
        tenant: The tenant, None for data without one.

    Returns:
        The number of erased keys.
    """
    name = tenant or NO_TENANT
    cache = current()
    cache.forget(name)
    conn.after_commit(partial(cache.forget, name))
    return erase_rows(conn, name)


def erase_rows(conn: Connection, name: str) -> int:
    """Erase the keys of a tenant in the database, for a command that works without the platform."""
    return conn.execute(_ERASE, {"of_tenant": name, "now": conn.now()})


_MASTERS = Prepared(select(_keys.master).where(_keys.erased_at.is_(None)).distinct())


def record_encrypted(conn: Connection) -> None:
    """Record that every row is encrypted: from now on plain ones are refused."""
    conn.execute(_SET_ENCRYPTED, {"since": conn.now().isoformat()})


def check(conn: Connection) -> None:
    """Check that the configured master keys unwrap every key of the database.

    Raises:
        CannotDecrypt: one is missing, or the keys themselves are.
    """
    found = {row["master"] for row in conn.fetchall(_MASTERS)}
    if None in found:
        raise CannotDecrypt(LEFT_OUT)
    missing = sorted(found - {master.fingerprint(each) for each in master.all_keys()})
    if missing:
        raise CannotDecrypt(
            f"The database is encrypted with the master key {', '.join(missing)} (a fingerprint), "
            "which is not configured. Set LANGGRAPH_AES_KEY to the key of its servers. After a "
            "change of the key, name the earlier one in OLD_AES_KEYS until `keys rotate` has run."
        )
    if not master.all_keys() and conn.scalar(_IS_ENCRYPTED) is not None:
        raise CannotDecrypt(
            "The database is encrypted: set LANGGRAPH_AES_KEY to the key of its servers"
        )


def _put(cache: dict[K, tuple[float, Key]], name: K, key: Key) -> None:
    if len(cache) >= CACHED:
        cache.clear()
    cache[name] = time.monotonic() + CACHE_SECONDS, key


def _created(conn: Connection, tenant: str) -> Row:
    newest = master.current()
    if newest is None:
        raise CannotDecrypt("LANGGRAPH_AES_KEY is not set, so no key can be made")
    key = Key.new(tenant)
    version = int(conn.scalar(_LAST_VERSION, {"of_tenant": tenant})) + 1
    conn.execute(_INSERT, row_of(key, version, newest, conn.now()))
    # Of several that created it at the same time, the first to commit has won.
    row = conn.fetchone(_NEWEST, {"of_tenant": tenant})
    if row is None:
        raise CannotDecrypt(f"The key of the tenant {tenant!r} was erased meanwhile: try again")
    return row


def row_of(key: Key, version: int, with_master: bytes, now: datetime) -> Row:
    """Return the row of `tenant_keys` that stores a key."""
    fingerprint, wrapped = master.wrap(key, with_master)
    return {
        "key_id": key.id,
        "tenant": key.tenant,
        "version": version,
        "wrapped": wrapped.hex(),
        "master": fingerprint,
        "created_at": now,
        "erased_at": None,
    }


def _unwrapped(row: Row) -> Key:
    if row["wrapped"] is None and row["erased_at"] is None:
        raise CannotDecrypt(LEFT_OUT)
    if row["wrapped"] is None:
        raise KeyErased(row["tenant"])
    key = Key(row["key_id"], row["tenant"], b"")
    unwrapped = master.unwrap(key, (row["master"], bytes.fromhex(row["wrapped"])))
    if unwrapped is None:
        raise CannotDecrypt(
            f"Stored data is encrypted with the master key {row['master']}, which is not "
            "configured: set LANGGRAPH_AES_KEY, or OLD_AES_KEYS after a rotation"
        )
    return unwrapped


def unwrapped(row: Row) -> Key:
    """Return the key that a row of `tenant_keys` stores.

    Raises:
        KeyErased: it was erased.
        CannotDecrypt: no configured master key unwraps it.
    """
    return _unwrapped(row)

"""Policies: row-level security, so that the database itself answers nothing across tenants.

They compare with settings that each transaction makes anew (`scope`), and hold for the owner
of the tables, too. Without a setting there are no rows. The settings are read in subqueries,
once a statement and not once a row.
"""

import hashlib
from functools import partial

from psycopg import sql

from langgraph_runtime_sql.database.postgres.engine import Raw
from langgraph_runtime_sql.database.postgres.lock_wait import (
    SHORT_LOCK_TIMEOUT,
    concurrently,
    retry_while_locked,
)

_EVERYTHING = "(SELECT current_setting('threadhold.everything', true)) = 'on'"
# At the end of a transaction a setting becomes the empty text, which is nobody.
_TENANT = "(SELECT nullif(current_setting('threadhold.tenant', true), ''))"
_NAMESPACE = "(SELECT nullif(current_setting('threadhold.namespace', true), ''))"

# CASE and not OR, of which the planner would think that it leaves next to nothing.
_OF_TENANT = f"CASE WHEN {_EVERYTHING} THEN true ELSE tenant = {_TENANT} END"
_OF_NAMESPACE = (
    f"CASE WHEN {_EVERYTHING} THEN true ELSE split_part(prefix, '.', 1) = {_NAMESPACE} END"
)
# One thread is looked up for each row. A subquery with EXISTS might read all threads instead.
_UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_OF_THREAD = f"""CASE WHEN {_EVERYTHING} THEN true WHEN THIS.thread_id ~ '{_UUID}' THEN (
    SELECT tenant FROM threads WHERE threads.thread_id = THIS.thread_id::uuid
) = {_TENANT} END"""
# The server makes these of its graphs: for every tenant to use, and for none to change.
_SYSTEMS = f"{_TENANT} IS NOT NULL AND tenant IS NULL AND metadata ->> 'created_by' = 'system'"

Policy = tuple[str, str, str]
"""Name, the command that it is for, and which rows it admits."""


def _whose(condition: str) -> tuple[Policy, ...]:
    return (("tenants", "ALL", condition),)


_OWN_OR_SYSTEMS = (*_whose(_OF_TENANT), ("systems", "SELECT", _SYSTEMS))

POLICIES: dict[str, tuple[Policy, ...]] = {
    **dict.fromkeys(("threads", "thread_labels", "runs", "crons"), _whose(_OF_TENANT)),
    **dict.fromkeys(("assistants", "assistant_versions"), _OWN_OR_SYSTEMS),
    **{
        table: _whose(_OF_THREAD.replace("THIS", table))
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "run_writes")
    },
    **dict.fromkeys(("store", "store_vectors"), _whose(_OF_NAMESPACE)),
}
"""By table; those that are not there have none."""

# A tenant's labels without a walk through those of others, which the policy would hide one by one.
_INDEX = """
    CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_thread_labels_tenant
    ON thread_labels (key, value, tenant, period, thread_id) WHERE tenant IS NOT NULL
"""
_SEEN = """
    SELECT relname, CASE WHEN relrowsecurity AND relforcerowsecurity THEN (
        SELECT obj_description(pg_policy.oid, 'pg_policy') FROM pg_policy
        WHERE polrelid = pg_class.oid AND polname = 'tenants'
    ) END
    FROM pg_class WHERE oid = ANY(ARRAY(
        SELECT to_regclass(name)::oid FROM unnest(%s::text[]) AS name
    ))
"""


def ensure(raw: Raw) -> None:
    """Give each table its policies, where it has others or none, and what makes them cheap.

    Args:
        raw: A connection outside any transaction. Each table is changed in one of its own,
            because for that it has to be locked.
    """
    seen = dict(raw.execute(_SEEN, (list(POLICIES),)).fetchall())
    # Outside of transactions, so that others may write meanwhile.
    concurrently(raw, _INDEX)
    for table, found in seen.items():
        digest = hashlib.blake2b(repr(POLICIES[table]).encode(), digest_size=8).hexdigest()
        if found != digest:
            retry_while_locked(raw, partial(_secure, raw, table, digest))


def _secure(raw: Raw, table: str, digest: str) -> None:
    with raw.transaction():
        raw.execute(SHORT_LOCK_TIMEOUT)
        _change(raw, table, digest)


def _change(raw: Raw, table: str, digest: str) -> None:
    name = sql.Identifier(table)
    for change in ("ENABLE", "FORCE"):
        raw.execute(sql.SQL(f"ALTER TABLE {{}} {change} ROW LEVEL SECURITY").format(name))
    for policy, command, condition in POLICIES[table]:
        raw.execute(sql.SQL(f"DROP POLICY IF EXISTS {policy} ON {{}}").format(name))
        made = sql.SQL(f"CREATE POLICY {policy} ON {{}} FOR {command} USING ").format(name)
        raw.execute(made + sql.SQL(f"({condition})"))
    raw.execute(sql.SQL("COMMENT ON POLICY tenants ON {} IS {}").format(name, sql.Literal(digest)))

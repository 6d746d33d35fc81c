"""Policies: row-level security, so that the database itself separates tenants.

They compare rows with settings that each transaction sets (`scope`), and bind the owner of the
tables too. Without a setting no row is visible. Subqueries read the settings once for each
statement, not for each row.
"""

import hashlib
from functools import partial

from psycopg import sql

from langgraph_runtime_sql.database.postgres.engine import Raw
from langgraph_runtime_sql.database.postgres.lock_wait import concurrently, transaction
from langgraph_runtime_sql.database.schema import (
    partitions,
    run_writes,
    thread_checkpoints,
    thread_writes,
)

_EVERYTHING = "(SELECT current_setting('threadhold.everything', true)) = 'on'"
# After a transaction a setting is the empty text, which names no tenant.
_TENANT = "(SELECT nullif(current_setting('threadhold.tenant', true), ''))"
_NAMESPACE = "(SELECT nullif(current_setting('threadhold.namespace', true), ''))"

# CASE, because the planner would estimate that OR leaves almost no rows.
_OF_TENANT = f"CASE WHEN {_EVERYTHING} THEN true ELSE tenant = {_TENANT} END"
_OF_NAMESPACE = (
    f"CASE WHEN {_EVERYTHING} THEN true ELSE split_part(prefix, '.', 1) = {_NAMESPACE} END"
)
# A look-up of one thread for each row. A subquery with EXISTS might read all threads.
# Only ids that are no UUIDs are longer than 16 bytes.
_OF_THREAD = f"""CASE WHEN {_EVERYTHING} THEN true WHEN octet_length(THIS.thread_id) = 16 THEN (
    SELECT tenant FROM threads WHERE threads.thread_id = encode(THIS.thread_id, 'hex')::uuid
) = {_TENANT} END"""
# The server creates these for its graphs. Every tenant may read them, and none may change them.
_SYSTEMS = f"{_TENANT} IS NOT NULL AND tenant IS NULL AND metadata ->> 'created_by' = 'system'"

# Every tenant may use the keys of data that was encrypted before it had a tenant.
_WITHOUT_TENANT = f"{_TENANT} IS NOT NULL AND tenant = ''"

Policy = tuple[str, str, str]
"""A name, a command and the condition of the rows that it may touch."""


def _for_all(condition: str) -> tuple[Policy, ...]:
    return (("tenants", "ALL", condition),)


_OWN_OR_SYSTEMS = (*_for_all(_OF_TENANT), ("systems", "SELECT", _SYSTEMS))

POLICIES: dict[str, tuple[Policy, ...]] = {
    **dict.fromkeys(
        (
            "threads",
            "thread_labels",
            "runs",
            "crons",
            "webhooks",
            "effects",
            "idempotency_keys",
            "revocations",
            "audit_entries",
            "tenant_runs",
            "limit_usage",
            "stored_bytes",
            "event_segments",
        ),
        _for_all(_OF_TENANT),
    ),
    **dict.fromkeys(("assistants", "assistant_versions"), _OWN_OR_SYSTEMS),
    "tenant_keys": (*_for_all(_OF_TENANT), ("shared", "SELECT", _WITHOUT_TENANT)),
    **{
        name: _for_all(_OF_THREAD.replace("THIS", name))
        for table in (thread_checkpoints, thread_writes, run_writes)
        # A query that names a partition passes by the policies of the whole table.
        for name in (table.name, *partitions(table))
    },
    **dict.fromkeys(("store", "store_vectors"), _for_all(_OF_NAMESPACE)),
}
"""The policies of each table."""

# Finds a tenant's labels without those of others, which the policy would hide one by one.
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
    """Create the policies of each table if they differ from `POLICIES`, and their index.

    Args:
        raw: A connection outside any transaction. Each table, which its change locks, gets a
            transaction of its own.
    """
    seen = dict(raw.execute(_SEEN, (list(POLICIES),)).fetchall())
    # Outside of transactions, so that others can write meanwhile.
    concurrently(raw, _INDEX)
    for table, found in seen.items():
        digest = hashlib.blake2b(repr(POLICIES[table]).encode(), digest_size=8).hexdigest()
        if found != digest:
            transaction(raw, partial(_change, raw, table, digest))


def _change(raw: Raw, table: str, digest: str) -> None:
    name = sql.Identifier(table)
    for change in ("ENABLE", "FORCE"):
        raw.execute(sql.SQL(f"ALTER TABLE {{}} {change} ROW LEVEL SECURITY").format(name))
    for policy, command, condition in POLICIES[table]:
        raw.execute(sql.SQL(f"DROP POLICY IF EXISTS {policy} ON {{}}").format(name))
        made = sql.SQL(f"CREATE POLICY {policy} ON {{}} FOR {command} USING ").format(name)
        raw.execute(made + sql.SQL(f"({condition})"))
    raw.execute(sql.SQL("COMMENT ON POLICY tenants ON {} IS {}").format(name, sql.Literal(digest)))

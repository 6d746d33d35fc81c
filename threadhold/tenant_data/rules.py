"""Rules: which rows of each table are a tenant's, and what an erase does with them.

A new table of the runtime needs a line here, and one of an application a declaration
(`threadhold.tables`). Without it, exports and erases refuse, and `tests/integration/tenant_data` fails.
"""

from dataclasses import dataclass
from typing import Literal

from threadhold.tables import Tables

TENANT = "tenant = :tenant"
# The tables of checkpoints hold the bytes of ids; `Transaction.execute` writes their digits.
OF_THREAD = (
    "HEX_OF_ID IN (SELECT replace(CAST(threads.thread_id AS TEXT), '-', '') FROM threads"
    " WHERE threads.tenant = :tenant)"
)
# Namespaces are joined by periods, and a label holds none.
NAMESPACE = (
    "(prefix = CAST(:label AS TEXT) OR substr(prefix, 1, length(CAST(:label AS TEXT)) + 1)"
    " = CAST(:label AS TEXT) || '.')"
)
NO_ROWS = ""
"""The condition of a table without rows of tenants."""


@dataclass(frozen=True)
class Rule:
    """The rows of a tenant in one table.

    Args:
        table: The table.
        where: SQL condition with the parameters `:tenant` and `:label`; `NO_ROWS` if it has none.
        erase: `delete` the rows, `empty` their columns about persons (of the audit log), or `shred`
            the tenant's keys, whose rows stay so that a restored key file does not bring them back.
        export: Whether an export contains the rows; derived and secret ones are left out.
        files: A column with paths of files; an export copies them. A path that is not absolute is only
            a name, and no file.
        guard: The setting that lets a trigger of the table accept the deletions of a tenant, whose
            name is its value: a row of `facts` on SQLite, `threadhold.<guard>` on Postgres.
        rebuild: SQL to execute after the deletions, for an index in tables that keeps deleted words.
    """

    table: str
    where: str
    erase: Literal["delete", "empty", "shred"] = "delete"
    export: bool = True
    files: str | None = None
    guard: str | None = None
    rebuild: str | None = None


def rules_of(tables: Tables) -> list[Rule]:
    """Return the rules of an application's tables, dependent tables first."""
    found = dict(tables.declarations())
    rules = [Rule(tables.versions, NO_ROWS)]
    for table in reversed(tables.metadata.sorted_tables):
        of = found[table]
        rules += [
            Rule(each.name, _of_tenant(each.tenant), export=False, rebuild=each.rebuild)
            for each in of.derived
        ]
        where = _of_tenant(of.tenant)
        rules.append(Rule(table.name, where, export=of.export, files=of.files, guard=of.guard))
    return rules


def _of_tenant(column: str | None) -> str:
    return NO_ROWS if column is None else f"{column} = :tenant"


RUNTIME: tuple[Rule, ...] = (
    # Dependent tables first: an erase goes in this order.
    Rule("event_segments", TENANT),
    Rule("run_writes", OF_THREAD),
    Rule("thread_writes", OF_THREAD),
    Rule("thread_checkpoints", OF_THREAD),
    # An index of the threads' metadata.
    Rule("thread_labels", TENANT, export=False),
    Rule("runs", TENANT),
    Rule("tenant_runs", TENANT, export=False),
    Rule("crons", TENANT),
    Rule("webhooks", TENANT),
    Rule("effects", TENANT),
    Rule("idempotency_keys", TENANT, export=False),
    Rule("threads", TENANT),
    Rule("assistant_versions", TENANT),
    Rule("assistants", TENANT),
    Rule("store_vectors", NAMESPACE, export=False),
    Rule("store", NAMESPACE),
    Rule("revocations", TENANT),
    Rule("limit_usage", TENANT, export=False),
    Rule("stored_bytes", TENANT, export=False),
    Rule("tenant_keys", TENANT, erase="shred", export=False),
    # The chain stays, so that it still verifies.
    Rule("audit_entries", TENANT, erase="empty"),
    *(
        Rule(table, NO_ROWS)
        for table in (
            *("alembic_version", "facts", "store_migrations"),
            *("vector_migrations", "sqlite_sequence"),
        )
    ),
)
"""The rules of the runtime's tables and those of langgraph's stores."""

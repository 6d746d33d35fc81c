"""Triggers: labels follow their thread's last update, and counters their tenant's running runs.

They work whichever process changes the rows.
"""

from typing import Any

from langgraph_runtime_sql.database.schema import PERIOD_SECONDS
from langgraph_runtime_sql.statuses import RunStatus

_NAME = "thread_periods"

_IN_SQLITE = f"""
CREATE TRIGGER IF NOT EXISTS {_NAME} AFTER UPDATE OF updated_at ON threads
WHEN NEW.updated_at / {PERIOD_SECONDS}000000 <> OLD.updated_at / {PERIOD_SECONDS}000000
BEGIN
    UPDATE thread_labels SET period = NEW.updated_at / {PERIOD_SECONDS}000000
    WHERE thread_id = NEW.thread_id;
END
"""

_FUNCTION = f"""
CREATE OR REPLACE FUNCTION {_NAME}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE thread_labels
    SET period = floor(extract(epoch FROM NEW.updated_at) / {PERIOD_SECONDS})
    WHERE thread_id = NEW.thread_id;
    RETURN NULL;
END $$
"""
_IN_POSTGRES = f"""
CREATE TRIGGER {_NAME} AFTER UPDATE OF updated_at ON threads FOR EACH ROW
WHEN (floor(extract(epoch FROM NEW.updated_at) / {PERIOD_SECONDS})
    <> floor(extract(epoch FROM OLD.updated_at) / {PERIOD_SECONDS}))
EXECUTE FUNCTION {_NAME}()
"""

_COUNT = "count_runs"


def _counts(of: str) -> str:
    """Return the condition for a row that is counted: a running run with a tenant."""
    return f"({of}.status = '{RunStatus.RUNNING}' AND {of}.tenant IS NOT NULL)"


_LESS = "UPDATE tenant_runs SET running = running - 1 WHERE tenant = OLD.tenant"
_MORE = """
INSERT INTO tenant_runs (tenant, running) SELECT NEW.tenant, 1 WHERE {condition}
ON CONFLICT (tenant) DO UPDATE SET running = tenant_runs.running + 1
"""
# The event, the condition, and what changes. Runs without a tenant meet no condition.
_COUNTED = (
    ("insert", "INSERT", _counts("NEW"), (_MORE.format(condition="true"),)),
    ("delete", "DELETE", _counts("OLD"), (_LESS,)),
    (
        "update",
        "UPDATE OF status, tenant",
        f"{_counts('OLD')} <> {_counts('NEW')} OR {_counts('OLD')} AND OLD.tenant <> NEW.tenant",
        (f"{_LESS} AND {_counts('OLD')}", _MORE.format(condition=_counts("NEW"))),
    ),
)
# Deferred: only a claim holds the row of a tenant longer than its commit takes. The setting: a
# transaction of one tenant may delete a thread with runs of another.
_COUNT_FUNCTION = """
CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    everything text := coalesce(current_setting('threadhold.everything', true), '');
BEGIN
    PERFORM set_config('threadhold.everything', 'on', true);
    {body};
    PERFORM set_config('threadhold.everything', everything, true);
    RETURN NULL;
END $$
"""
_COUNT_IN_POSTGRES = """
CREATE CONSTRAINT TRIGGER {name} AFTER {event} ON runs DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {name}()
"""


def ensure(raw: Any) -> None:
    """Create the missing triggers through a driver's connection to SQLite."""
    raw.execute(_IN_SQLITE)
    for name, event, condition, changes in _COUNTED:
        raw.execute(
            f"CREATE TRIGGER IF NOT EXISTS {_COUNT}_{name} AFTER {event} ON runs"
            f" WHEN {condition} BEGIN {'; '.join(changes)}; END"
        )


def ensure_postgres(raw: Any) -> None:
    """Create the missing triggers in Postgres.

    Args:
        raw: The driver's connection, in a transaction.
    """
    raw.execute(_FUNCTION)
    if not _is_known(raw, _NAME):
        raw.execute(_IN_POSTGRES)
    for each, event, condition, changes in _COUNTED:
        name = f"{_COUNT}_{each}"
        raw.execute(_COUNT_FUNCTION.format(name=name, body=";\n".join(changes)))
        if not _is_known(raw, name):
            raw.execute(_COUNT_IN_POSTGRES.format(name=name, event=event, condition=condition))


def _is_known(raw: Any, name: str) -> bool:
    """Return whether a trigger exists: replacing one would wait for the users of its table."""
    found = raw.execute("SELECT 1 FROM pg_trigger WHERE tgname = %s", (name,)).fetchone()
    return found is not None

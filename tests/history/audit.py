"""The audit: every change as Postgres itself saw it, written by the test's own triggers.

The audit trusts neither the servers nor their tables. A setting of each process's connections
says which process writes. The numbers follow the order of the changes, because a change gets its
number while its row is locked. An administrator owns the triggers, so the servers cannot write
here.
"""

from dataclasses import dataclass
from typing import Literal

import psycopg
from psycopg.rows import dict_row

from langgraph_runtime_sql import patches
from langgraph_runtime_sql.checkpoint import reading

_INSTALL = """
CREATE TABLE history_audit (
    number BIGSERIAL PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL DEFAULT extract(epoch FROM clock_timestamp()),
    by TEXT NOT NULL DEFAULT coalesce(current_setting('history.process', true), '0'),
    what TEXT NOT NULL,
    thread TEXT NOT NULL,
    run TEXT,
    was TEXT,
    status TEXT,
    attempt INTEGER,
    owner TEXT,
    cancelled BOOLEAN NOT NULL DEFAULT false,
    channel TEXT,
    tag TEXT,
    strategy TEXT,
    id BYTEA,
    base BYTEA,
    kind TEXT,
    value BYTEA
);

CREATE FUNCTION history_run() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO history_audit (what, thread, run, was, attempt, owner)
        VALUES ('run', OLD.thread_id, OLD.run_id, OLD.status, OLD.attempt, OLD.claimed_by);
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO history_audit (what, thread, run, status, attempt, tag, strategy)
        VALUES ('run', NEW.thread_id, NEW.run_id, NEW.status, NEW.attempt,
            NEW.metadata ->> 'tag', NEW.multitask_strategy);
    ELSE
        INSERT INTO history_audit (what, thread, run, was, status, attempt, owner, cancelled)
        VALUES ('run', NEW.thread_id, NEW.run_id, OLD.status, NEW.status, NEW.attempt,
            coalesce(NEW.claimed_by, OLD.claimed_by), NEW.cancel_action IS NOT NULL);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER history_run AFTER INSERT OR DELETE OR UPDATE OF status, attempt, claimed_by
ON runs FOR EACH ROW EXECUTE FUNCTION history_run();

CREATE FUNCTION history_checkpoint() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO history_audit (what, thread, id, base, kind, value)
    VALUES ('checkpoint', encode(NEW.thread_id, 'hex')::uuid::text,
        convert_to(NEW.checkpoint_ns, 'UTF8') || '\\x00' || NEW.checkpoint_id,
        convert_to(NEW.checkpoint_ns, 'UTF8') || '\\x00' || NEW.base_id, NEW.type, NEW.value);
    RETURN NULL;
END $$;

-- An update makes a patch against another base of the same bytes.
CREATE TRIGGER history_checkpoint AFTER INSERT
ON thread_checkpoints FOR EACH ROW EXECUTE FUNCTION history_checkpoint();

CREATE FUNCTION history_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO history_audit (what, thread, channel)
    VALUES ('write', encode(NEW.thread_id, 'hex')::uuid::text, NEW.channel);
    RETURN NULL;
END $$;

CREATE TRIGGER history_write AFTER INSERT OR UPDATE
ON thread_writes FOR EACH ROW EXECUTE FUNCTION history_write();
"""


@dataclass(frozen=True)
class Change:
    """One change of a run, or a checkpoint or write that was stored.

    Attributes:
        number: Its place in the order of the changes.
        at: Its time, in seconds since 1970.
        by: The process that made it.
        was: The run's status before; None when it was created.
        status: The run's status after; None when it was deleted.
        owner: The process that had claimed the run, before or after.
        cancelled: Whether the run has been told to stop.
        channel: The channel of a write.
        tag: The tag that the client gave to a new run.
        strategy: The multitask strategy of a new run.
    """

    number: int
    at: float
    by: str
    what: Literal["run", "checkpoint", "write"]
    thread: str
    run: str | None = None
    was: str | None = None
    status: str | None = None
    attempt: int | None = None
    owner: str | None = None
    cancelled: bool = False
    channel: str | None = None
    tag: str | None = None
    strategy: str | None = None

    def __str__(self) -> str:
        if self.what == "run":
            change = f"run {self.run} attempt {self.attempt} {self.was} -> {self.status}"
        elif self.what == "write":
            change = f"write to {self.channel}"
        else:
            change = f"{self.what} of run {self.run} attempt {self.attempt}"
        return f"[{self.number}] {change} on thread {self.thread} by process {self.by}"


def install(dsn: str) -> None:
    """Install the triggers that record every change."""
    with psycopg.connect(dsn, autocommit=True) as raw:
        raw.execute(_INSTALL)


def changes(dsn: str) -> list[Change]:
    """Return the recorded changes, in order."""
    with psycopg.connect(dsn, row_factory=dict_row) as raw:
        found = raw.execute("SELECT * FROM history_audit ORDER BY number").fetchall()
    plain: dict[tuple[str, bytes], bytes] = {}
    for each in found:
        key, base, kind, value = (each.pop(name) for name in ("id", "base", "kind", "value"))
        if each["what"] == "checkpoint":
            if kind != reading.KIND:
                value = patches.expanded(
                    value, None if base is None else plain[each["thread"], base]
                )
            plain[each["thread"], key] = value
            about, _ = reading.unpacked(value)
            each |= {"run": about.get("run_id"), "attempt": about.get("run_attempt")}
    return [Change(**each) for each in found]

"""Audit: what Postgres itself saw of every change, written by triggers of the test's own.

The word of neither the servers nor their tables counts here. Who writes is said by a setting
of each process's connections, and the numbers follow the order of the changes: a change is
numbered while its row is locked. The triggers are an administrator's: the servers may not write
here.
"""

from dataclasses import dataclass
from typing import Literal

import psycopg
from psycopg.rows import class_row

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
    strategy TEXT
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
    INSERT INTO history_audit (what, thread, run, attempt)
    VALUES ('checkpoint', NEW.thread_id, NEW.metadata ->> 'run_id',
        (NEW.metadata ->> 'run_attempt')::integer);
    RETURN NULL;
END $$;

CREATE TRIGGER history_checkpoint AFTER INSERT OR UPDATE
ON checkpoints FOR EACH ROW EXECUTE FUNCTION history_checkpoint();

CREATE FUNCTION history_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO history_audit (what, thread, channel)
    VALUES ('write', NEW.thread_id, NEW.channel);
    RETURN NULL;
END $$;

CREATE TRIGGER history_write AFTER INSERT OR UPDATE
ON checkpoint_writes FOR EACH ROW EXECUTE FUNCTION history_write();
"""


@dataclass(frozen=True)
class Change:
    """One change of a run, or a checkpoint or write that was stored.

    Attributes:
        number: In the order of the changes.
        at: When, in seconds since 1970.
        by: The process that made it.
        was: A run's status before; None when it was made.
        status: And after; None when it was deleted.
        owner: Who had claimed the run, before or after.
        cancelled: Whether the run has been told to stop.
        channel: What a write is for.
        tag: What its maker calls a run that is made.
        strategy: And what it wants done to those before it.
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
    """Have every change noted from now on."""
    with psycopg.connect(dsn, autocommit=True) as raw:
        raw.execute(_INSTALL)


def changes(dsn: str) -> list[Change]:
    """What was noted, in order."""
    with psycopg.connect(dsn, row_factory=class_row(Change)) as raw:
        return raw.execute("SELECT * FROM history_audit ORDER BY number").fetchall()

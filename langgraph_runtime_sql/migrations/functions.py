"""Functions in Postgres: `filter_allows` of `filters`, and the check of a run's claim.

It has the same name and meaning as in SQLite: it returns 1 or 0, and fails for an invalid filter. Each
start replaces all functions, so a change must suit processes of older versions.
"""

from typing import Any

from langgraph_runtime_sql.errors import SupersededAttempt
from langgraph_runtime_sql.statuses import RunStatus

_FILTER_ALLOWS = """
CREATE OR REPLACE FUNCTION filter_allows(filters jsonb, metadata jsonb) RETURNS integer
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    entry record;
    operation record;
    stored jsonb;
BEGIN
    FOR entry IN SELECT key, value FROM jsonb_each(filters) LOOP
        stored := coalesce(metadata, '{}') -> entry.key;
        IF entry.key = '$or' THEN
            IF NOT EXISTS (
                SELECT FROM jsonb_array_elements(entry.value) AS part
                WHERE filter_allows(part, metadata) = 1
            ) THEN
                RETURN 0;
            END IF;
        ELSIF entry.key = '$and' THEN
            IF EXISTS (
                SELECT FROM jsonb_array_elements(entry.value) AS part
                WHERE filter_allows(part, metadata) = 0
            ) THEN
                RETURN 0;
            END IF;
        ELSIF starts_with(entry.key, '$') THEN
            RAISE EXCEPTION 'unknown operator %', entry.key;
        ELSIF jsonb_typeof(entry.value) = 'object' AND EXISTS (
            SELECT FROM jsonb_object_keys(entry.value) AS name WHERE starts_with(name, '$')
        ) THEN
            FOR operation IN SELECT key, value FROM jsonb_each(entry.value) LOOP
                IF operation.key = '$eq' THEN
                    IF stored IS DISTINCT FROM operation.value THEN
                        RETURN 0;
                    END IF;
                ELSIF operation.key = '$contains' THEN
                    IF stored IS NULL OR jsonb_typeof(stored) <> 'array' OR EXISTS (
                        SELECT FROM jsonb_array_elements(
                            CASE jsonb_typeof(operation.value) WHEN 'array' THEN operation.value
                            ELSE jsonb_build_array(operation.value) END
                        ) AS item
                        WHERE item NOT IN (SELECT jsonb_array_elements(stored))
                    ) THEN
                        RETURN 0;
                    END IF;
                ELSE
                    RAISE EXCEPTION 'unknown operator %', operation.key;
                END IF;
            END LOOP;
        ELSIF stored IS DISTINCT FROM entry.value THEN
            RETURN 0;
        END IF;
    END LOOP;
    RETURN 1;
END $$
"""

# Fails if the attempt does not own its run; the server then skips the rest of the pipeline.
# The lock keeps other processes from taking the run over before the commit.
_HOLD_RUN = f"""
CREATE OR REPLACE FUNCTION hold_run(run uuid, held integer, owner text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM runs
    WHERE run_id = run AND attempt = held AND status = '{RunStatus.RUNNING}'
        AND (owner IS NULL OR claimed_by = owner)
    FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '{SupersededAttempt.SQLSTATE}', MESSAGE = format(
            'Attempt %s of run %s no longer owns the run: it has ended, or another attempt has '
            'taken over.', held, run
        );
    END IF;
END $$
"""


def ensure(raw: Any) -> None:
    """Create or replace the functions through a driver's connection to Postgres."""
    for statement in (_FILTER_ALLOWS, _HOLD_RUN):
        raw.execute(statement)

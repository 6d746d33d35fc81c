"""Create the tables of the diagnosis, and the triggers that keep its events as they are."""

import sqlalchemy as sa
from alembic import op

from threadhold.tables import secure

revision = "diagnosis_0001"
down_revision = None
branch_labels = ("diagnosis",)

_FOLLOWS = "a diagnosis event must follow the one before it"
_FIXED = "diagnosis events are never changed"
_SAME = "tenant_id = NEW.tenant_id AND session_id = NEW.session_id"
# The setting of an erase; the deletion of a tenant's rows is the one exception.
_ERASED = "diagnosis_erase_tenant"

_SQLITE = (
    # The second EXISTS refuses INSERT OR REPLACE, which would delete without a trigger.
    f"""
    CREATE TRIGGER diagnosis_events_insert BEFORE INSERT ON diagnosis_events
    WHEN NEW.seq < 1 OR EXISTS (
        SELECT 1 FROM diagnosis_events WHERE {_SAME} AND seq = NEW.seq
    ) OR NEW.seq > 1 AND NOT EXISTS (
        SELECT 1 FROM diagnosis_events
        WHERE {_SAME} AND seq = NEW.seq - 1 AND at <= NEW.at AND hash = NEW.previous
    )
    BEGIN SELECT RAISE(ABORT, '{_FOLLOWS}'); END
    """,
    f"""
    CREATE TRIGGER diagnosis_events_update BEFORE UPDATE ON diagnosis_events
    BEGIN SELECT RAISE(ABORT, '{_FIXED}'); END
    """,
    # `facts` is a table of the server.
    f"""
    CREATE TRIGGER diagnosis_events_delete BEFORE DELETE ON diagnosis_events
    WHEN NOT EXISTS (
        SELECT 1 FROM facts WHERE name = '{_ERASED}' AND value = OLD.tenant_id
    )
    BEGIN SELECT RAISE(ABORT, '{_FIXED}'); END
    """,
)
_POSTGRES = (
    f"""
    CREATE FUNCTION diagnosis_events_follow() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE before record;
    BEGIN
        -- By the primary key alone: another condition would make another index look as good.
        SELECT at, hash INTO before FROM diagnosis_events WHERE {_SAME} AND seq = NEW.seq - 1;
        IF NEW.seq < 1 OR NEW.seq > 1 AND (
            before.at IS NULL OR before.at > NEW.at OR before.hash <> NEW.previous
        ) THEN
            RAISE EXCEPTION '{_FOLLOWS}' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    f"""
    CREATE FUNCTION diagnosis_events_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF OLD.tenant_id = nullif(current_setting('threadhold.{_ERASED}', true), '') THEN
                RETURN OLD;
            END IF;
        END IF;
        RAISE EXCEPTION '{_FIXED}' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE TRIGGER diagnosis_events_insert BEFORE INSERT ON diagnosis_events FOR EACH ROW
    EXECUTE FUNCTION diagnosis_events_follow()
    """,
    """
    CREATE TRIGGER diagnosis_events_change BEFORE UPDATE OR DELETE ON diagnosis_events
    FOR EACH ROW EXECUTE FUNCTION diagnosis_events_fixed()
    """,
    """
    CREATE TRIGGER diagnosis_events_truncate BEFORE TRUNCATE ON diagnosis_events
    FOR EACH STATEMENT EXECUTE FUNCTION diagnosis_events_fixed()
    """,
)


def upgrade() -> None:
    op.create_table(
        "diagnosis_events",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("command", sa.Text(), nullable=True),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session_id", "seq"),
    )
    op.create_index(
        "ix_diagnosis_events_command",
        "diagnosis_events",
        ["command", "tenant_id", "session_id"],
        sqlite_where=sa.text("command IS NOT NULL"),
        postgresql_where=sa.text("command IS NOT NULL"),
    )
    op.create_table(
        "diagnosis_sessions",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("fold", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("event_hash", sa.Text(), nullable=False),
        sa.Column("checksum", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session_id", "seq"),
    )
    connection = op.get_bind()
    for statement in _SQLITE if connection.dialect.name == "sqlite" else _POSTGRES:
        connection.exec_driver_sql(statement)
    secure(connection, "diagnosis_events", "diagnosis_sessions")

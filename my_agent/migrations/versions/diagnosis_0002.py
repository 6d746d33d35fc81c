"""Keep the texts of sources in pieces that never change, their digests, and hashes of states."""

import sqlalchemy as sa
from alembic import op

from threadhold.tables import secure

revision = "diagnosis_0002"
down_revision = "diagnosis_0001"

_FOLLOWS = "a piece of a diagnosis text must follow the one before it"
_FIXED = "diagnosis texts are never changed"
_SAME = "tenant_id = NEW.tenant_id AND session_id = NEW.session_id AND source_id = NEW.source_id"
# The setting of an erase; the deletion of a tenant's rows is the one exception.
_ERASED = "diagnosis_erase_tenant"

_SQLITE = (
    # The length of a text would read it. The first EXISTS refuses INSERT OR REPLACE, which would delete without a trigger.
    f"""
    CREATE TRIGGER diagnosis_texts_insert BEFORE INSERT ON diagnosis_texts
    WHEN NEW.number < 0 OR EXISTS (
        SELECT 1 FROM diagnosis_texts WHERE {_SAME} AND number = NEW.number
    ) OR NEW.number > 0 AND NOT EXISTS (
        SELECT 1 FROM diagnosis_texts
        WHERE {_SAME} AND number = NEW.number - 1 AND start + chars = NEW.start
    )
    BEGIN SELECT RAISE(ABORT, '{_FOLLOWS}'); END
    """,
    f"""
    CREATE TRIGGER diagnosis_texts_update BEFORE UPDATE ON diagnosis_texts
    BEGIN SELECT RAISE(ABORT, '{_FIXED}'); END
    """,
    # `facts` is a table of the server.
    f"""
    CREATE TRIGGER diagnosis_texts_delete BEFORE DELETE ON diagnosis_texts
    WHEN NOT EXISTS (
        SELECT 1 FROM facts WHERE name = '{_ERASED}' AND value = OLD.tenant_id
    )
    BEGIN SELECT RAISE(ABORT, '{_FIXED}'); END
    """,
)
_POSTGRES = (
    f"""
    CREATE FUNCTION diagnosis_texts_follow() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE next bigint;
    BEGIN
        SELECT start + chars INTO next FROM diagnosis_texts
        WHERE {_SAME} AND number = NEW.number - 1;
        IF NEW.number < 0 OR NEW.number > 0 AND next IS DISTINCT FROM NEW.start THEN
            RAISE EXCEPTION '{_FOLLOWS}' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    f"""
    CREATE FUNCTION diagnosis_texts_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
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
    CREATE TRIGGER diagnosis_texts_insert BEFORE INSERT ON diagnosis_texts FOR EACH ROW
    EXECUTE FUNCTION diagnosis_texts_follow()
    """,
    """
    CREATE TRIGGER diagnosis_texts_change BEFORE UPDATE OR DELETE ON diagnosis_texts
    FOR EACH ROW EXECUTE FUNCTION diagnosis_texts_fixed()
    """,
    """
    CREATE TRIGGER diagnosis_texts_truncate BEFORE TRUNCATE ON diagnosis_texts
    FOR EACH STATEMENT EXECUTE FUNCTION diagnosis_texts_fixed()
    """,
)


def upgrade() -> None:
    # Processes of the previous version write rows without it.
    op.add_column("diagnosis_events", sa.Column("state_hash", sa.Text(), nullable=True))
    op.create_table(
        "diagnosis_texts",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("chars", sa.Integer(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session_id", "source_id", "number"),
    )
    op.create_table(
        "diagnosis_digests",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("reader", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "session_id", "source_id", "reader"),
    )
    connection = op.get_bind()
    for statement in _SQLITE if connection.dialect.name == "sqlite" else _POSTGRES:
        connection.exec_driver_sql(statement)
    secure(connection, "diagnosis_texts", "diagnosis_digests")

"""Create the first schema."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "assistants",
        sa.Column("assistant_id", schema.Id(), nullable=False),
        sa.Column("graph_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("config", schema.Json(), nullable=False),
        sa.Column("context", schema.Json(), nullable=False),
        sa.Column("metadata", schema.Json(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.Column("updated_at", schema.Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint("assistant_id", name=op.f("pk_assistants")),
    )
    op.create_index(op.f("ix_assistants_created_at"), "assistants", ["created_at"], unique=False)
    op.create_index(op.f("ix_assistants_graph_id"), "assistants", ["graph_id"], unique=False)
    op.create_table(
        "threads",
        sa.Column("thread_id", schema.Id(), nullable=False),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.Column("updated_at", schema.Timestamp(), nullable=False),
        sa.Column("state_updated_at", schema.Timestamp(), nullable=False),
        sa.Column("metadata", schema.Json(), nullable=False),
        sa.Column("config", schema.Json(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("resting_status", sa.Text(), server_default="idle", nullable=False),
        sa.Column("values", schema.Json(), nullable=True),
        sa.Column("interrupts", schema.Json(), nullable=False),
        sa.Column("error", schema.Json(), nullable=True),
        sa.Column("ttl_strategy", sa.Text(), nullable=True),
        sa.Column("ttl_minutes", sa.Float(), nullable=True),
        sa.Column("expires_at", schema.Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint("thread_id", name=op.f("pk_threads")),
    )
    op.create_index(op.f("ix_threads_created_at"), "threads", ["created_at"], unique=False)
    op.create_index(
        "ix_threads_expires_at",
        "threads",
        ["expires_at"],
        unique=False,
        sqlite_where=sa.text("expires_at IS NOT NULL"),
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.create_index(
        op.f("ix_threads_state_updated_at"), "threads", ["state_updated_at"], unique=False
    )
    op.create_index(
        op.f("ix_threads_status_updated_at"), "threads", ["status", "updated_at"], unique=False
    )
    op.create_index(op.f("ix_threads_updated_at"), "threads", ["updated_at"], unique=False)
    op.create_table(
        "assistant_versions",
        sa.Column("assistant_id", schema.Id(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("graph_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("config", schema.Json(), nullable=False),
        sa.Column("context", schema.Json(), nullable=False),
        sa.Column("metadata", schema.Json(), nullable=False),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assistant_id"],
            ["assistants.assistant_id"],
            name=op.f("fk_assistant_versions_assistant_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("assistant_id", "version", name=op.f("pk_assistant_versions")),
    )
    op.create_table(
        "crons",
        sa.Column("cron_id", schema.Id(), nullable=False),
        sa.Column("assistant_id", schema.Id(), nullable=False),
        sa.Column("thread_id", schema.Id(), nullable=True),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("creator", schema.Json(), nullable=True),
        sa.Column("on_run_completed", sa.Text(), nullable=True),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=True),
        sa.Column("end_time", schema.Timestamp(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("next_run_date", schema.Timestamp(), nullable=False),
        sa.Column("claimed_until", schema.Timestamp(), nullable=True),
        sa.Column("payload", schema.Json(), nullable=False),
        sa.Column("metadata", schema.Json(), nullable=False),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.Column("updated_at", schema.Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ["thread_id"],
            ["threads.thread_id"],
            name=op.f("fk_crons_thread_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("cron_id", name=op.f("pk_crons")),
    )
    op.create_index(op.f("ix_crons_assistant_id"), "crons", ["assistant_id"], unique=False)
    op.create_index(op.f("ix_crons_next_run_date"), "crons", ["next_run_date"], unique=False)
    op.create_index(op.f("ix_crons_thread_id"), "crons", ["thread_id"], unique=False)
    op.create_table(
        "runs",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("run_id", schema.Id(), nullable=False),
        sa.Column("thread_id", schema.Id(), nullable=False),
        sa.Column("assistant_id", schema.Id(), nullable=False),
        sa.Column("created_at", schema.Timestamp(), nullable=False),
        sa.Column("updated_at", schema.Timestamp(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("metadata", schema.Json(), nullable=False),
        sa.Column("kwargs", schema.Json(), nullable=False),
        sa.Column("multitask_strategy", sa.Text(), nullable=False),
        sa.Column("langsmith_session_name", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("lease_until", schema.Timestamp(), nullable=True),
        sa.Column("cancel_action", sa.Text(), nullable=True),
        sa.Column("cancel_reason", sa.Text(), nullable=True),
        sa.UniqueConstraint("run_id", name=op.f("uq_runs_run_id")),
        sa.ForeignKeyConstraint(
            ["thread_id"], ["threads.thread_id"], name=op.f("fk_runs_thread_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_assistant_id"), "runs", ["assistant_id"], unique=False)
    op.create_index(
        "ix_runs_pending",
        "runs",
        ["created_at", "seq", "thread_id"],
        unique=False,
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "ix_runs_pending_thread",
        "runs",
        ["thread_id", "created_at", "seq"],
        unique=False,
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        op.f("ix_runs_thread_id_created_at"), "runs", ["thread_id", "created_at"], unique=False
    )
    op.create_index(
        "uq_runs_running_thread",
        "runs",
        ["thread_id"],
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )
    op.create_table(
        "thread_labels",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("thread_id", schema.Id(), nullable=False),
        sa.ForeignKeyConstraint(
            ["thread_id"],
            ["threads.thread_id"],
            name=op.f("fk_thread_labels_thread_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("key", "value", "thread_id", name=op.f("pk_thread_labels")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_thread_labels_thread_id"), "thread_labels", ["thread_id"], unique=False
    )

"""Add the audit log. `audit_triggers` adds what keeps its entries unchanged."""

import sqlalchemy as sa
from alembic import op

from langgraph_runtime_sql.database import schema

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "audit_entries",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("at", schema.Timestamp(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=True),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("roles", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("method", sa.Text(), nullable=True),
        sa.Column("route", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object_kind", sa.Text(), nullable=True),
        sa.Column("object_id", sa.Text(), nullable=True),
        sa.Column("decision", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("salt", sa.Text(), nullable=True),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit_entries")),
    )
    op.create_index(
        "uq_audit_entries_chain_number", "audit_entries", ["chain", "number"], unique=True
    )
    op.create_index(op.f("ix_audit_entries_tenant_seq"), "audit_entries", ["tenant", "seq"])
    first = sa.text("number = 1")
    op.create_index(
        "ix_audit_entries_start",
        "audit_entries",
        ["previous"],
        sqlite_where=first,
        postgresql_where=first,
    )

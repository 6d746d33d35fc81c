"""The table of registered companies. A row without a tenant is shared by all."""

from sqlalchemy import Boolean, Column, Index, Table, Text

from my_agent.tables import metadata
from threadhold.tables import UtcDateTime


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


companies = Table(
    "companies",
    metadata,
    *(Column(name, Text, primary_key=True) for name in ("tenant_id", "uen")),
    # The status is in the register's words; `is_live` says whether the company is active.
    *_texts("name", "entity_type", "status"),
    Column("is_live", Boolean, nullable=False),
    # Codes have five digits, or are empty.
    *_texts("registered_on", "primary_ssic", "primary_activity"),
    *_texts("secondary_ssic", "secondary_activity", "address", "postal_code"),
    Column("updated_at", UtcDateTime, nullable=False),
    Index("ix_companies_primary", "tenant_id", "is_live", "primary_ssic"),
    Index("ix_companies_secondary", "tenant_id", "is_live", "secondary_ssic"),
)

"""The table of registered companies. A row without a tenant is shared by all."""

from sqlalchemy import Boolean, Column, Index, Table

from my_agent.tables import keys, metadata, texts
from threadhold.tables import UtcDateTime

companies = Table(
    "companies",
    metadata,
    *keys("tenant_id", "uen"),
    # The status is in the register's words; `is_live` says whether the company is active.
    *texts("name", "entity_type", "status"),
    Column("is_live", Boolean, nullable=False),
    # Codes have five digits, or are empty.
    *texts("registered_on", "primary_ssic", "primary_activity"),
    *texts("secondary_ssic", "secondary_activity", "address", "postal_code"),
    Column("updated_at", UtcDateTime, nullable=False),
    Index("ix_companies_primary", "tenant_id", "is_live", "primary_ssic"),
    Index("ix_companies_secondary", "tenant_id", "is_live", "secondary_ssic"),
)

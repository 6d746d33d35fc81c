"""Tables of the ICP finder. Every row has a tenant; shared rows of the register have ''."""

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, Table, Text, UniqueConstraint

from my_agent.tables import metadata
from threadhold.tables import UtcDateTime


def _text(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, Text, nullable=null)


def _key(*names: str) -> list[Column[str]]:
    """Return columns of a primary key."""
    return [Column(name, Text, primary_key=True) for name in names]


# As the fields of `model.DiscoveryKey`.
_DISCOVERY = ("tenant_id", "rule_name", "icp_hash")


profiles = Table(
    "tenant_company_profiles",
    metadata,
    *_key("tenant_id", "domain"),
    # `model.Company`: its website, and its customers'.
    Column("company", JSON, nullable=False),
    Column("confirmed", Boolean, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

rules = Table(
    "icp_rules",
    metadata,
    *_key("tenant_id", "domain", "name"),
    Column("icp", JSON, nullable=False),
    Column("confirmed", Boolean, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

discoveries = Table(
    "icp_discoveries",
    metadata,
    *_key(*_DISCOVERY),
    # Domain of the tenant's company. Also in `basis`; a column of its own for queries.
    _text("domain"),
    Column("basis", JSON, nullable=False),
    Column("discovered_at", UtcDateTime, nullable=False),
    # The current version; `discovery_versions` has it and the earlier ones.
    Column("version", Integer, nullable=False, server_default="1"),
    Index("ix_icp_discoveries_latest", "tenant_id", "domain", "discovered_at"),
)

discovery_versions = Table(
    "icp_discovery_versions",
    metadata,
    *_key(*_DISCOVERY),
    Column("version", Integer, primary_key=True, autoincrement=False),
    # `model.Sources`: what web and register answered.
    Column("sources", JSON, nullable=False),
    # `model.Line` of each candidate, best first.
    Column("candidates", JSON, nullable=False),
    # `model.Changes` since the version before.
    Column("changes", JSON, nullable=False),
    Column("discovered_at", UtcDateTime, nullable=False),
)

candidates = Table(
    "icp_candidates",
    metadata,
    *_key(*_DISCOVERY, "key"),
    _text("name"),
    _text("source"),
    _text("website", null=True),
    _text("uen", null=True),
    Column("ssic", JSON, nullable=False),
    _text("industry"),
    _text("region"),
    _text("about"),
    # Result of the enrichment. `enriched_at` is NULL until the candidate is enriched.
    Column("details", JSON, nullable=False),
    Column("found_at", UtcDateTime, nullable=False),
    Column("enriched_at", UtcDateTime, nullable=True),
    # Since when no search finds it any more. The row stays, and counts again once it is found.
    Column("gone_at", UtcDateTime, nullable=True),
    # The last attempt to enrich it, successful or not.
    Column("tried_at", UtcDateTime, nullable=True),
)

scores = Table(
    "icp_scores",
    metadata,
    *_key(*_DISCOVERY, "key"),
    Column("total", Float, nullable=False),
    # Contribution of each feature to the total, by name.
    Column("parts", JSON, nullable=False),
    # `model.Evidence` of the parts.
    Column("evidence", JSON, nullable=True),
    # Share of the wanted criteria with evidence; decides between equal totals.
    Column("proven", Float, nullable=False, server_default="0"),
    Column("scored_at", UtcDateTime, nullable=False),
    Index("ix_icp_scores_best", "tenant_id", "rule_name", "icp_hash", "total"),
)

feedback = Table(
    "icp_feedback",
    metadata,
    # The key of a candidate without the search: feedback outlives searches.
    *_key("tenant_id", "rule_name", "key"),
    _text("verdict"),
    _text("name"),
    _text("reason"),
    _text("about"),
    Column("updated_at", UtcDateTime, nullable=False),
)

jobs = Table(
    "enrichment_jobs",
    metadata,
    *_key("job_id"),
    _text("tenant_id"),
    _text("user_id"),
    _text("rule_name"),
    _text("icp_hash"),
    _text("status"),
    # Keys of the candidates, in the order of enrichment.
    Column("candidate_keys", JSON, nullable=False),
    Column("done", Integer, nullable=False),
    # The thread of the job's run; runs on other threads must not touch the job.
    _text("thread_id"),
    _text("run_id", null=True),
    _text("reason", null=True),
    # Start of the current run: candidates tried since then are not tried again by it.
    Column("started_at", UtcDateTime, nullable=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("tenant_id", "icp_hash", "rule_name", name="uq_enrichment_jobs_key"),
)

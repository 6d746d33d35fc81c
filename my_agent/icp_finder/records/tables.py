"""Tables of the ICP finder. Every row has a tenant."""

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, Table, UniqueConstraint

from my_agent.tables import keys, metadata, texts
from threadhold.tables import UtcDateTime


def _documents(*names: str) -> list[Column[object]]:
    return [Column(name, JSON, nullable=False) for name in names]


def _times(*names: str, null: bool = False) -> list[Column[object]]:
    return [Column(name, UtcDateTime, nullable=null) for name in names]


# As the fields of `model.DiscoveryKey`.
_DISCOVERY = ("tenant_id", "rule_name", "icp_hash")

profiles = Table(
    "tenant_company_profiles",
    metadata,
    *keys("tenant_id", "domain"),
    # `model.Company`: its website, and its customers'.
    *_documents("company"),
    Column("confirmed", Boolean, nullable=False),
    *_times("updated_at"),
)

rules = Table(
    "icp_rules",
    metadata,
    *keys("tenant_id", "domain", "name"),
    *_documents("icp"),
    Column("confirmed", Boolean, nullable=False),
    *_times("updated_at"),
)

discoveries = Table(
    "icp_discoveries",
    metadata,
    *keys(*_DISCOVERY),
    # Domain of the tenant's company. Also in `basis`; a column of its own for queries.
    *texts("domain"),
    *_documents("basis"),
    *_times("discovered_at"),
    # The current version; `discovery_versions` has it and the earlier ones.
    Column("version", Integer, nullable=False, server_default="1"),
    Index("ix_icp_discoveries_latest", "tenant_id", "domain", "discovered_at"),
)

discovery_versions = Table(
    "icp_discovery_versions",
    metadata,
    *keys(*_DISCOVERY),
    Column("version", Integer, primary_key=True, autoincrement=False),
    # `model.Sources`: what web and register answered; `model.Line` of each candidate, best first;
    # `model.Changes` since the version before.
    *_documents("sources", "candidates", "changes"),
    *_times("discovered_at"),
)

candidates = Table(
    "icp_candidates",
    metadata,
    *keys(*_DISCOVERY, "key"),
    *texts("name", "source"),
    *texts("website", "uen", null=True),
    *_documents("ssic"),
    *texts("industry", "region", "about"),
    # Result of the enrichment.
    *_documents("details"),
    *_times("found_at"),
    # When it was enriched; since when no search finds it any more (the row stays, and counts again
    # once it is found); the last attempt to enrich it, successful or not.
    *_times("enriched_at", "gone_at", "tried_at", null=True),
)

scores = Table(
    "icp_scores",
    metadata,
    *keys(*_DISCOVERY, "key"),
    Column("total", Float, nullable=False),
    # Contribution of each feature to the total, by name.
    *_documents("parts"),
    # `model.Evidence` of the parts.
    Column("evidence", JSON, nullable=True),
    # Share of the wanted criteria with evidence; decides between equal totals.
    Column("proven", Float, nullable=False, server_default="0"),
    *_times("scored_at"),
    Index("ix_icp_scores_best", "tenant_id", "rule_name", "icp_hash", "total"),
)

feedback = Table(
    "icp_feedback",
    metadata,
    # The key of a candidate without the search: feedback outlives searches.
    *keys("tenant_id", "rule_name", "key"),
    *texts("verdict", "name", "reason", "about"),
    *_times("updated_at"),
)

jobs = Table(
    "enrichment_jobs",
    metadata,
    *keys("job_id"),
    *texts("tenant_id", "user_id", "rule_name", "icp_hash", "status"),
    # Keys of the candidates, in the order of enrichment.
    *_documents("candidate_keys"),
    Column("done", Integer, nullable=False),
    # The thread of the job's run; runs on other threads must not touch the job.
    *texts("thread_id"),
    *texts("run_id", "reason", null=True),
    # Start of the current run: candidates tried since then are not tried again by it.
    *_times("started_at", null=True),
    *_times("created_at", "updated_at"),
    UniqueConstraint("tenant_id", "icp_hash", "rule_name", name="uq_enrichment_jobs_key"),
)

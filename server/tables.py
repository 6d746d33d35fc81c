"""Tables of the graphs, for a move from SQLite to Postgres and for a tenant's data."""

from my_agent import migrations
from my_agent.database import ProductDatabase, metadata
from threadhold.move import Schema
from threadhold.tenant_data import Rule

_TENANT = "tenant_id = :tenant"

PRODUCT_RULES: tuple[Rule, ...] = (
    # Dependent tables first.
    Rule("chat_passage", _TENANT),
    # The files themselves are the operator's; an export copies them, and an erase names them.
    Rule("chat_staged", _TENANT),
    Rule("chat_file", _TENANT, files="path"),
    Rule("chat_document", _TENANT),
    Rule("chat_index", _TENANT, export=False),
    *(
        Rule(table, _TENANT)
        for table in (
            *("tenant_company_profiles", "icp_rules", "icp_discoveries", "icp_candidates"),
            *("icp_scores", "icp_discovery_versions", "icp_feedback", "enrichment_jobs"),
            "companies",
        )
    ),
    Rule("tutor_learners", _TENANT),
    Rule("tutor_mistakes", _TENANT),
    Rule("research_pages", _TENANT),
    Rule("research_projects", _TENANT),
    # A trigger keeps events; this setting lets it accept the deletion.
    Rule("diagnosis_events", _TENANT, guard="diagnosis_erase_tenant"),
    Rule("diagnosis_sessions", _TENANT, export=False),
    Rule("product_version", ""),
    # SQLite's index of words, which triggers update.
    Rule(
        "chat_passage_words",
        "",
        rebuild="INSERT INTO chat_passage_words (chat_passage_words) VALUES ('rebuild')",
    ),
    *(Rule(f"chat_passage_words_{part}", "") for part in ("config", "data", "docsize", "idx")),
)
"""Which rows of the graphs' tables are a tenant's."""


def product_schema() -> Schema:
    """Return the schema of all tables of the graphs."""
    # Each import registers the tables of a graph.
    from my_agent.chat import tables as _chat  # noqa: F401
    from my_agent.diagnosis import tables as _diagnosis  # noqa: F401
    from my_agent.icp_finder import tables as _icp_finder  # noqa: F401
    from my_agent.research import tables as _research  # noqa: F401
    from my_agent.tutor import tables as _tutor  # noqa: F401

    return Schema(
        versions=migrations.VERSIONS,
        heads=migrations.HEADS,
        known=migrations.scripts,
        tables=metadata.sorted_tables,
        create=lambda url: ProductDatabase(url).close(),
    )

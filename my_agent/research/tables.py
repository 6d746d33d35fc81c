"""Tables of the graph `research`. Every row has a tenant."""

from sqlalchemy import JSON, Column, Index, Integer, Table, Text

from my_agent.tables import metadata
from threadhold.tables import rules


def _text(name: str, *, key: bool = False, null: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=null)


# Declared first, and so deleted first with its thread: workers lock the row of a project before they
# store a page.
projects = Table(
    "research_projects",
    metadata,
    _text("tenant_id", key=True),
    # The id of the thread.
    _text("project_id", key=True),
    _text("question"),
    # `model.Status`.
    _text("status"),
    # What the user wants: "", "pause", "finish" or "cancel"; and since when.
    _text("flag"),
    _text("flag_at", null=True),
    _text("run_id", null=True),
    # `progress.Progress` without what can be computed.
    Column("progress", JSON, nullable=False),
    _text("error", null=True),
    # Times are ISO texts in UTC. `beat_at` is the last sign of life of the run.
    _text("created_at"),
    _text("updated_at"),
    _text("beat_at"),
    info=rules(thread="project_id"),
)

pages = Table(
    "research_pages",
    metadata,
    _text("tenant_id", key=True),
    _text("project_id", key=True),
    # Canonical address that was asked for; a page after a redirect has another one in `page`.
    _text("requested", key=True),
    # `model.CrawledPage` or `model.CrawlFailure`, and the attempts so far.
    Column("page", JSON, nullable=True),
    Column("failure", JSON, nullable=True),
    Column("attempts", Integer, nullable=False),
    _text("fetched_at"),
    Index("ix_research_pages_project", "tenant_id", "project_id"),
    info=rules(thread="project_id"),
)

"""The tables of the graphs: documents, profiles, candidates, jobs, sessions.

Each graph declares its own in `tables.py`. Every row has a tenant, and every statement filters by it.
"""

from pathlib import Path

from threadhold.tables import Tables

tables = Tables(
    Path(__file__).parent / "migrations",
    versions="product_version",
    modules=[
        f"my_agent.{graph}.tables"
        for graph in ("chat", "diagnosis", "icp_finder.records", "research", "tutor")
    ],
)
metadata = tables.metadata

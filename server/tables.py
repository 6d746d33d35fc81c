"""Tables of the graphs, for a move from SQLite to Postgres."""

from my_agent import migrations
from my_agent.database import ProductDatabase, metadata
from threadhold.move import Schema


def product_schema() -> Schema:
    """Return the schema of all tables of the graphs."""
    # Each import registers the tables of a graph.
    from my_agent.chat import tables as _chat  # noqa: F401
    from my_agent.icp_finder import tables as _icp_finder  # noqa: F401

    return Schema(
        versions=migrations.VERSIONS,
        heads=migrations.HEADS,
        known=migrations.scripts,
        tables=metadata.sorted_tables,
        create=lambda url: ProductDatabase(url).close(),
    )

"""The page about encryption names every table of the example application, which all are plain."""

from pathlib import Path

from my_agent.tables import tables as graph_tables
from threadhold.move import schema_of
from threadhold.tenant_data import rules_of

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "encryption.md"


def test_the_page_names_every_plain_table_of_the_example() -> None:
    page = PAGE.read_text()
    tables = {table.name for table in schema_of(graph_tables).tables}
    assert {"chat_passage", "icp_candidates"} <= tables
    assert tables <= {rule.table for rule in rules_of(graph_tables)}
    assert [name for name in sorted(tables) if f"`{name}`" not in page] == []

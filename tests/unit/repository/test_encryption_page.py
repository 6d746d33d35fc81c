"""The page about encryption names every table of the example application, which all are plain."""

from pathlib import Path

from server.tables import PRODUCT_RULES, product_schema

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "encryption.md"


def test_the_page_names_every_plain_table_of_the_example() -> None:
    page = PAGE.read_text()
    tables = {table.name for table in product_schema().tables}
    assert {"chat_passage", "icp_candidates"} <= tables
    assert tables <= {rule.table for rule in PRODUCT_RULES}
    assert [name for name in sorted(tables) if f"`{name}`" not in page] == []

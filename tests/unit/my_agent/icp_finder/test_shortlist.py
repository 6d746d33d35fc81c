"""The list of candidates: filters."""

import pytest

from my_agent.icp_finder.model import Candidate, Score, Scored
from my_agent.icp_finder.search.shortlist import filtered


def listed(name: str, code: str, industry: str, region: str = "Singapore") -> Scored:
    found = Candidate(f"uen:{name}", name, "register", None, name, [code], industry, region)
    return Scored(found, Score(0.5, {}))


FOUND = [
    listed("Pioneer Cold Chain", "52102", "Refrigerated warehousing"),
    listed("Harbour Logistics", "52101", "General warehousing"),
    listed("Granite Foods", "46301", "Wholesale of food", "Johor"),
]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("refrigerated warehouses", ["Pioneer Cold Chain"]),
        ("warehouse", ["Pioneer Cold Chain", "Harbour Logistics"]),
        ("cold store", ["Pioneer Cold Chain"]),
        ("kühllager", ["Pioneer Cold Chain", "Harbour Logistics"]),
        ("Johor", ["Granite Foods"]),
        ("food wholesalers", ["Granite Foods"]),
        ("wind farms", []),
        ("big ones", []),
    ],
)
def test_filter_knows_forms_of_words_and_industries(words: str, names: list[str]) -> None:
    assert [each.candidate.name for each in filtered(words, FOUND)] == names

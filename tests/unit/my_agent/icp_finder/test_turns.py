"""Rules that read a message: edits of the profile, limited consents, roles of websites."""

import pytest

from my_agent.icp_finder.model import Icp
from my_agent.icp_finder.reading import edits, turns
from my_agent.icp_finder.reading.changes import unclear_site
from my_agent.icp_finder.reading.message_parser import parse_text
from my_agent.icp_finder.reading.turns import Situation
from tests.support.icp_state import COMPANY, state

PROFILE: Icp = {
    "industries": ["Food distribution", "Wholesale trade"],
    "sizes": [],
    "regions": ["Singapore"],
    "keywords": ["cold chain"],
}
SHOWN = ("Frostline Logistics", "Icebox Foods", "Harbour Cold Storage")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("employees: 1,000+", {"sizes": ["1001+"]}),
        ("employees: 900 to 2,000", {"sizes": ["501-1000", "1001+"]}),
        ("Which regions are you searching?", {}),
        ("the regions are fine", {}),
        ("size is not important", {}),
        ("drop food", {"industries": ["Wholesale trade"]}),
        ("no", {}),
        ("drop Frostline", {}),
        ("drop 3", {}),
        ("remove everything", {}),
        (
            "add Malaysia and drop cold chain",
            {"regions": ["Singapore", "Malaysia"], "keywords": []},
        ),
    ],
)
def test_only_named_values_change(text: str, changed: dict[str, list[str]]) -> None:
    assert edits.read(text, PROFILE).icp == changed


def test_value_that_is_not_in_the_profile_is_reported() -> None:
    found = edits.read("drop mining", PROFILE)
    assert (found.icp, found.missing) == ({}, ["mining"])


@pytest.mark.parametrize(
    ("text", "first", "numbers", "name"),
    [
        ("enrich the first two only", 2, [], ""),
        ("yes, but only 1 and 3", 0, [1, 3], ""),
        ("Enrich Icebox", 0, [], "Icebox Foods"),
    ],
)
def test_limit_of_a_consent_is_kept(text: str, first: int, numbers: list[int], name: str) -> None:
    found = turns.read(text, Situation(asking="enrich", icp=PROFILE, names=SHOWN))
    assert found.choice is None
    assert found.parsed["wish"] == "enrich"
    assert (found.turn["first"], found.turn["numbers"], found.turn["name"]) == (
        first,
        numbers,
        name,
    )


@pytest.mark.parametrize(
    ("text", "sure"),
    [("run enrichment", True), ("enrich the nice ones", False), ("search again", True)],
)
def test_request_with_unknown_words_is_confirmed(text: str, sure: bool) -> None:
    found = turns.read(text, Situation(icp=PROFILE, names=SHOWN, confirmed=True))
    assert found.parsed["wish"]
    assert found.turn["sure"] is sure


@pytest.mark.parametrize(
    ("text", "role_unknown"),
    [
        ("beta.com", True),
        ("I saw beta.com yesterday", True),
        ("c1.com", False),
        ("our website is now beta.com", False),
        ("beta.com is a customer", False),
    ],
)
def test_website_of_a_known_company_needs_a_role(text: str, role_unknown: bool) -> None:
    found = unclear_site(state(**COMPANY), parse_text(text), listing=True)
    assert (found is not None) is role_unknown

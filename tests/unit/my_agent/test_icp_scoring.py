"""Scores of candidates and their parts."""

from dataclasses import replace
from typing import Any

import pytest

from my_agent.icp_finder.model import WEIGHTS, Candidate, Company, Icp, Site
from my_agent.icp_finder.search.scoring import around_singapore, fits, score

ANY: Icp = {"industries": [], "sizes": [], "regions": [], "keywords": []}
PLAIN = Candidate(key="uen:1", name="Plain", source="register", ssic=["62011"])


def site(about: str = "") -> Site:
    return {"website": "https://a.com", "domain": "a.com", "name": "A", "about": about}


def company(*customers: str) -> Company:
    return {"site": site(), "customers": [site(about) for about in customers]}


def part(name: str, candidate: Candidate, of: Company | None = None, **asked: list[str]) -> float:
    """Return the fit of a candidate in one feature, from 0 to 1."""
    ask: Icp = {**ANY, **asked}  # type: ignore[typeddict-item]
    return round(fits(candidate, of or company(), ask)[name].value, 2)


def test_weights_sum_to_one_and_parts_to_total() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    every: Icp = {"industries": ["x"], "sizes": ["11-50"], "regions": ["Bonn"], "keywords": ["y"]}
    found = score(PLAIN, company("a customer"), every)
    assert found.parts.keys() == WEIGHTS.keys()
    assert found.total == pytest.approx(sum(found.parts.values()))
    assert 0 <= found.total <= 1


def test_unset_criteria_leave_the_sum() -> None:
    assert score(PLAIN, company(), ANY).parts == {"website": 0}
    ask: Icp = {**ANY, "industries": ["software"]}
    found = score(PLAIN, company(), ask)
    assert found.parts == {"industry": pytest.approx(0.35 / 0.4, abs=1e-3), "website": 0}
    assert [each["part"] for each in found.evidence] == ["industry"]


def test_met_criterion_never_lowers_the_score() -> None:
    vague: Icp = {**ANY, "industries": ["software"]}
    here = replace(PLAIN, region="Singapore")
    precise: Icp = {**vague, "regions": ["Singapore"]}
    assert score(here, company(), precise).total > score(here, company(), vague).total
    missed: Icp = {**vague, "regions": ["Germany"]}
    assert score(here, company(), missed).total < score(here, company(), vague).total


def test_perfect_candidate_scores_one() -> None:
    words = "alpha1 bravo charlie delta1 echo1 foxtrot golf1 hotel1 india juliet kilo1 lima1"
    best = replace(
        PLAIN, website="https://x.com", region="Singapore", about=words, details={"size": "11-50"}
    )
    ask: Icp = {
        "industries": ["software"],
        "sizes": ["11-50"],
        "regions": ["Singapore"],
        "keywords": ["alpha1"],
    }
    found = score(best, company(words), ask)
    assert found.total == pytest.approx(1, abs=1e-3)
    assert found.proven == 1


def test_evidence_names_what_was_found_and_where() -> None:
    read = {"about": "Cold chain for food", "size": "11-50", "website": "https://x.com"}
    known = replace(PLAIN, details=read, region="Singapore")
    ask: Icp = {
        "industries": ["software"],
        "sizes": ["11-50"],
        "regions": ["APAC"],
        "keywords": ["cold chain", "robots"],
    }
    found = score(known, company("Food and a cold chain"), ask)
    assert {each["part"]: (each["found"], each["source"]) for each in found.evidence} == {
        "industry": ("SSIC 62011 Software development", "register"),
        "keywords": ("cold chain", "https://x.com"),
        "customers": ("shares chain, cold, food", "https://x.com"),
        "region": ("Singapore", "register"),
        "size": ("11-50 people", "https://x.com"),
        "website": ("https://x.com", "register"),
    }
    # What is not known or does not fit has no evidence.
    other = score(replace(PLAIN, details={"size": "1-10"}), company(), {**ask, "industries": ["x"]})
    assert other.evidence == ()


@pytest.mark.parametrize(("wish", "better"), [(1, True), (0.5, True), (-1, False)])
def test_feedback_moves_the_score_within_its_bounds(wish: float, better: bool) -> None:
    ask: Icp = {**ANY, "industries": ["software"]}
    plain, told = score(PLAIN, company(), ask), score(PLAIN, company(), ask, feedback=wish)
    assert (told.total > plain.total) == better
    assert 0 <= told.total <= 1
    assert told.total == pytest.approx(sum(told.parts.values()), abs=1e-3)
    assert told.evidence[-1]["part"] == "feedback"


@pytest.mark.parametrize(
    ("more", "industries", "fit"),
    [
        ({}, ["software"], 1),
        ({}, ["Tech"], 1),
        ({"ssic": ["46900", "62011"]}, ["software"], 0.7),
        ({"ssic": ["58200"]}, ["software"], 0),
        ({"ssic": ["62021"]}, ["software house"], 0.6),
        ({"ssic": [], "industry": "Freight forwarding"}, ["logistics services"], 1),
        ({"ssic": [], "about": "Our dental clinic, and dentists"}, ["clinics"], 0.5),
        ({"ssic": [], "about": "nothing"}, ["software"], 0.25),
    ],
)
def test_industry(more: dict[str, Any], industries: list[str], fit: float) -> None:
    assert part("industry", replace(PLAIN, **more), industries=industries) == fit


def test_keywords_score_by_share() -> None:
    told = replace(PLAIN, about="Robots and drones", details={"about": "and lasers"})
    assert part("keywords", told, keywords=["ROBOTS", "lasers", "ships", "sails"]) == 0.5


def test_likeness_uses_most_similar_customer() -> None:
    told = replace(PLAIN, about="widgets handmade robots")
    assert part("customers", told, company("nothing here", "handmade widgets robots")) == 0.25
    assert part("customers", told, company("other business")) == 0
    assert fits(told, company("other"), ANY, likeness=0.8)["customers"].value == 0.8


@pytest.mark.parametrize(
    ("region", "wanted", "fit"),
    [
        ("Singapore", ["Singapore"], 1),
        ("Singapore", ["Germany", "APAC"], 1),
        ("Singapore", ["Germany"], 0),
        ("Berlin, Germany", ["germany"], 1),
        ("", ["Germany"], 0.5),
    ],
)
def test_region(region: str, wanted: list[str], fit: float) -> None:
    assert part("region", replace(PLAIN, region=region), regions=wanted) == fit


@pytest.mark.parametrize(("size", "fit"), [("11-50", 1), ("1-10", 0), (None, 0.5)])
def test_size(size: str | None, fit: float) -> None:
    known = replace(PLAIN, details={"size": size} if size else {})
    assert part("size", known, sizes=["11-50", "51-200"]) == fit


def test_website_found_by_enrichment_counts() -> None:
    assert part("website", PLAIN) == 0
    assert part("website", replace(PLAIN, details={"website": "https://x.com"})) == 1


def test_regions_that_contain_singapore() -> None:
    assert around_singapore(["Germany", "  South East  Asia "])
    assert not around_singapore(["Germany"])
    assert not around_singapore([])

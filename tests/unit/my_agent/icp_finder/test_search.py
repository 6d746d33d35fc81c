"""Nodes of the search for candidates."""

from typing import Any

import pytest

from my_agent.icp_finder import records, register
from my_agent.icp_finder.diffs import basis, icp_hash
from my_agent.icp_finder.model import Candidate, Company, Icp
from my_agent.icp_finder.nodes import search
from my_agent.icp_finder.nodes.search import (
    decide_strategy,
    normalize,
    refresh_icp,
    ssic_fallback,
)
from tests.support.icp_state import (
    COMPANY,
    ICP,
    LAST,
    RULE,
    WHICH,
    config,
    confirmed,
    scored,
    updates,
)


async def test_without_consent_nothing_is_saved_or_searched_for() -> None:
    command = await normalize(confirmed(consent=False), config())
    assert command.goto == "decide_strategy"
    assert (await records.load_snapshot("acme", domain=None, rule_name=RULE)).profile is None


async def test_confirmed_icp_is_saved_normalized() -> None:
    messy = {
        **ICP,
        "industries": [" Road  freight. ", "road freight"],
        "sizes": ["51-200", "11-50"],
    }
    command = await normalize(confirmed(consent=True, icp=messy), config())
    assert command.goto == "refresh_icp"
    icp = updates(command)["icp"]
    assert icp == {**ICP, "industries": ["road freight"], "sizes": ["11-50", "51-200"]}
    snapshot = await records.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.profile is not None
    assert snapshot.rule is not None
    assert (snapshot.profile.confirmed, snapshot.rule.confirmed, snapshot.rule.icp) == (
        True,
        True,
        icp,
    )
    assert updates(command)["found"]["icp_hash"] == icp_hash(basis(COMPANY, icp))


async def test_search_result_is_saved_with_scores(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    async def discover(company: Company, icp: Icp, *, limit: int) -> list[Candidate]:
        assert limit == 50
        return [Candidate("domain:a.com", "A", "web", industry="Road freight")]

    monkeypatch.setattr(search, "discover", discover)
    found = await refresh_icp(confirmed(found=WHICH), config())
    assert (found["discovery_ready"], found["last"]) == (True, WHICH)
    [best] = await records.best_candidates("acme", **WHICH, limit=10)
    assert best.candidate.name == "A"
    assert best.score.total == pytest.approx(sum(best.score.parts.values()), abs=1e-3)
    assert [line["candidates"] for line in logged if line["action"] == "icp_refreshed"] == [1]


@pytest.mark.parametrize(
    ("count", "goto"), [(0, "ssic_fallback"), (9, "ssic_fallback"), (10, "progress_report")]
)
async def test_few_candidates_fall_back_to_register(
    count: int, goto: str, logged: list[Any]
) -> None:
    await records.add_candidates(
        "acme", **WHICH, found=[scored(f"domain:{n}.com") for n in range(count)]
    )
    assert (await decide_strategy(confirmed(found=WHICH), config())).goto == goto
    assert [line["candidates"] for line in logged] == [count]


async def test_outdated_candidates_do_not_fall_back_to_register() -> None:
    assert (await decide_strategy(confirmed(found=LAST), config())).goto == "progress_report"
    assert (await decide_strategy(confirmed(found=None), config())).goto == "progress_report"


async def test_register_is_searched_by_ssic_codes(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any]
) -> None:
    await records.add_candidates("acme", **WHICH, found=[scored("uen:1")])
    asked: dict[str, Any] = {}

    async def find(tenant_id: str, codes: Any, icp: Icp, **options: Any) -> list[Candidate]:
        asked.update(options, tenant=tenant_id, codes=codes)
        return [Candidate("uen:2", "Two", "register", ssic=tuple(codes))]

    monkeypatch.setattr(register, "find", find)
    found = await ssic_fallback(confirmed(found=WHICH), config())
    assert (asked["tenant"], asked["limit"], asked["without"]) == ("acme", 49, ["uen:1"])
    assert asked["codes"][0].startswith("49")
    assert "the register added 1 company" in str(found["notes"])
    assert await records.count_candidates("acme", **WHICH) == 2
    assert [line["action"] for line in logged] == ["ssic_fallback"]


async def test_industries_without_ssic_code_are_reported() -> None:
    icp = {**ICP, "industries": ["xyzzy"]}
    of = {"rule_name": RULE, "icp_hash": "1" * 16}
    found = await ssic_fallback(confirmed(icp=icp, found=of), config())
    assert "match no SSIC code" in str(found["notes"])

"""Nodes of the search for candidates."""

from datetime import timedelta
from typing import Any

import pytest

from my_agent.icp_finder.model import Candidate, Company, DiscoveryKey, Icp, Site
from my_agent.icp_finder.nodes.search import (
    decide_strategy,
    normalize,
    refresh_icp,
    ssic_fallback,
)
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.records.tables import profiles
from my_agent.icp_finder.search import register, searching, website
from my_agent.icp_finder.search.discovery import Found
from my_agent.icp_finder.search.register import Ranked
from my_agent.tables import run
from my_agent.web.fetch import SiteUnreadable
from tests.support.icp_state import (
    COMPANY,
    ICP,
    LAST,
    RULE,
    WHICH,
    age,
    config,
    confirmed,
    saved,
    scored,
    site,
    updates,
)


async def test_without_consent_nothing_is_saved_or_searched_for() -> None:
    command = await normalize(confirmed(consent=False), config())
    assert command.goto == "decide_strategy"
    assert (await store.load_snapshot("acme", domain=None, rule_name=RULE)).profile is None


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
    snapshot = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.profile is not None
    assert snapshot.rule is not None
    assert (snapshot.profile.confirmed, snapshot.rule.confirmed, snapshot.rule.icp) == (
        True,
        True,
        icp,
    )
    assert updates(command)["found"]["icp_hash"] == icp_hash(basis(COMPANY, icp))


class World:
    """What the web and the register answer to the next search.

    Attributes:
        web: the answer of the web.
        register: the answer of the register.
    """

    def __init__(self) -> None:
        self.web = Found("nothing")
        self.register = Ranked("nothing", ["49"])

    def has(self, *names: str) -> None:
        """Let the web find these companies."""
        self.web = Found(
            "found",
            [
                Candidate(f"domain:{name}.com", name, "web", industry="Road freight")
                for name in names
            ],
        )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()

    async def discover(company: Company, icp: Icp, *, limit: int) -> Found:
        assert limit == 50
        return made.web

    async def rank(*_: Any, **options: Any) -> Ranked:
        return made.register

    monkeypatch.setattr(searching, "discover", discover)
    monkeypatch.setattr(register, "rank", rank)
    return made


async def shown() -> list[str]:
    best = await store.best_candidates("acme", **WHICH, limit=10)
    return sorted(each.candidate.name for each in best)


async def test_search_result_is_saved_with_scores(world: World, logged: list[Any]) -> None:
    world.has("A")
    command = await refresh_icp(confirmed(found=WHICH), config())
    found = updates(command)
    assert command.goto == "decide_strategy"
    assert (found["discovery_ready"], found["last"], found["reported"]) == (True, WHICH, None)
    [best] = await store.best_candidates("acme", **WHICH, limit=10)
    assert best.candidate.name == "A"
    assert best.score.total == pytest.approx(sum(best.score.parts.values()), abs=1e-3)
    assert [line["candidates"] for line in logged if line["action"] == "icp_refreshed"] == [1]
    # A first search has nothing to compare with.
    assert found["notes"] == ["The register has no active company of SSIC 49."]


async def test_failed_search_keeps_candidates_and_enrichment(world: World) -> None:
    world.has("A", "B")
    await refresh_icp(confirmed(found=WHICH), config())
    details = {"status": "read", "emails": ["a@a.com"]}
    key = DiscoveryKey("acme", **WHICH)
    await run(lambda c: store.save_details(c, key, "domain:A.com", details), "acme", write=True)
    before = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    world.web, world.register = Found("failed"), Ranked("empty", ["49"])
    command = await refresh_icp(confirmed(found=WHICH, reported=WHICH), config())
    [said] = updates(command)["notes"]
    assert said.startswith("The web could not be asked")
    assert "The register of companies is empty" in said
    assert "your 2 candidates stay as they are" in said
    # The list that the user has seen is not shown as a new one.
    assert "reported" not in updates(command)
    assert await shown() == ["A", "B"]
    best = await store.best_candidates("acme", **WHICH, limit=10)
    assert {each.candidate.name: dict(each.candidate.details) for each in best}["A"] == details
    after = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert after.discovery == before.discovery


@pytest.mark.parametrize(
    ("web", "given", "sentence"),
    [
        ("failed", "nothing", "The web could not be asked: no search engine has answered."),
        ("failed", "nothing", "Write “search again” to try again."),
        ("nothing", "nothing", "The web has named no company that fits."),
        ("nothing", "nothing", "The register has no active company of SSIC 49."),
        ("nothing", "nothing", "Try other industries"),
        ("off", "empty", "The register of companies is empty"),
        ("off", "no_codes", "match no SSIC code"),
        ("off", "elsewhere", "companies in Singapore only"),
    ],
)
async def test_reasons_for_no_candidates_are_told_apart(
    world: World, web: Any, given: Any, sentence: str
) -> None:
    world.web, world.register = Found(web), Ranked(given, ["49"])
    command = await refresh_icp(confirmed(found=WHICH, last=LAST), config())
    assert command.goto == "finalize"
    [said] = updates(command)["notes"]
    assert sentence in said
    # The discovery that the thread works with stays.
    assert "last" not in updates(command)
    snapshot = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.discovery is None


async def test_repeated_search_says_what_is_new_gone_and_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.has("A", "B")
    await refresh_icp(confirmed(found=WHICH), config())
    world.has("B", "C")
    notes = updates(await refresh_icp(confirmed(found=WHICH), config()))["notes"]
    assert notes[-1] == "Since the last search, 1 company is new: C; 1 company is gone: A."
    assert await shown() == ["B", "C"]
    notes = updates(await refresh_icp(confirmed(found=WHICH), config()))["notes"]
    assert notes[-1] == "Since the last search, nothing has changed."
    first = Candidate("domain:B.com", "B", "web", website="https://b.com", industry="Hotels")
    world.web = Found("found", [first, world.web.candidates[1]])
    notes = updates(await refresh_icp(confirmed(found=WHICH), config()))["notes"]
    assert "1 company has another score: B 88% → " in notes[-1]
    numbers = [each.number for each in await store.versions("acme", **WHICH)]
    assert numbers == [4, 3, 2, 1]


async def test_candidate_that_returns_has_its_enrichment(world: World) -> None:
    world.has("A", "B")
    await refresh_icp(confirmed(found=WHICH), config())
    key = DiscoveryKey("acme", **WHICH)
    details = {"status": "read", "website": "https://a.com", "size": "11-50"}
    await run(lambda c: store.save_details(c, key, "domain:A.com", details), "acme", write=True)
    world.has("B")
    await refresh_icp(confirmed(found=WHICH), config())
    assert await shown() == ["B"]
    world.has("A", "B")
    await refresh_icp(confirmed(found=WHICH), config())
    [best, _] = await store.best_candidates("acme", **WHICH, limit=10)
    # The score knows the website that enrichment has found.
    assert (best.candidate.name, best.candidate.details) == ("A", details)
    assert best.score.parts["website"] > 0


async def test_web_without_answer_keeps_its_candidates_next_to_the_registers(world: World) -> None:
    world.has("A")
    await refresh_icp(confirmed(found=WHICH), config())
    before = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    world.web = Found("failed")
    world.register = Ranked("found", ["49"], [scored("uen:1")])
    notes = updates(await refresh_icp(confirmed(found=WHICH), config()))["notes"]
    assert "could not be asked" in notes[0]
    assert await shown() == ["A", "uen:1"]
    after = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert before.discovery is not None
    assert after.discovery is not None
    # The search is as old as the last answer of the web.
    assert after.discovery.at == before.discovery.at


@pytest.mark.parametrize(
    ("down", "said"),
    [
        ("", "I have read 6 websites of your profile again."),
        ("c1", "I have read 5 websites of your profile again. I could not read c1.com."),
    ],
)
async def test_stale_profile_is_read_again(
    monkeypatch: pytest.MonkeyPatch, logged: list[Any], down: str, said: str
) -> None:
    read: list[str] = []

    async def read_site(website: str) -> Site:
        read.append(website)
        if down and down in website:
            raise SiteUnreadable("c1.com could not be read.")
        return {**site(website.removeprefix("https://")), "about": "New words"}

    monkeypatch.setattr(website, "read_site", read_site)
    await saved()
    fresh = await normalize(confirmed(consent=True), config())
    assert (read, updates(fresh)["notes"]) == ([], [])
    await age(profiles, "updated_at", 15)
    found = updates(await normalize(confirmed(consent=True), config()))
    assert len(read) == 6
    assert found["notes"] == [said]
    assert [each["about"] for each in found["customers"]][:2] == [
        "New words",
        "" if down else "New words",
    ]
    snapshot = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.profile is not None
    assert snapshot.profile.company["site"]["about"] == "New words"
    assert store.now() - snapshot.profile.updated_at < timedelta(days=1)


async def test_profile_that_cannot_be_read_stays_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(website: str) -> Site:
        raise SiteUnreadable("down")

    monkeypatch.setattr(website, "read_site", down)
    await saved()
    await age(profiles, "updated_at", 15)
    found = updates(await normalize(confirmed(consent=True), config()))
    assert "as old as before" in found["notes"][0]
    assert found["site"] == COMPANY["site"]
    snapshot = await store.load_snapshot("acme", domain="acme.com", rule_name=RULE)
    assert snapshot.profile is not None
    assert store.now() - snapshot.profile.updated_at > timedelta(days=14)


@pytest.mark.parametrize(
    ("count", "goto"), [(0, "ssic_fallback"), (9, "ssic_fallback"), (10, "progress_report")]
)
async def test_few_candidates_fall_back_to_register(
    count: int, goto: str, logged: list[Any]
) -> None:
    await store.add_candidates(
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
    await store.add_candidates("acme", **WHICH, found=[scored("uen:1")])
    asked: dict[str, Any] = {}

    async def rank(tenant_id: str, company: Company, icp: Icp, **options: Any) -> Ranked:
        asked.update(options, tenant=tenant_id)
        return Ranked("found", ["49"], [scored("uen:2")])

    monkeypatch.setattr(register, "rank", rank)
    found = await ssic_fallback(confirmed(found=WHICH), config())
    assert (asked["tenant"], asked["limit"], asked["without"]) == ("acme", 49, ["uen:1"])
    assert "the register added 1 company" in str(found["notes"])
    assert await store.count_candidates("acme", **WHICH) == 2
    assert [line["action"] for line in logged] == ["ssic_fallback"]


async def test_register_without_more_companies_is_not_mentioned(world: World) -> None:
    assert await ssic_fallback(confirmed(found=WHICH), config()) == {}


async def test_register_that_has_answered_is_not_asked_again(world: World) -> None:
    world.has("A")
    await refresh_icp(confirmed(found=WHICH), config())
    assert (await decide_strategy(confirmed(found=WHICH), config())).goto == "progress_report"
    world.register = Ranked("empty", ["49"])
    await refresh_icp(confirmed(found=WHICH), config())
    # Since then a register may have been ingested.
    assert (await decide_strategy(confirmed(found=WHICH), config())).goto == "ssic_fallback"

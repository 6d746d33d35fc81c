"""Stored companies, rules and candidates of the ICP finder, in a real database."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import inspect

from bench.icp import made_up
from my_agent.companies import register as registered
from my_agent.companies.tables import companies
from my_agent.icp_finder.enrichment import background, jobs
from my_agent.icp_finder.model import (
    Candidate,
    Company,
    DiscoveryKey,
    Icp,
    Score,
    Scored,
    Site,
    Snapshot,
)
from my_agent.icp_finder.records import export, feedback, store
from my_agent.icp_finder.records.decisions import decide, signals
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.search import register, searching
from my_agent.icp_finder.settings import IcpSettings
from my_agent.tables import metadata, run, upsert
from tests.support.processes import ROOT
from tests.support.products import engine
from threadhold.tables import SHARED

RULE = "Default ICP"
REGISTER = ROOT / "my_agent" / "companies" / "reference" / "made_up_register.csv"


@pytest.fixture(autouse=True)
def empty(product_database: str) -> Iterator[None]:
    """Clear the tables after each test."""
    yield
    with engine().writing(SHARED) as connection:
        # Events of the diagnosis cannot be deleted, and nothing here writes any.
        for table in reversed(metadata.sorted_tables):
            if table.name.startswith("diagnosis_"):
                continue
            if inspect(connection).has_table(table.name):
                connection.execute(table.delete())


def site(domain: str) -> Site:
    return {"website": f"https://{domain}", "domain": domain, "name": domain, "about": ""}


def company(domain: str = "acme.com", *customers: str) -> Company:
    return {"site": site(domain), "customers": [site(each) for each in customers]}


def icp(*industries: str) -> Icp:
    return {"industries": list(industries), "sizes": [], "regions": [], "keywords": []}


def found(name: str, total: float) -> Scored:
    candidate = Candidate(key=f"domain:{name}.com", name=name, source="web", ssic=["62011"])
    return Scored(candidate, Score(total, {"industry": total}))


async def discover(tenant: str, of: Company, ask: Icp, *those: Scored, rule: str = RULE) -> str:
    asked = basis(of, ask)
    await store.save_discovery(tenant, rule, icp_hash(asked), asked, those)
    return icp_hash(asked)


async def names(tenant: str, of: str, limit: int = 10) -> list[str]:
    best = await store.best_candidates(tenant, RULE, of, limit=limit)
    return [each.candidate.name for each in best]


async def test_new_tenant_has_empty_snapshot() -> None:
    assert await store.load_snapshot("t1", domain=None, rule_name=RULE) == Snapshot()
    assert await store.load_snapshot("t1", domain="acme.com", rule_name=RULE) == Snapshot()


async def test_saved_data_is_loaded() -> None:
    await store.save_profile("t1", company("acme.com", "one.com"), confirmed=True)
    await store.save_rule("t1", "acme.com", RULE, icp("Hotels"), confirmed=False)
    of = await discover("t1", company("acme.com"), icp("Hotels"), found("a", 0.5), found("b", 0.7))
    known = await store.load_snapshot("t1", domain="acme.com", rule_name=RULE)
    assert known.profile is not None
    assert known.profile.company == company("acme.com", "one.com")
    assert known.profile.confirmed
    assert known.rule is not None
    assert (known.rule.icp, known.rule.confirmed) == (icp("Hotels"), False)
    assert known.discovery is not None
    assert known.discovery.candidates == 2
    assert icp_hash(known.discovery.basis) == of
    assert known.discovery.at.tzinfo is not None
    assert known.profile.updated_at <= known.discovery.at


async def test_saving_again_replaces_stored_data() -> None:
    await store.save_profile("t1", company("acme.com"), confirmed=True)
    first = await store.load_snapshot("t1", domain=None, rule_name=RULE)
    await store.save_profile("t1", company("acme.com", "new.com"), confirmed=False)
    second = await store.load_snapshot("t1", domain=None, rule_name=RULE)
    assert first.profile is not None
    assert second.profile is not None
    assert second.profile.company == company("acme.com", "new.com")
    assert not second.profile.confirmed
    assert second.profile.updated_at > first.profile.updated_at


async def test_snapshot_without_domain_has_last_saved_company() -> None:
    for domain in ("one.com", "two.com", "one.com"):
        await store.save_profile("t1", company(domain), confirmed=True)
        await store.save_rule("t1", domain, RULE, icp(domain), confirmed=True)
    known = await store.load_snapshot("t1", domain=None, rule_name=RULE)
    assert known.profile is not None
    assert known.profile.company["site"]["domain"] == "one.com"
    assert known.rule is not None
    assert known.rule.icp == icp("one.com")


async def test_missing_rule_falls_back_to_last_saved() -> None:
    await store.save_profile("t1", company(), confirmed=True)
    await store.save_rule("t1", "acme.com", "Old", icp("x"), confirmed=True)
    await store.save_rule("t1", "acme.com", "Newer", icp("y"), confirmed=True)
    known = await store.load_snapshot("t1", domain="acme.com", rule_name="Old")
    assert known.rule is not None
    assert known.rule.name == "Old"
    known = await store.load_snapshot("t1", domain="acme.com", rule_name="Missing")
    assert known.rule is not None
    assert known.rule.name == "Newer"


async def test_tenants_are_isolated() -> None:
    await store.save_profile("t1", company(), confirmed=True)
    await store.save_rule("t1", "acme.com", RULE, icp("x"), confirmed=True)
    of = await discover("t1", company(), icp("x"), found("a", 0.5))
    assert await store.load_snapshot("t2", domain="acme.com", rule_name=RULE) == Snapshot()
    assert await names("t2", of) == []
    assert await store.count_candidates("t2", RULE, of) == 0
    await discover("t2", company(), icp("x"), found("theirs", 0.9))
    assert await names("t1", of) == ["a"]


async def test_candidates_are_sorted_by_score_then_name() -> None:
    those = [found("c", 0.5), found("a", 0.5), found("b", 0.9), found("d", 0.1)]
    of = await discover("t1", company(), icp("x"), *those)
    assert await names("t1", of) == ["b", "a", "c", "d"]
    assert await names("t1", of, limit=2) == ["b", "a"]
    [best] = await store.best_candidates("t1", RULE, of, limit=1)
    assert best == found("b", 0.9)


async def test_new_discovery_replaces_candidates_but_keeps_details() -> None:
    of = await discover("t1", company(), icp("x"), found("a", 0.5), found("b", 0.6))
    which = DiscoveryKey("t1", RULE, of)
    details = {"emails": ["hello@a.com"]}
    await run(
        lambda c: store.save_details(c, which, "domain:a.com", details, Score(0.8, {"x": 0.8})),
        "t1",
        write=True,
    )
    assert await names("t1", of) == ["a", "b"]
    await discover("t1", company(), icp("x"), found("a", 0.4), found("c", 0.9))
    best = await store.best_candidates("t1", RULE, of, limit=10)
    assert [(each.candidate.name, each.candidate.details) for each in best] == [
        ("c", {}),
        ("a", details),
    ]
    assert await store.count_candidates("t1", RULE, of) == 2


async def test_rule_has_its_own_discovery() -> None:
    """Two rules on one site: going back to the first one is no drift."""
    await store.save_profile("t1", company(), confirmed=True)
    for rule in ("First", "Second"):
        await store.save_rule("t1", "acme.com", rule, icp(rule), confirmed=True)
        await discover("t1", company(), icp(rule), found(rule, 0.5), rule=rule)
    known = await store.load_snapshot("t1", domain="acme.com", rule_name="First")
    assert known.discovery is not None
    assert known.discovery.rule_name == "First"
    seen = signals(known, "First", IcpSettings(), store.now())
    assert not seen.rule_drift
    assert seen.changes == ()
    assert decide(seen)["use_cached"]
    # A rule that was never searched with does not borrow the discovery of another one.
    await store.save_rule("t1", "acme.com", "Third", icp("x"), confirmed=True)
    known = await store.load_snapshot("t1", domain="acme.com", rule_name="Third")
    assert known.discovery is None
    decided = decide(signals(known, "Third", IcpSettings(), store.now()))
    assert decided["reason"] == "there are no candidates yet"


async def test_versions_are_kept_up_to_a_number() -> None:
    of = ""
    for number in range(store.VERSIONS + 3):
        of = await discover("t1", company(), icp("x"), found(f"c{number}", 0.5))
    kept = await store.versions("t1", RULE, of)
    assert [kept[0].number, len(kept)] == [store.VERSIONS + 3, store.VERSIONS]
    assert [line["name"] for line in kept[0].changes["new"]] == [f"c{store.VERSIONS + 2}"]
    assert [line["name"] for line in kept[0].changes["gone"]] == [f"c{store.VERSIONS + 1}"]
    assert await store.versions("t2", RULE, of) == []


async def test_feedback_moves_stored_candidates_and_can_be_taken_back() -> None:
    of = await discover("t1", company(), icp("x"), found("a", 0.6), found("b", 0.5))
    key = DiscoveryKey("t1", RULE, of)
    details = {"status": "unreadable"}
    await run(
        lambda c: store.save_details(c, key, "domain:a.com", details, enriched=False),
        "t1",
        write=True,
    )
    tried = await run(lambda c: store.find_candidates(c, key, ["domain:a.com"]), "t1")
    await searching.apply_feedback("t1", RULE, of, {"domain:b.com": 1.0, "domain:a.com": -0.5})
    best = await store.best_candidates("t1", RULE, of, limit=9)
    assert [(each.candidate.name, each.score.total) for each in best] == [("b", 0.8), ("a", 0.45)]
    assert await run(lambda c: store.find_candidates(c, key, ["domain:a.com"]), "t1") == tried
    await searching.apply_feedback("t1", RULE, of, {})
    assert await names("t1", of) == ["a", "b"]
    best = await store.best_candidates("t1", RULE, of, limit=9)
    assert [each.score.parts for each in best] == [{"industry": 0.6}, {"industry": 0.5}]


async def test_more_evidence_comes_first_among_equal_scores() -> None:
    proven = Scored(found("z", 0.5).candidate, Score(0.5, {"x": 0.5}, (), 0.9))
    of = await discover("t1", company(), icp("x"), found("a", 0.5), proven)
    assert await names("t1", of) == ["z", "a"]


async def test_empty_discovery_is_stored() -> None:
    of = await discover("t1", company(), icp("x"), found("a", 0.5))
    await discover("t1", company(), icp("x"))
    known = await store.load_snapshot("t1", domain="acme.com", rule_name=RULE)
    assert known.discovery is not None
    assert known.discovery.candidates == 0
    assert await names("t1", of) == []


async def test_adding_candidates_is_idempotent() -> None:
    of = await discover("t1", company(), icp("x"), found("a", 0.5))
    for _ in range(2):
        await store.add_candidates("t1", RULE, of, [found("b", 0.6), found("a", 0.5)])
        assert await names("t1", of) == ["b", "a"]
    await store.add_candidates("t1", RULE, of, [])
    await store.add_candidates("t1", RULE, of, [found("a", 0.1), found("a", 0.7)])
    assert await names("t1", of) == ["a", "b"]


async def test_snapshot_prefers_discovery_of_its_rule() -> None:
    await discover("t1", company("one.com"), icp("x"))
    await discover("t1", company("one.com"), icp("y"), found("a", 1.0), rule="Other")
    await discover("t1", company("two.com"), icp("z"))
    for rule, expected in ((RULE, (RULE, 0)), ("Other", ("Other", 1)), ("Missing", ("Other", 1))):
        known = await store.load_snapshot("t1", domain="one.com", rule_name=rule)
        assert known.discovery is not None
        assert (known.discovery.rule_name, known.discovery.candidates) == expected


async def test_asked_for_returns_company_and_icp() -> None:
    of = await discover("t1", company("acme.com"), icp("Hotels"))
    key = DiscoveryKey("t1", RULE, of)
    assert await run(lambda c: store.asked_for(c, key), "t1") is None
    await store.save_profile("t1", company("acme.com"), confirmed=True)
    asked = await run(lambda c: store.asked_for(c, key), "t1")
    assert asked is not None
    assert asked[0] == company("acme.com")
    assert asked[1]["industries"] == ["hotels"]


def test_register_can_be_ingested_again() -> None:
    shipped = ROOT / "my_agent/companies/reference/made_up_register.csv"
    for _ in range(2):
        assert registered.ingest(shipped, report=print) == registered.Ingested(made_up.COUNT, 0)


def of_register(number: int, name: str, code: str, what: str, **more: Any) -> dict[str, Any]:
    row = {
        "tenant_id": SHARED,
        "uen": f"T00MU{number:04}X",
        "name": name,
        "entity_type": "",
        "status": "Live",
        "is_live": True,
        "registered_on": "2001-01-01",
        "primary_ssic": code,
        "primary_activity": what,
        "secondary_ssic": "",
        "secondary_activity": "",
        "address": "",
        "postal_code": "",
        "updated_at": store.now(),
    }
    return {**row, **more}


def keep(*rows: dict[str, Any]) -> None:
    with engine().writing(SHARED) as connection:
        upsert(connection, companies, rows)


async def best_of_register(ask: Icp, of: Company, **options: Any) -> list[str]:
    given = await register.rank("t1", of, ask, **{"limit": 3, **options})
    return [each.candidate.name for each in given.found]


async def test_best_companies_of_register_are_not_the_first_by_name() -> None:
    many = [of_register(n, f"AAA {n:03} PTE. LTD.", "49212", "Bus services") for n in range(200)]
    right = of_register(900, "ZEBRA PTE. LTD.", "49232", "Goods transport by road")
    by_name = of_register(901, "YAK COLD CHAIN PTE. LTD.", "49232", "Goods transport by road")
    gone = of_register(902, "XEROX", "49232", "Goods transport by road", is_live=False)
    await asyncio.to_thread(keep, *many, right, by_name, gone)
    ask: Icp = {**icp("transport"), "keywords": ["cold chain"]}
    customers = company("acme.com", "one.com")
    customers["customers"][0]["about"] = "We deliver goods by road with our fleet of trucks."
    found = await best_of_register(ask, customers)
    assert found[:2] == ["YAK COLD CHAIN PTE. LTD.", "ZEBRA PTE. LTD."]
    again = await best_of_register(ask, customers, without=["uen:T00MU0901X"])
    assert again[0] == "ZEBRA PTE. LTD."
    liked = await best_of_register(ask, customers, feedback={"uen:T00MU0007X": 1.0})
    assert "AAA 007 PTE. LTD." in liked


async def test_equally_good_companies_take_turns_by_industry_and_age() -> None:
    hotels = [
        of_register(n, f"H{n}", "55101", "Hotels", registered_on=f"20{n:02}-01-01")
        for n in range(1, 9)
    ]
    software = of_register(20, "S", "62011", "Software development", registered_on="2020-01-01")
    await asyncio.to_thread(keep, *reversed(hotels), software)
    assert await best_of_register(icp("hotels", "software development"), company()) == [
        "H1",
        "S",
        "H2",
    ]


async def test_register_says_why_it_gives_nothing() -> None:
    async def answer(ask: Icp) -> str:
        return (await register.rank("t1", company(), ask, limit=3)).answer

    assert await answer(icp("hotels")) == "empty"
    await asyncio.to_thread(keep, of_register(1, "S", "62011", "Software development"))
    assert await answer(icp("hotels")) == "nothing"
    assert await answer(icp("xyzzy")) == "no_codes"
    assert await answer({**icp("software"), "regions": ["Peru"]}) == "elsewhere"
    assert await answer(icp("software")) == "found"


async def test_own_company_of_tenant_replaces_shared_one() -> None:
    shared = of_register(1, "SHARED", "62011", "Software development")
    await asyncio.to_thread(keep, shared)
    own = {**shared, "tenant_id": "t1", "name": "OWN"}

    def write() -> None:
        with engine().writing("t1") as connection:
            upsert(connection, companies, [own])

    await asyncio.to_thread(write)
    assert await best_of_register(icp("software"), company()) == ["OWN"]


async def test_fifty_concurrent_enqueues_create_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    async def start(job_id: str, _: str) -> str:
        started.append(job_id)
        return "run-1"

    monkeypatch.setattr(background, "start", start)
    user = {"identity": "ada", "tenant_id": "t1"}
    config: Any = {"configurable": {"langgraph_auth_user": user}}
    made = await asyncio.gather(
        *(jobs.enqueue(config, rule_name=RULE, icp_hash="h1", keys=["a"]) for _ in range(50))
    )
    assert [job.id for job in made if job.created] == started
    assert {job.id for job in made} == set(started)


async def test_scores_are_exported() -> None:
    await discover("t1", company(), icp("x"), found("a", 0.5), found("b", 0.6))
    text = "".join([piece async for piece in export.latest_scores("t1")])
    assert [line.split(",")[2:4] for line in text.splitlines()[1:]] == [["1", "b"], ["2", "a"]]


# --- feedback ------------------------------------------------------------------


async def test_feedback_is_kept_for_tenant_rule_and_company() -> None:
    ice, box = scored_of("Ice", "frozen goods"), scored_of("Box", "steel parts")
    await feedback.save("acme", RULE, "rejected", [ice], "too small")
    await feedback.save("acme", RULE, "kept", [box])
    found = await feedback.feedback_of("acme", RULE)
    assert {each.name: (each.verdict, each.reason) for each in found.values()} == {
        "Ice": ("rejected", "too small"),
        "Box": ("kept", ""),
    }
    assert feedback.weights(found) == {"domain:Ice": -1.0, "domain:Box": 1.0}
    assert await feedback.feedback_of("acme", "Other rule") == {}
    assert await feedback.feedback_of("other", RULE) == {}
    await feedback.save("acme", RULE, "kept", [ice])
    assert (await feedback.feedback_of("acme", RULE))["domain:Ice"].verdict == "kept"
    await feedback.forget("acme", RULE, ["domain:Ice"])
    assert (await feedback.feedback_of("acme", RULE)).keys() == {"domain:Box"}


async def test_feedback_moves_the_ranking() -> None:
    names = {
        "Ice": "frozen goods cold storage",
        "Box": "steel parts",
        "Cold": "cold storage frozen",
    }
    found = [
        scored_of(name, about, 0.9 - at / 10) for at, (name, about) in enumerate(names.items())
    ]
    ice, box, _ = found
    assert feedback.ranked(found, {}) == found
    await feedback.save("acme", RULE, "rejected", [ice])
    said = await feedback.feedback_of("acme", RULE)
    assert [each.candidate.name for each in feedback.ranked(found, said)] == ["Box", "Cold"]
    # A company like the liked one rises above the next.
    await feedback.save("acme", RULE, "liked", [ice])
    said = await feedback.feedback_of("acme", RULE)
    assert [each.candidate.name for each in feedback.ranked(found, said)] == ["Ice", "Cold", "Box"]
    await feedback.save("acme", RULE, "kept", [box])
    said = await feedback.feedback_of("acme", RULE)
    assert [each.candidate.name for each in feedback.ranked(found, said)][:2] == ["Ice", "Box"]


def scored_of(name: str, about: str, total: float = 0.5) -> Scored:
    return Scored(Candidate(f"domain:{name}", name, "web", about=about), Score(total, {}))


# --- exclusions ----------------------------------------------------------------

# Of profiles without exclusions, computed before there were any.
HASH = "0c651366f64e3b15"


def test_profile_without_exclusions_has_the_hash_of_before() -> None:
    asked = {**icp("Wholesale trade"), "regions": ["Singapore"]}
    plain: Icp = {**asked}  # type: ignore[typeddict-item]
    of = company("acme.com", "a.com", "b.com")
    assert icp_hash(basis(of, plain)) == HASH
    assert icp_hash(basis(of, {**plain, "exclusions": []})) == HASH
    assert icp_hash(basis(of, {**plain, "exclusions": ["hospitals"]})) != HASH


def _results(*found: tuple[str, str, str]) -> Any:
    results = [{"href": href, "title": title, "body": body} for href, title, body in found]

    class Engine:
        def __init__(self, **_: Any) -> None:
            pass

        def text(self, query: str, **_: Any) -> Any:
            return results

    return Engine


async def test_exclusions_hold_for_web_and_register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICP_WEB_SEARCH", "true")
    engine_ = _results(
        (
            "https://www.widgets.sg",
            "Widgets Pte Ltd",
            "We are a wholesaler of widgets in Singapore.",
        ),
        ("https://www.mercy.sg", "Mercy Hospital", "A hospital of Singapore."),
    )
    monkeypatch.setattr("ddgs.DDGS", engine_)
    registered.ingest(REGISTER, report=lambda _: None)
    asked = icp("Wholesale trade")
    of = company("acme.com")
    every = await searching.search("acme", RULE, of, asked)
    before = await store.best_candidates("acme", RULE, icp_hash(basis(of, asked)), limit=100)
    assert {"domain:widgets.sg", "domain:mercy.sg"} <= {e.candidate.key for e in before}
    listed = next(each for each in before if each.candidate.source == "register")
    assert every.kept == len(before)
    without: Icp = {**asked, "exclusions": ["Hospitals", listed.candidate.industry]}
    await searching.search("acme", RULE, of, without)
    after = await store.best_candidates("acme", RULE, icp_hash(basis(of, without)), limit=100)
    keys = {each.candidate.key for each in after}
    assert "domain:widgets.sg" in keys
    assert "domain:mercy.sg" not in keys
    assert any(each.candidate.source == "register" for each in after)
    assert listed.candidate.industry not in {each.candidate.industry for each in after}


async def test_half_a_character_of_a_web_page_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICP_WEB_SEARCH", "true")
    broken = ("https://www.widgets.sg", "Widgets \ud83d Ltd", "They make \udc00 widgets.\x00")
    monkeypatch.setattr("ddgs.DDGS", _results(broken))
    asked, of = icp("Wholesale trade"), company("acme.com")
    outcome = await searching.search("acme", RULE, of, asked)
    assert outcome.kept == 1
    [only] = await store.best_candidates("acme", RULE, icp_hash(basis(of, asked)), limit=9)
    assert only.candidate.key == "domain:widgets.sg"
    assert "Widgets" in only.candidate.name
    f"{only.candidate.name} {only.candidate.about}".encode()

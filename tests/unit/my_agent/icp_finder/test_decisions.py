"""The decision about candidates for every combination of signals."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from my_agent.icp_finder.model import Company, Discovery, Icp, Profile, Rule, Snapshot
from my_agent.icp_finder.records.decisions import Signals, decide, signals
from my_agent.icp_finder.records.diffs import PARTS, basis
from my_agent.icp_finder.settings import IcpSettings

NAMES = [field.name for field in fields(Signals)]
NOW = datetime(2026, 3, 1, tzinfo=UTC)
RULE = "Default ICP"

# The reason that each signal gives against the stored candidates.
REASONS = {
    "changes": "the website has changed since the last search",
    "rule_drift": "a different rule is in force",
    "discovery_stale": "the last search is out of date",
    "profile_stale": "the company's profile is out of date",
}


def combination(values: tuple[bool, ...]) -> dict[str, bool]:
    return dict(zip(NAMES, values, strict=True))


ALL = [combination(values) for values in product((False, True), repeat=len(NAMES))]


def signals_of(flags: dict[str, bool]) -> Signals:
    values: dict[str, Any] = dict(flags)
    for name in ("changes", "changed_elsewhere"):
        values[name] = ("website",) if flags[name] else ()
    return Signals(**values)


@pytest.mark.parametrize(
    "flags", ALL, ids=lambda flags: "+".join(n for n, v in flags.items() if v) or "-"
)
def test_each_combination_of_signals_gives_its_decision(flags: dict[str, bool]) -> None:
    decisions = decide(signals_of(flags))
    reasons = [words for name, words in REASONS.items() if flags[name]]
    if not flags["profile_exists"]:
        expected = (False, False, "nothing is known of this company yet")
    elif not flags["icp_confirmed"]:
        expected = (False, False, "the ideal customer profile is not confirmed yet")
    elif reasons:
        expected = (False, True, reasons[0])
    elif flags["recent_candidates"]:
        told = "another session has changed the website" if flags["changed_elsewhere"] else "recent"
        expected = (True, False, told)
    else:
        expected = (False, True, "there are no candidates yet")
    assert (decisions["use_cached"], decisions["rerun_icp"]) == expected[:2]
    assert expected[2] in decisions["reason"]
    if expected[1]:
        assert all(words in decisions["reason"] for words in reasons)


def test_combinations_cover_all_signals() -> None:
    assert len(ALL) == 2**8
    assert NAMES == [
        "profile_exists",
        "icp_confirmed",
        "profile_stale",
        "discovery_stale",
        "rule_drift",
        "changes",
        "recent_candidates",
        "changed_elsewhere",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (("website",), "the website has changed"),
        (("industries",), "the industries have changed"),
        (("website", "regions"), "the website and regions have changed"),
        (
            PARTS,
            (
                "the website, customers, industries, sizes, regions, keywords and exclusions "
                "have changed"
            ),
        ),
    ],
)
def test_reason_names_the_changed_parts(changes: tuple[str, ...], words: str) -> None:
    decisions = decide(Signals(profile_exists=True, icp_confirmed=True, changes=changes))
    assert words in decisions["reason"]


# --- from a snapshot to signals ----------------------------------------------


def site(domain: str) -> Any:
    return {"website": f"https://{domain}", "domain": domain, "name": domain, "about": ""}


COMPANY: Company = {"site": site("acme.com"), "customers": [site(f"c{n}.com") for n in range(5)]}
ICP: Icp = {"industries": ["Freight"], "sizes": [], "regions": ["Singapore"], "keywords": []}


def known(
    *,
    days: float = 1,
    found_days: float = 1,
    rule: str = RULE,
    found_rule: str = RULE,
    icp: Icp = ICP,
    candidates: int = 7,
    confirmed: tuple[bool, bool] = (True, True),
) -> Snapshot:
    return Snapshot(
        Profile(COMPANY, confirmed[0], NOW - timedelta(days=days)),
        Rule(rule, icp, confirmed[1], NOW),
        Discovery(found_rule, basis(COMPANY, ICP), candidates, NOW - timedelta(days=found_days)),
    )


def seen(snapshot: Snapshot, **settings: float) -> Signals:
    return signals(snapshot, RULE, IcpSettings(**settings), NOW)  # type: ignore[arg-type]


GOOD = Signals(profile_exists=True, icp_confirmed=True, recent_candidates=True)


def test_fresh_unchanged_snapshot_gives_good_signals() -> None:
    assert seen(known()) == GOOD


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (Snapshot(), {"profile_exists": False, "icp_confirmed": False, "recent_candidates": False}),
        (known(days=15), {"profile_stale": True}),
        (known(days=14), {}),
        (known(found_days=14.01), {"discovery_stale": True, "recent_candidates": False}),
        (known(found_days=14), {}),
        (known(rule="Other"), {"rule_drift": True}),
        (known(found_rule="Other"), {"rule_drift": True}),
        (known(icp={**ICP, "industries": ["Steel"]}), {"changes": ("industries",)}),
        (known(icp={**ICP, "industries": ["  FREIGHT "]}), {}),
        (known(candidates=0), {"recent_candidates": False}),
        (known(confirmed=(False, True)), {"icp_confirmed": False}),
        (known(confirmed=(True, False)), {"icp_confirmed": False}),
        (
            Snapshot(Profile(COMPANY, True, NOW)),
            {"icp_confirmed": False, "recent_candidates": False},
        ),
    ],
)
def test_snapshot_gives_its_signals(snapshot: Snapshot, expected: Any) -> None:
    values = {name: getattr(GOOD, name) for name in NAMES} | expected
    assert seen(snapshot) == Signals(**values)


def test_settings_define_staleness() -> None:
    old = known(days=20, found_days=20)
    assert seen(old, profile_staleness_days=30, discovery_staleness_days=30) == GOOD
    assert seen(known(), profile_staleness_days=0.5).profile_stale
    assert seen(known(), discovery_staleness_days=0.5).discovery_stale

"""Rules for checkpoints: what a thread keeps, and which configurations are refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.checkpoint.base.id import uuid6

from langgraph_runtime_sql.retention_rules import BadRule, KeepRule, parse, rule_of

NOW = datetime.now(UTC)


def test_first_rule_about_a_thread_decides() -> None:
    rules = parse(
        [
            {"graph": "chat", "metadata": {"plan": "paid"}, "keep": "all"},
            {"graph": "chat", "keep": {"last": 3}},
            {"keep": {"days": 1.5}},
        ]
    )
    assert rule_of(rules, {"graph_id": "chat", "plan": "paid"}) is None
    assert rule_of(rules, {"graph_id": "chat", "plan": "free"}) == KeepRule(graph="chat", last=3)
    assert rule_of(rules, {"graph_id": "tutor"}) == KeepRule(days=1.5)
    assert rule_of(rules[:2], {}) is None


def test_bounds_count_checkpoints_and_days() -> None:
    ids = [str(uuid6(clock_seq=n)) for n in range(5)]
    assert KeepRule(last=2).expendable(ids, NOW) == ids[2::-1]
    assert KeepRule(last=9).expendable(ids, NOW) == []
    assert KeepRule().expendable(ids, NOW) == []
    assert KeepRule(days=1).expendable(ids, NOW) == []
    later = NOW + timedelta(days=2)
    # The newest one stays, however old it is, and so does one without a date.
    undated = "00000000-0000-4000-8000-000000000000"
    assert KeepRule(days=1).expendable([undated, *ids], later) == ids[3::-1]


def test_age_is_exact() -> None:
    old, new = str(uuid6()), str(uuid6())
    then = datetime.now(UTC) + timedelta(days=1)
    assert KeepRule(days=1).expendable([old, new], then - timedelta(seconds=5)) == []
    assert KeepRule(days=1).expendable([old, new], then + timedelta(seconds=5)) == [old]


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({}, "checkpoints"),
        ([1], "checkpoints[0]"),
        ([{"keep": "all", "graf": "a"}], "checkpoints[0].graf"),
        ([{"keep": "all"}, {"graph": 1, "keep": "all"}], "checkpoints[1].graph"),
        ([{"metadata": [], "keep": "all"}], "checkpoints[0].metadata"),
        ([{}], "checkpoints[0].keep"),
        ([{"keep": "some"}], "checkpoints[0].keep"),
        ([{"keep": {"last": 1, "days": 1}}], "checkpoints[0].keep"),
        ([{"keep": {"last": 0}}], "checkpoints[0].keep.last"),
        ([{"keep": {"last": True}}], "checkpoints[0].keep.last"),
        ([{"keep": {"last": 1.5}}], "checkpoints[0].keep.last"),
        ([{"keep": {"days": float("nan")}}], "checkpoints[0].keep.days"),
    ],
)
def test_unusable_rules_are_refused_with_their_place(section: Any, key: str) -> None:
    with pytest.raises(BadRule) as caught:
        parse(section)
    assert caught.value.key == key

"""`sql.limits`: what the section may hold, and which quota applies."""

from typing import Any

import pytest

from langgraph_runtime_sql.limit_settings import BadLimit, Limits, parse
from threadhold.config_file import ConfigError, read_config


@pytest.mark.parametrize(
    ("slots", "share", "reserved"),
    [(100, 0.1, 10), (1, 0.1, 0), (2, 0.1, 1), (10, 0, 0), (4, 1, 3)],
)
def test_share_of_the_slots_is_reserved_but_never_the_only_slot(
    slots: int, share: float, reserved: int
) -> None:
    assert Limits(reserved_share=share).reserved_slots(slots) == reserved


def test_named_quota_keeps_the_defaults_that_it_does_not_set() -> None:
    limits = parse(
        {
            "tenant": {"running_runs": 5, "threads": 100, "crons": 3},
            "tenants": {"acme": {"running_runs": 50, "crons": None}},
            "assistants": {"chat": {"priority": 2}},
        }
    )
    acme, other = limits.of("tenant", "acme"), limits.of("tenant", "other")
    assert (acme.running_runs, acme.threads, acme.crons) == (50, 100, None)
    assert (other.running_runs, other.threads, other.crons) == (5, 100, 3)
    assert limits.of("assistant", "0-0", "chat").priority == 2
    assert limits.of("user", "ada").running_runs is None


def test_limits_without_configuration_hold_until_they_are_removed() -> None:
    found = parse(None)
    assert found.of("thread").open_streams == 100
    assert found.of("tenant", "acme").open_streams == 1_000
    assert found.of("assistant", "chat").versions == 1_000
    assert found.of("tenant", "acme").pending_runs == 10_000
    # A configured limit is exact.
    assert not found.is_configured("pending_runs")
    assert parse({"user": {"pending_runs": 10_000}}).is_configured("pending_runs")
    section = {
        "tenant": {"threads": 5},
        "thread": {"open_streams": None},
        "assistants": {"chat": {"versions": None}},
    }
    changed = parse(section)
    assert changed.of("tenant", "acme").open_streams == 1_000
    assert changed.of("thread").open_streams is None
    assert changed.of("assistant", "chat").versions is None
    assert changed.of("assistant", "chat").version_bytes == found.of("assistant").version_bytes
    # Without tenants, all users are one.
    assert parse(section, has_tenants=False).of("tenant").open_streams is None


def test_claims_need_no_limits_unless_running_runs_or_turns_are_configured() -> None:
    assert not parse({"tenant": {"threads": 1}, "user": {"priority": 1}}).order_claims
    for section in ({"running_runs": 1}, {"weight": 2}, {"priority": 1}):
        assert parse({"tenant": section}).order_claims
        assert parse({"tenants": {"acme": section}}).order_claims
    assert parse({"assistant": {"running_runs": 1}}).order_claims


@pytest.mark.parametrize(
    ("section", "key", "problem"),
    [
        ([], "", "must be an object"),
        ({"tenant": 1}, "tenant", "must be an object"),
        ({"teant": {}}, "teant", "unknown key"),
        ({"tenant": {"runs": 1}}, "tenant.runs", "unknown key"),
        ({"user": {"threads": 1}}, "user.threads", "unknown key"),
        ({"threads": {}}, "threads", "unknown key"),
        ({"thread": {"threads": 1}}, "thread.threads", "unknown key"),
        ({"tenants": {"acme": {"threads": -1}}}, "tenants.acme.threads", "greater than 0"),
        ({"tenant": {"running_runs": 0}}, "tenant.running_runs", "greater than 0"),
        ({"tenant": {"running_runs": 1.5}}, "tenant.running_runs", "whole number"),
        ({"tenant": {"weight": True}}, "tenant.weight", "must be a number"),
        ({"tenant": {"weight": float("nan")}}, "tenant.weight", "greater than 0"),
        ({"tenant": {"priority": 5000}}, "tenant.priority", "from -1000 to 1000"),
        ({"reserved_share": 2}, "reserved_share", "from 0 to 1"),
    ],
)
def test_unusable_limit_is_refused_by_its_key(section: Any, key: str, problem: str) -> None:
    with pytest.raises(BadLimit, match=problem) as raised:
        parse(section)
    assert raised.value.key == key
    with pytest.raises(ConfigError) as refused:
        read_config({"graphs": {"a": "x:graph"}, "sql": {"limits": section}})
    assert f"sql.limits{'.' if key else ''}{key}: " in str(refused.value)

"""The rules of the thread policy."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hooks import policy
from hooks.policy import InvalidContext, Owner, Session
from hooks.thread_settings import ThreadSettings
from my_agent.threads.policy_status import TRANSITIONS, PolicyStatus
from server.cli import load_settings

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def settings(**given: Any) -> ThreadSettings:
    return ThreadSettings(**given)


def thread(name: str, days: float = 0, **metadata: Any) -> dict[str, Any]:
    return {"thread_id": name, "updated_at": NOW - timedelta(days=days), "metadata": metadata}


def test_thread_settings_have_the_specified_defaults() -> None:
    found = settings()
    assert found.thread_policy_agents == ("icp_finder",)
    assert found.single_thread_per_context is True
    assert found.max_open_threads_per_agent == 1
    assert found.thread_resume_window_days == 7
    assert found.thread_stale_days == 30
    assert found.auto_archive_stale_locked is True
    assert found.return_user_strict is True


@pytest.mark.parametrize(
    ("text", "agents"),
    [("a", ("a",)), (" a , b,", ("a", "b")), ("-", ()), ("a,-", ("a",))],
)
def test_agents_are_separated_by_commas(
    text: str, agents: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREAD_POLICY_AGENTS", text)
    assert settings().thread_policy_agents == agents
    # The server's settings include these settings, and have validators of their own.
    assert load_settings().thread_policy_agents == agents


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_open_threads_per_agent": 0},
        {"thread_stale_days": -1},
        {"thread_resume_window_days": -1},
        {"icp_rule_name": ""},
    ],
)
def test_invalid_settings_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(**wrong)


def test_thread_settings_survive_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = settings(thread_policy_agents=("a", "b"), auto_archive_stale_locked=False)
    for name, value in given.environment().items():
        monkeypatch.setenv(name, value)
    assert settings() == given
    monkeypatch.setenv(
        "THREAD_POLICY_AGENTS",
        settings(thread_policy_agents=()).environment()["THREAD_POLICY_AGENTS"],
    )
    assert settings().thread_policy_agents == ()


@pytest.mark.parametrize(
    ("metadata", "agent"),
    [
        ({"agent": "a"}, "a"),
        ({"graph_id": "g"}, "g"),
        ({"agent": "a", "graph_id": "g"}, "a"),
        ({}, None),
        ({"agent": 7}, None),
        ({"agent": ["a"]}, None),
    ],
)
def test_agent_of_thread_is_found_in_metadata(metadata: dict[str, Any], agent: str | None) -> None:
    assert policy.agent_of(metadata) == agent


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        ({"website": "https://www.acme.com/"}, "domain:acme.com"),
        ({"website": "acme.com", "rule_name": "R", "payload": {"a": 1}}, "domain:acme.com"),
        ({"rule_name": "R"}, "icp:R#"),
        ({"website": None, "rule_name": "R"}, "icp:R#"),
        ({}, "icp:Default ICP#"),
        ({"rule_name": None, "payload": {"a": 1}}, "icp:Default ICP#"),
    ],
)
def test_context_key_is_computed_from_metadata(metadata: dict[str, Any], key: str) -> None:
    assert policy.key_of(metadata, settings()).startswith(key)


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        ({"website": 7}, "website"),
        ({"website": ["acme.com"]}, "website"),
        ({"website": "no website"}, "website"),
        ({"rule_name": {}}, "rule_name"),
        ({"rule_name": "x" * 101}, "rule_name"),
        ({"payload": {"x": float("nan")}}, "payload"),
    ],
)
def test_invalid_context_names_its_key(metadata: dict[str, Any], key: str) -> None:
    with pytest.raises(InvalidContext) as caught:
        policy.key_of(metadata, settings())
    assert caught.value.key == key
    assert str(caught.value)


def test_governed_thread_has_context_key_and_policy_status() -> None:
    assert policy.is_governed({"context_key": "k", "status": "open"})
    assert policy.is_governed({"context_key": "k", "status": "archived"})
    # Other applications may use the key `status` for values of their own.
    assert not policy.is_governed({"status": "locked"})
    assert not policy.is_governed({"context_key": "k", "status": "draft"})
    assert not policy.is_governed({})


def test_sessions_of_different_owners_have_different_locks() -> None:
    parts = ["a", "b", "a', 'b", None, "None", 1, "1"]
    owners = [Owner(tenant, user) for tenant in parts for user in parts]
    names = [{Session(owner, "agent", key).name for key in ("a", "b")} for owner in owners]
    # A thread can change its context, so all contexts share one lock.
    assert [len(each) for each in names] == [1] * len(owners)
    assert len(set.union(*names)) == len(owners)


def test_thread_may_replace_threads_of_its_agent_and_tenant() -> None:
    session = Session(Owner("t", "u"), "agent", "a")
    assert session.may_follow(Session(Owner("t", "u"), "agent", "b"))
    # An administrator also sees the threads of other users.
    assert session.may_follow(Session(Owner("t", "v"), "agent", "a"))
    assert not session.may_follow(Session(Owner("s", "u"), "agent", "a"))
    assert not session.may_follow(Session(Owner("t", "u"), "other", "a"))


@given(st.integers(0, 6), st.integers(1, 4), st.booleans())
def test_open_threads_stay_within_the_limit(there: int, limit: int, single: bool) -> None:
    chosen = settings(max_open_threads_per_agent=limit, single_thread_per_context=single)
    threads = list(range(there))
    closed = list(policy.surplus(threads, chosen))
    left = [each for each in threads if each not in closed]
    if single:
        # The new thread counts too.
        assert len(left) + 1 <= limit
        assert left == threads[: limit - 1]
    else:
        assert closed == []


def test_surplus_thread_is_locked() -> None:
    changes = policy.closing(NOW, NOW, settings(), in_flight=False)
    assert changes == {
        "status": "locked",
        "locked_at": NOW.isoformat(),
        "reason": "superseded",
    }


def test_busy_thread_becomes_pending_lock() -> None:
    stale = NOW - timedelta(days=99)
    changes = policy.closing(stale, NOW, settings(), in_flight=True)
    assert changes == {"status": "pending_lock", "reason": "superseded"}


def test_closed_thread_stores_its_reason() -> None:
    for in_flight, status in ((False, "locked"), (True, "pending_lock")):
        closed = policy.closing(
            NOW, NOW, settings(), in_flight=in_flight, reason=policy.CONTEXT_CHANGED
        )
        assert (closed["status"], closed["reason"]) == (status, "context_changed")


@pytest.mark.parametrize(
    ("status", "same_context", "expected"),
    [
        ("open", True, "resume"),
        ("open", False, "replace"),
        *(
            (status, same, "follow")
            for status in ("pending_lock", "locked", "archived")
            for same in (True, False)
        ),
    ],
)
def test_succession_depends_on_status_and_context(
    status: str, same_context: bool, expected: str
) -> None:
    assert policy.succession(status, same_context=same_context) == expected


@pytest.mark.parametrize(
    ("days", "archive", "status"),
    [(29.9, True, "locked"), (30.1, True, "archived"), (30.1, False, "locked")],
)
def test_stale_thread_is_archived_if_configured(days: float, archive: bool, status: str) -> None:
    chosen = settings(auto_archive_stale_locked=archive)
    changes = policy.closing(NOW - timedelta(days=days), NOW, chosen, in_flight=False)
    assert changes["status"] == status
    assert changes["locked_at"] == NOW.isoformat()
    assert ("archived_at" in changes) == (status == "archived")


@pytest.mark.parametrize(("days", "recent"), [(0, True), (7, True), (7.01, False)])
def test_thread_is_recent_within_resume_window(days: float, recent: bool) -> None:
    assert policy.is_recent(NOW - timedelta(days=days), NOW, settings()) is recent


def test_refusal_names_status_and_next_step() -> None:
    body = policy.refusal("t", "locked")
    detail = body.pop("detail")
    assert "thread_locked" in detail
    assert "new thread" in detail
    assert body == {
        "error": "thread_locked",
        "hint": "create_new",
        "thread_id": "t",
        "status": "locked",
    }


def test_resolve_creates_resumes_or_offers_choice() -> None:
    one = thread("1", context_key="domain:one.com")
    two = thread("2", 1, context_key="icp:My rule#0011223344556677")
    assert policy.resolve([], settings()) is None
    assert policy.resolve([one], settings()) == {"action": "resume", "thread_id": "1"}
    assert policy.resolve([one, two], settings(return_user_strict=False)) == {
        "action": "resume",
        "thread_id": "1",
    }
    choice = policy.resolve([one, two], settings())
    assert choice is not None
    assert choice["action"] == "choose"
    assert choice["candidates"] == [
        {"thread_id": "1", "label": "one.com", "updated_at": one["updated_at"].isoformat()},
        {"thread_id": "2", "label": "My rule", "updated_at": two["updated_at"].isoformat()},
    ]
    assert choice["message"] == (
        "You have 2 open sessions: one.com and My rule. "
        "Which one would you like to continue, or shall we start a new one?"
    )


def test_choice_shows_three_threads_and_the_total() -> None:
    rows = [thread(str(n), n, context_key=f"domain:c{n}.com") for n in range(5)]
    choice = policy.resolve(rows, settings())
    assert choice is not None
    assert [each["thread_id"] for each in choice["candidates"]] == ["0", "1", "2"]
    assert choice["message"].startswith(
        "You have 5 open sessions; the latest are: c0.com, c1.com and"
    )


def test_equal_labels_get_times_and_punycode_is_decoded() -> None:
    rows = [
        thread("1", 0, context_key="icp:Rule#aa"),
        thread("2", 1, context_key="icp:Rule#bb"),
        thread("3", 2, context_key="domain:xn--bcher-kva.de"),
    ]
    choice = policy.resolve(rows, settings())
    assert choice is not None
    assert [each["label"] for each in choice["candidates"]] == [
        "Rule (04 May 2026, 12:00 UTC)",
        "Rule (03 May 2026, 12:00 UTC)",
        "bücher.de",
    ]


@given(days=st.integers(0, 100), in_flight=st.booleans(), archives=st.booleans())
def test_closing_follows_the_status_diagram(days: int, in_flight: bool, archives: bool) -> None:
    chosen = settings(auto_archive_stale_locked=archives)
    used = NOW - timedelta(days=days)
    closed = policy.closing(used, NOW, chosen, in_flight=in_flight)["status"]
    assert closed in TRANSITIONS[PolicyStatus.OPEN]
    if closed != PolicyStatus.ARCHIVED:
        following = policy.locking if in_flight else policy.archiving
        assert following(NOW)["status"] in TRANSITIONS[closed]


# --- answers to questions ------------------------------------------------------

ASKED = {"task": [{"id": "a" * 32, "value": {"id": "q1", "kind": "enrich"}}]}


@pytest.mark.parametrize(
    ("command", "interrupts", "bound"),
    [
        ({"resume": "yes"}, ASKED, {"resume": {"a" * 32: "yes"}}),
        ({"resume": {"choice": "yes"}}, ASKED, {"resume": {"a" * 32: {"choice": "yes"}}}),
        # Nothing waits, so the answer must not go to a later question.
        ({"resume": "yes"}, {}, {"resume": {"0" * 32: "yes"}}),
        ({"resume": {"b" * 32: "yes"}}, ASKED, None),
        ({"resume": "yes"}, {**ASKED, "other": [{"id": "c" * 32, "value": 1}]}, None),
        ({"update": {"x": 1}}, ASKED, None),
        (None, ASKED, None),
    ],
)
def test_answer_is_bound_to_the_waiting_interrupt(
    command: Any, interrupts: Any, bound: Any
) -> None:
    assert policy.pinned(command, interrupts) == bound


def test_waiting_questions_are_those_with_an_id() -> None:
    assert policy.question_ids({**ASKED, "x": [{"id": "d" * 32, "value": "plain"}]}) == ["q1"]
    assert policy.question_ids({}) == []

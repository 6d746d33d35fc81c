"""The fold of the diagnosis: replay equals the live state, and only tests make confidence."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from my_agent.diagnosis.record import confidence
from my_agent.diagnosis.record.events import (
    CONTENTS,
    ConclusionDrawn,
    EventRefused,
    MessageAdded,
    New,
    QuestionAnswered,
    QuestionAsked,
    SessionBranched,
    checked,
    new,
)
from my_agent.diagnosis.record.fold import apply, initial, replay
from my_agent.diagnosis.record.upcasting import UPCASTERS, UnknownEvent
from tests.support.diagnosis import (
    chained,
    evidence,
    note,
    observed,
    opened,
    proposed,
    result,
    stored,
)

SESSIONS = json.loads((Path(__file__).parent / "sessions.json").read_text("utf-8"))
TESTS = sorted(confidence.WEIGHTS)

names = st.sampled_from(["h1", "h2"])
changes = st.one_of(
    st.builds(note, st.text(min_size=1, max_size=20)),
    st.builds(lambda name: new(MessageAdded(id=name, role="user", text="hi")), st.text("ab", min_size=1, max_size=3)),
    st.builds(observed, st.sampled_from(["o1", "o2", "o3"])),
    st.builds(proposed, names, st.sampled_from(["payments", "checkout"])),
    st.builds(lambda name: New("investigation_started", {"hypothesis": name}), names),
    st.builds(
        evidence, st.sampled_from(TESTS), st.sampled_from(["for", "against"]), names,
        st.sampled_from(["o1", "o2"]),
    ),
    st.builds(result, st.sampled_from(TESTS), st.sampled_from(["passed", "failed", "unclear"]), names),
    st.just(new(QuestionAsked(id="q1", text="Logs?", missing=["logs"]))),
    st.just(new(QuestionAnswered(id="q1", text="no"))),
    st.just(new(ConclusionDrawn(missing=["logs"]))),
)  # fmt: skip


def accepted(wanted: list[New]) -> list[New]:
    """Return the events that the fold accepts, in their order."""
    kept: list[New] = []
    state = initial()
    for each in [*opened(), *wanted]:
        event = stored([*kept, each])[-1]
        try:
            state = apply(state, event)
        except EventRefused:
            continue
        kept.append(each)
    return kept


@given(st.lists(changes, max_size=25), st.data())
def test_replay_from_any_snapshot_equals_the_live_state(wanted: list[New], data: Any) -> None:
    events = stored(accepted(wanted))
    live = initial()
    for event in events:
        before = json.dumps(live)
        after = apply(live, event)
        assert json.dumps(live) == before, "the fold changed the state that it was given"
        live = after
    assert replay(events) == live
    cut = data.draw(st.integers(0, len(events)))
    snapshot = json.loads(json.dumps(replay(events[:cut])))
    assert replay(events[cut:], snapshot) == live


@given(st.lists(changes, max_size=25))
def test_no_cause_is_named_without_a_passed_test_on_it(wanted: list[New]) -> None:
    events = accepted([*wanted, new(ConclusionDrawn(missing=["logs"]))])
    state = replay(stored(events))
    for hypothesis in state["hypotheses"].values():
        passed = [each for each in hypothesis["tests"].values() if each["outcome"] == "passed"]
        if not passed:
            assert hypothesis["confidence"] <= confidence.UNTESTED
            assert hypothesis["status"] != "supported"
        assert all(any(e["direction"] == "for" for e in each["evidence"]) for each in passed)
    named = state["conclusion"]["hypothesis"]
    if named is not None:
        assert state["hypotheses"][named]["status"] == "supported"


def test_insisting_does_not_raise_confidence() -> None:
    once = replay(stored([*opened(), evidence(), result()]))
    often = replay(stored([*opened(), *[evidence(), result()] * 30]))
    assert often["confidence"] == once["confidence"] > confidence.UNTESTED
    # Thirty proposals and evidence without a result are still a guess.
    alone = replay(stored([*opened(), *[evidence()] * 30]))
    assert alone["confidence"] < confidence.UNTESTED


def test_cause_is_named_after_enough_tests_and_not_beside_an_equal_one() -> None:
    second = observed("o2", service="checkout")
    tested = [second]
    for test, name in (("evidence", "o1"), ("corroboration", "o2")):
        tested += [evidence(test, name=name), result(test)]
    end = new(ConclusionDrawn(missing=["logs"]))
    one = replay(stored([*opened(), *tested, end]))
    assert one["conclusion"]["outcome"] == "cause"
    assert one["conclusion"]["hypothesis"] == "h1"
    rival = [proposed("h2", "checkout"), New("investigation_started", {"hypothesis": "h2"})]
    for test, name in (("evidence", "o1"), ("corroboration", "o2")):
        rival += [evidence(test, hypothesis="h2", name=name), result(test, hypothesis="h2")]
    both = replay(stored([*opened(), *tested, *rival, end]))
    assert both["conclusion"]["outcome"] == "inconclusive"
    refuting = [evidence("order", "against"), result("order", "failed")]
    assert (
        replay(stored([*opened(), *tested, *refuting, end]))["conclusion"]["outcome"]
        == "inconclusive"
    )


def test_line_counts_once_however_many_tests_name_it() -> None:
    alone = [each for test in TESTS for each in (evidence(test), result(test))]
    end = new(ConclusionDrawn(missing=["logs"]))
    state = replay(stored([*opened(), *alone, end]))
    assert state["hypotheses"]["h1"]["confidence"] == 0.5
    assert state["conclusion"]["outcome"] == "inconclusive"
    # Two lines of the same source, component and kind are one witness of an earlier release.
    old = [observed("o2"), observed("o3")]
    for test, name in (("signature", "o1"), ("propagation", "o2"), ("metric", "o3")):
        old += [evidence(test, name=name), result(test)]
    told = replay(stored([*opened(), *old, end]))
    assert told["hypotheses"]["h1"]["confidence"] > confidence.SUPPORTED
    assert told["conclusion"]["outcome"] == "inconclusive"


def test_effect_of_the_leading_cause_is_no_rival() -> None:
    events = [*opened(), observed("o2", service="checkout")]
    effect = {**proposed("h2", "checkout").data, "parent": "h1"}
    events += [
        New("hypothesis_proposed", effect),
        New("investigation_started", {"hypothesis": "h2"}),
    ]
    for hypothesis in ("h1", "h2"):
        for test, name in (("evidence", "o1"), ("corroboration", "o2")):
            events += [
                evidence(test, hypothesis=hypothesis, name=name),
                result(test, hypothesis=hypothesis),
            ]
    state = replay(stored([*events, new(ConclusionDrawn(missing=[]))]))
    assert state["conclusion"]["hypothesis"] == "h1"


def test_fork_goes_on_from_its_state_and_keeps_what_came_after_it() -> None:
    before = stored([*opened(), note("early")])
    state = replay(before)
    lost = [note("late"), proposed("h2", "checkout")]
    back = new(SessionBranched(origin="s", seq=len(before), state=state))
    forked = replay(stored([*opened(), note("early"), *lost, back]))
    assert forked["hypotheses"] == state["hypotheses"]
    assert [each["text"] for each in forked["notes"]] == ["early"]
    assert (forked["seq"], forked["counts"]["note_added"]) == (len(before) + 3, 2)
    assert forked["timeline"][-1]["kind"] == "session_branched"
    with pytest.raises(EventRefused, match="not that after event"):
        replay(stored([*opened(), new(SessionBranched(origin="s", seq=3, state=state))]))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (New("evidence_recorded", {**evidence().data, "quote": "payments is guilty"}), "something else"),
        (evidence(name="o9"), "no observation"),
        (evidence(hypothesis="h9"), "no hypothesis"),
        (evidence("instinct"), "no test"),
        (result(), "names what was observed"),
        (result("order", "failed"), "names what was observed"),
        (New("observation_recorded", {**observed("o2").data, "end": 4000}), "no text at these offsets"),
        (proposed(), "already"),
        (new(QuestionAnswered(id="q1", text="x")), "is not open"),
    ],
)  # fmt: skip
def test_event_that_does_not_fit_is_refused(wrong: New, told: str) -> None:
    with pytest.raises(EventRefused, match=told):
        replay(stored([*opened(), wrong]))


def test_evidence_needs_an_investigation() -> None:
    begun = [each for each in opened() if each.type != "investigation_started"]
    with pytest.raises(EventRefused, match="not investigated"):
        replay(stored([*begun, evidence()]))


def test_content_must_match_its_type() -> None:
    with pytest.raises(EventRefused, match=r"conclusion_drawn.*confidence"):
        checked(New("conclusion_drawn", {"missing": [], "confidence": 1.0}))
    with pytest.raises(EventRefused, match="confidence_set"):
        checked(New("confidence_set", {"value": 1.0}))


@pytest.mark.parametrize("session", SESSIONS, ids=lambda each: each["about"][:20])
def test_session_of_an_earlier_version_is_replayed(session: Any) -> None:
    events = chained([(kind, version, data) for kind, version, data in session["events"]])
    state = replay(events)
    assert {key: state[key] for key in session["state"]} == session["state"]
    hypothesis = state["hypotheses"]["h1"]
    assert {key: hypothesis[key] for key in session["hypothesis"]} == session["hypothesis"]


def test_each_old_version_has_a_fixture_and_a_way_to_the_current_one() -> None:
    old = {(kind, v) for kind, content in CONTENTS.items() for v in range(1, content.VERSION)}
    assert set(UPCASTERS) == old
    shown = {(kind, version) for each in SESSIONS for kind, version, _ in each["events"]}
    assert old <= shown


@pytest.mark.parametrize(
    ("kind", "version", "told"),
    [("cause_decided", 1, "'cause_decided'"), ("note_added", 7, "version 7.*'note_added'")],
)
def test_unknown_event_stops_with_its_name(kind: str, version: int, told: str) -> None:
    with pytest.raises(UnknownEvent, match=told):
        replay(chained([(kind, version, {"author": "ada", "text": "x"})]))


def test_state_stays_small() -> None:
    state = replay(stored([*opened(), *[note("x" * 4000) for _ in range(500)]]))
    assert state["counts"]["note_added"] == 500
    assert len(json.dumps(state)) < 80_000

"""Fold: compute the state of a session from its events. Pure: no clock, no database, no model.

The state is plain JSON, so that a snapshot is equal to what it was made of. Its size is bounded:
old messages, notes and times of the timeline leave it, and stay in the events.
"""

from collections.abc import Callable, Iterable
from typing import Any

from my_agent.diagnosis.record import confidence
from my_agent.diagnosis.record.events import Event, EventRefused
from my_agent.diagnosis.record.upcasting import current

FOLD = 2
"""Version of the fold. Raise it with every change of a state; older snapshots are then ignored."""

State = dict[str, Any]
Data = dict[str, Any]

MESSAGES, TIMELINE, NOTES, EVIDENCE = 30, 80, 20, 12
"""The newest of each that a state, and a test of a hypothesis, holds."""
SOURCES, OBSERVATIONS, HYPOTHESES = 60, 200, 12
"""The most of each that a session can have."""
GIST = 400


def initial() -> State:
    """Return the state of a session without events."""
    return {
        "title": "",
        "seq": 0,
        "at": None,
        "counts": {},
        "messages": [],
        "sources": {},
        "observations": {},
        "hypotheses": {},
        "timeline": [],
        "notes": [],
        "question": None,
        "conclusion": None,
        # The event after which nothing that was given is left to look at.
        "looked": 0,
        "leading": None,
        "confidence": 0.0,
    }


def apply(state: State, event: Event) -> State:
    """Return the state after one more event. The given state stays as it is.

    Raises:
        EventRefused: the event does not fit the state.
        UnknownEvent: its type or version is unknown.
    """
    data = current(event.type, event.version, event.data)
    if event.seq != state["seq"] + 1:
        raise EventRefused(f"Event {event.seq} cannot follow event {state['seq']}")
    counts = {**state["counts"], event.type: state["counts"].get(event.type, 0) + 1}
    changed = _CHANGES[event.type](state, data, event)
    entry = timeline_entry(event.seq, event.type, data, event.at)
    if entry is not None:
        told = changed["timeline"] if "timeline" in changed else state["timeline"]
        changed["timeline"] = [*told, entry][-TIMELINE:]
    after = {**state, **changed, "counts": counts, "seq": event.seq, "at": event.at}
    return _judged(after) if "hypotheses" in changed else after


def replay(events: Iterable[Event], state: State | None = None) -> State:
    """Return the state after all events, from `state` or from the beginning."""
    state = initial() if state is None else state
    for event in events:
        state = apply(state, event)
    return state


def timeline_entry(seq: int, kind: str, data: Data, at: int) -> dict[str, Any] | None:
    """Return an event's entry in the timeline, or None if it has none.

    `when` is the time in the incident if the event has one; else the time of the event.
    """
    if kind == "observation_recorded":
        told = f"{data['service']}: {data['text']}" if data["service"] else data["text"]
        when = at if data["when"] is None else data["when"]
        return {"seq": seq, "when": when, "kind": "observed", "text": told[:GIST]}
    label = _TOLD.get(kind)
    if label is None:
        return None
    text = label(data)
    return {"seq": seq, "when": at, "kind": kind, "text": text[:GIST]}


_TOLD: dict[str, Callable[[Data], str]] = {
    "source_added": lambda data: f"{data['kind']} {data['name']} ({data['lines']} lines)",
    "hypothesis_proposed": lambda data: data["statement"],
    "test_recorded": lambda data: f"{data['hypothesis']}: {data['test']} {data['outcome']}",
    "question_asked": lambda data: data["text"],
    "note_added": lambda data: f"{data['author']}: {data['text']}",
    "session_branched": lambda data: f"Went on from event {data['seq']} of {data['origin']}",
    "conclusion_drawn": lambda data: "The investigation ended",
}


def _opened(state: State, data: Data, event: Event) -> State:
    if "session_opened" in state["counts"]:
        raise EventRefused("A session opens once")
    return {"title": data["title"]}


def _message(state: State, data: Data, event: Event) -> State:
    message = {"id": data["id"], "role": data["role"], "text": data["text"][:GIST]}
    return {"messages": (state["messages"] + [message])[-MESSAGES:]}


def _source(state: State, data: Data, event: Event) -> State:
    if data["id"] in state["sources"]:
        raise EventRefused(f"There is a source {data['id']!r} already")
    if len(state["sources"]) >= SOURCES:
        raise EventRefused(f"A session has at most {SOURCES} sources: begin a new one")
    about = {key: data[key] for key in ("kind", "format", "name", "lines")}
    added = {**about, "chars": data["chars"], "seq": event.seq, "at": event.at}
    # What was concluded does not cover the new source.
    return {"sources": {**state["sources"], data["id"]: added}, "conclusion": None}


def _observation(state: State, data: Data, event: Event) -> State:
    source = state["sources"].get(data["source"])
    if source is None:
        raise EventRefused(f"There is no source {data['source']!r}")
    if not data["start"] < data["end"] <= source["chars"]:
        raise EventRefused(f"The source {data['source']!r} has no text at these offsets")
    if data["id"] in state["observations"]:
        raise EventRefused(f"There is an observation {data['id']!r} already")
    if len(state["observations"]) >= OBSERVATIONS:
        raise EventRefused(f"A session has at most {OBSERVATIONS} observations")
    body = {key: value for key, value in data.items() if key != "id"}
    return {"observations": {**state["observations"], data["id"]: {**body, "seq": event.seq}}}


def _hypothesis(state: State, data: Data, event: Event) -> State:
    hypotheses = state["hypotheses"]
    if data["id"] in hypotheses:
        raise EventRefused(f"There is a hypothesis {data['id']!r} already")
    if len(hypotheses) >= HYPOTHESES:
        raise EventRefused(f"A session has at most {HYPOTHESES} hypotheses")
    if data["parent"] is not None and data["parent"] not in hypotheses:
        raise EventRefused(f"There is no hypothesis {data['parent']!r}")
    body = {key: value for key, value in data.items() if key != "id"}
    made = {**body, "started": False, "tests": {}, "seq": event.seq}
    return {"hypotheses": {**hypotheses, data["id"]: made}}


def _started(state: State, data: Data, event: Event) -> State:
    return _with(state, data["hypothesis"], {"started": True})


def _evidence(state: State, data: Data, event: Event) -> State:
    hypothesis = _found(state, data["hypothesis"])
    if not hypothesis["started"]:
        raise EventRefused(f"The hypothesis {data['hypothesis']!r} is not investigated yet")
    if data["test"] not in confidence.WEIGHTS:
        raise EventRefused(f"There is no test {data['test']!r}")
    observed = state["observations"].get(data["observation"])
    if observed is None:
        raise EventRefused(f"There is no observation {data['observation']!r}")
    if any(observed[key] != data[key] for key in ("source", "start", "end", "quote")):
        raise EventRefused(f"The observation {data['observation']!r} says something else")
    test = hypothesis["tests"].get(data["test"], _UNTESTED)
    keys = ("direction", "observation", "source", "start", "end", "quote")
    others = [each for each in test["evidence"] if each["observation"] != data["observation"]]
    evidence = [*others, {key: data[key] for key in keys}][-EVIDENCE:]
    tests = {**hypothesis["tests"], data["test"]: {**test, "evidence": evidence}}
    return _with(state, data["hypothesis"], {"tests": tests})


def _result(state: State, data: Data, event: Event) -> State:
    hypothesis = _found(state, data["hypothesis"])
    if not hypothesis["started"]:
        raise EventRefused(f"The hypothesis {data['hypothesis']!r} is not investigated yet")
    if data["test"] not in confidence.WEIGHTS:
        raise EventRefused(f"There is no test {data['test']!r}")
    test = hypothesis["tests"].get(data["test"], _UNTESTED)
    needed = {"passed": "for", "failed": "against"}.get(data["outcome"])
    if needed and all(each["direction"] != needed for each in test["evidence"]):
        raise EventRefused(f"A test that {data['outcome']} names what was observed")
    result = {**test, "outcome": data["outcome"], "reason": data["reason"]}
    tests = {**hypothesis["tests"], data["test"]: result}
    return _with(state, data["hypothesis"], {"tests": tests})


def _asked(state: State, data: Data, event: Event) -> State:
    return {"question": data, "looked": event.seq}


def _answered(state: State, data: Data, event: Event) -> State:
    question = state["question"]
    if question is None or question["id"] != data["id"]:
        raise EventRefused(f"The question {data['id']!r} is not open")
    return {"question": None}


def _note(state: State, data: Data, event: Event) -> State:
    note = {"seq": event.seq, "author": data["author"], "text": data["text"][:GIST]}
    return {"notes": (state["notes"] + [note])[-NOTES:]}


def _branched(state: State, data: Data, event: Event) -> State:
    """Go on from an earlier state. Numbers of events, and so of questions, go on, too."""
    earlier = data["state"]
    if earlier is None:
        return {}
    if data["seq"] >= event.seq or earlier.get("seq") != data["seq"]:
        raise EventRefused(f"The state is not that after event {data['seq']}")
    # What a later version of the fold has added begins as in a new session.
    known = {**initial(), **{name: earlier[name] for name in initial() if name in earlier}}
    return {name: value for name, value in known.items() if name not in ("counts", "seq", "at")}


def _concluded(state: State, data: Data, event: Event) -> State:
    """Name a cause only if the leading hypothesis is supported by tests, and is clearly ahead."""
    leading = state["leading"]
    found = state["hypotheses"].get(leading)
    named = found is not None and found["status"] == "supported" and not _rivals(state, found)
    return {
        "conclusion": {
            "outcome": "cause" if named else "inconclusive",
            "hypothesis": leading if named else None,
            "confidence": state["confidence"],
            "missing": [] if named else data["missing"],
            "seq": event.seq,
        },
        "question": None,
        "looked": event.seq,
    }


_UNTESTED: State = {"outcome": "unclear", "reason": "", "evidence": []}
_CHANGES: dict[str, Callable[[State, Data, Event], State]] = {
    "session_opened": _opened,
    "message_added": _message,
    "source_added": _source,
    "observation_recorded": _observation,
    "hypothesis_proposed": _hypothesis,
    "investigation_started": _started,
    "evidence_recorded": _evidence,
    "test_recorded": _result,
    "question_asked": _asked,
    "question_answered": _answered,
    "note_added": _note,
    "session_branched": _branched,
    "conclusion_drawn": _concluded,
}


def _found(state: State, name: str) -> State:
    found: State | None = state["hypotheses"].get(name)
    if found is None:
        raise EventRefused(f"There is no hypothesis {name!r}")
    return found


def _with(state: State, name: str, changes: State) -> State:
    changed = {**_found(state, name), **changes}
    return {"hypotheses": {**state["hypotheses"], name: changed}}


def _rivals(state: State, leading: State) -> list[State]:
    """Return the hypotheses that are nearly as likely as the leading one, and not in its chain."""
    return [
        each
        for each in state["hypotheses"].values()
        if each["status"] == "supported"
        and each["service"] != leading["service"]
        and leading["confidence"] - each["confidence"] < confidence.MARGIN
        and not _is_chain(state, leading, each)
    ]


def _is_chain(state: State, one: State, other: State) -> bool:
    """Return whether one hypothesis led to the other."""
    return any(each["seq"] == other["seq"] for each in _ancestors(state, one)) or any(
        each["seq"] == one["seq"] for each in _ancestors(state, other)
    )


def _ancestors(state: State, hypothesis: State) -> list[State]:
    """Return what led to a hypothesis. A parent is always older, so that this ends."""
    found = []
    while hypothesis["parent"] is not None:
        hypothesis = state["hypotheses"][hypothesis["parent"]]
        found.append(hypothesis)
    return found


def _judged(state: State) -> State:
    """Compute confidence and status of each hypothesis, and which one leads."""
    hypotheses = {}
    for name, each in state["hypotheses"].items():
        share, status = confidence.judge(each["tests"], state["observations"])
        hypotheses[name] = {
            **each,
            "confidence": share,
            "status": status if each["started"] else "proposed",
        }
    open_ = [name for name, each in hypotheses.items() if each["status"] != "refuted"]
    # Of equal ones, the first that was proposed leads.
    leading = max(open_, key=lambda name: hypotheses[name]["confidence"], default=None)
    share = 0.0 if leading is None else hypotheses[leading]["confidence"]
    return {**state, "hypotheses": hypotheses, "leading": leading, "confidence": share}

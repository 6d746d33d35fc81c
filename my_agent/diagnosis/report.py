"""Report: a session in Markdown. Pure; every sentence comes from the state."""

import re
from datetime import UTC, datetime
from typing import Any

from my_agent.diagnosis.record.fold import State

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#])")
_ENDS = ("refuted",)


def render(session: str, state: State, timeline: list[dict[str, Any]]) -> str:
    """Return the report of a session.

    Args:
        session: its id.
        state: its state.
        timeline: the entries of its timeline, in any order.
    """
    title = state["title"] or "No title yet"
    parts = [
        f"# Diagnosis: {plain(title)}",
        f"Session `{session}`, event {state['seq']}.",
        "## Conclusion",
        conclusion(state),
        "## Hypotheses",
        _tree(state) or "None yet.",
        "## Evidence",
        _evidence(state) or "None yet.",
        "## Ruled out",
        _ruled_out(state) or "Nothing yet.",
        "## Timeline",
        _timeline(timeline) or "Nothing yet.",
        "## Sources",
        _sources(state) or "None yet.",
    ]
    if state["notes"]:
        notes = [f"- {plain(each['author'])}: {plain(each['text'])}" for each in state["notes"]]
        parts += ["## Notes", "\n".join(notes)]
    return "\n\n".join(parts) + "\n"


def conclusion(state: State) -> str:
    """Return the conclusion in words."""
    found = state["conclusion"]
    if found is None:
        return "The investigation has not ended."
    if found["outcome"] == "cause":
        cause = state["hypotheses"][found["hypothesis"]]
        return f"**{plain(cause['statement'])}** (confidence {found['confidence']:.2f})."
    told = ["**Inconclusive.** No cause has enough evidence."]
    leading = state["hypotheses"].get(state["leading"])
    if leading is not None:
        told.append(
            f"The leading guess is that {plain(leading['statement'])}, with a confidence of only "
            f"{leading['confidence']:.2f}."
        )
    if found["missing"]:
        told.append("Missing: " + "; ".join(map(plain, found["missing"])) + ".")
    return " ".join(told)


def quotes(hypothesis: State, direction: str, sources: State) -> list[str]:
    """Return the quotes for or against a hypothesis, each with its place."""
    return [
        f"- {name}: {plain(test['reason'])}: {code(each['quote'])} "
        f"({_place(sources, each['source'])}, characters {each['start']} to {each['end']})"
        for name, test in hypothesis["tests"].items()
        for each in test["evidence"]
        if each["direction"] == direction
        and test["outcome"] == {"for": "passed", "against": "failed"}[direction]
    ]


def plain(text: str) -> str:
    """Return a text of a user or a log so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return a text as code, on one line."""
    return "`" + " ".join(text.replace("`", "'").split()) + "`"


def moment(micros: int) -> str:
    """Return a time as text."""
    date = datetime.fromtimestamp(micros / 1e6, UTC)
    return date.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def _place(sources: State, source: str) -> str:
    about = sources.get(source, {})
    return plain(f"{about.get('kind', 'source')} {about.get('name', '')}".strip())


def _tree(state: State) -> str:
    lines: list[str] = []

    def add(parent: str | None, depth: int) -> None:
        for name, each in state["hypotheses"].items():
            if each["parent"] == parent:
                tests = ", ".join(f"{test} {one['outcome']}" for test, one in each["tests"].items())
                lines.append(
                    f"{'  ' * depth}- {plain(each['statement'])}: **{each['status']}**, confidence "
                    f"{each['confidence']:.2f}, proposed by {each['by']}"
                    + (f" ({tests})" if tests else "")
                )
                add(name, depth + 1)

    add(None, 0)
    return "\n".join(lines)


def _evidence(state: State) -> str:
    parts = []
    for each in state["hypotheses"].values():
        if each["status"] not in _ENDS and (found := quotes(each, "for", state["sources"])):
            parts.append("\n".join([f"For “{plain(each['statement'])}”:", "", *found]))
    return "\n\n".join(parts)


def _ruled_out(state: State) -> str:
    parts = []
    for each in state["hypotheses"].values():
        found = quotes(each, "against", state["sources"])
        if each["status"] in _ENDS:
            parts.append("\n".join([f"{plain(each['statement'])}:", "", *found]))
    return "\n\n".join(parts)


def _timeline(entries: list[dict[str, Any]]) -> str:
    ordered = sorted(entries, key=lambda each: (each["when"], each["seq"]))
    return "\n".join(
        f"- {moment(each['when'])} {each['kind']}: {plain(each['text'])}" for each in ordered
    )


def _sources(state: State) -> str:
    return "\n".join(
        f"- {plain(each['kind'])} {plain(each['name'] or 'without a name')}, "
        f"{each['format']}, {each['lines']} lines"
        for each in state["sources"].values()
    )

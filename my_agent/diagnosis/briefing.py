"""Briefing: what a model sees of the evidence before it looks further. Pure.

It is bounded: short sources in full, of long ones the beginning, and what stands out in all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from my_agent.diagnosis.analysis.anomalies import Anomalies, Anomaly
from my_agent.diagnosis.fold import State
from my_agent.diagnosis.report import moment
from my_agent.diagnosis.texts import Found

SHORT, WHOLE = 12_000, 24_000
"""Characters of a source that is shown in full, and of all of them together."""
HEAD = 8
"""Lines of a long source that are shown."""
OUT, WIDTH = 60, 300
"""Lines that stand out, and their characters."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a source: all of its text, or its first lines."""

    text: str
    is_whole: bool


def render(
    state: State,
    found: Anomalies,
    shown: Mapping[str, Shown],
    *,
    tools: Sequence[str] = (),
    runbooks: str = "",
) -> str:
    """Return what a model sees first.

    Args:
        state: the session.
        found: what stands out.
        shown: what is shown of each source.
        tools: a line for each tool that can be called.
        runbooks: passages of runbooks that may fit, as text.
    """
    asked = "\n".join(each["text"] for each in state["messages"] if each["role"] == "user")
    parts = [f"The person wrote:\n{_fenced(asked[-2_000:] or state['title'])}"]
    parts.append("Sources (id, name, kind, lines):\n" + "\n".join(_sources(state)))
    parts += [_source(name, state["sources"][name], each) for name, each in shown.items()]
    if found.ranked:
        lines = [out(each, state) for each in found.ranked[:OUT]]
        parts.append("What stands out, the most telling first:\n" + _fenced("\n".join(lines)))
    if found.changes:
        lines = [out(each, state) for each in found.changes[:20]]
        parts.append("What was changed, in the order of time:\n" + _fenced("\n".join(lines)))
    if state["hypotheses"]:
        known = [
            f"- {each['statement']}: {each['status']}" for each in state["hypotheses"].values()
        ]
        parts.append("Judged so far:\n" + "\n".join(known))
    if tools:
        parts.append("Tools:\n" + "\n".join(tools))
    if runbooks:
        parts.append(f"Runbooks of this team:\n{_fenced(runbooks)}")
    return "\n\n".join(parts)


def numbered(lines: Sequence[Found], state: State) -> str:
    """Return lines of the evidence with their source and number."""
    return "\n".join(
        f"{each.source} {_name(state, each.source)}:{each.line}: {each.text[: 2 * WIDTH]}"
        for each in lines
    )


def out(each: Anomaly, state: State) -> str:
    """Return a line about something that stands out."""
    when = "" if each.when is None else f" {moment(each.when)}"
    often = f" {each.count} times" if each.count > 1 else ""
    line = f":{each.places[0].line}" if each.places else ""
    told = ", ".join(filter(None, [each.level, each.novelty if each.novelty == "new" else ""]))
    about = f" [{each.component}]" if each.component else ""
    place = f"{each.source} {_name(state, each.source)}{line}"
    return f"{place}{when}{about}{often} ({told or each.kind}): {each.text[:WIDTH]}"


def _sources(state: State) -> list[str]:
    return [
        f"- {name}, {each['name'] or 'pasted'}, {each['kind']} {each['format']}, {each['lines']} lines"
        for name, each in state["sources"].items()
    ]


def _source(name: str, about: Mapping[str, str], shown: Shown) -> str:
    part = "" if shown.is_whole else ", its beginning"
    return f"Source {name} {about['name']}{part}:\n{_fenced(shown.text)}"


def _name(state: State, source: str) -> str:
    return str(state["sources"].get(source, {}).get("name", ""))[:60]


def _fenced(text: str) -> str:
    """Return a text between fences that it does not contain."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"

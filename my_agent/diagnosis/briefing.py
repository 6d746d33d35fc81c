"""Briefing: what a model sees of the evidence at first, and when it looks. Pure.

It is bounded: short sources in full, of long ones the beginning, and what stands out in all of them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from my_agent.diagnosis.analysis.checks import Seen, shape
from my_agent.diagnosis.record.fold import State
from my_agent.diagnosis.record.texts import Found

SHORT, WHOLE = 12_000, 24_000
"""Characters of a source that is shown in full, and of all of them together."""
HEAD = 8
"""Lines of a long source that are shown."""
OUT, CHANGES = 50, 15
"""Lines that stand out, and that tell of changes."""
FOUND, WIDTH, BEFORE = 12, 500, 120
"""Lines that a search shows, their characters, and those before the word that was searched."""
SPANS = 6
"""Numbers of lines that say the same whose ranges are shown."""
_DECIMAL = re.compile(r"(?<![\w.-])-?[0-9]{1,15}(?:\.[0-9]{1,9})?(?![\w.-])")


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a source: all of its text, or its first lines."""

    text: str
    is_whole: bool


def render(
    state: State,
    shown: Mapping[str, Shown],
    out: Sequence[Seen],
    changed: Sequence[Seen],
    *,
    tools: Sequence[str] = (),
    runbooks: str = "",
) -> str:
    """Return the briefing.

    Args:
        state: the session.
        shown: what is shown of each source.
        out: lines that stand out, the most telling first.
        changed: lines that tell of a change, in the order of time.
        tools: a line for each tool that can be called.
        runbooks: passages of runbooks that may fit, as text.
    """
    asked = "\n".join(each["text"] for each in state["messages"] if each["role"] == "user")
    parts = [f"The person wrote:\n{_fenced(asked[-2_000:] or state['title'])}"]
    parts.append("Sources (id, name, kind, lines):\n" + "\n".join(_sources(state)))
    parts += [_source(name, state["sources"][name], each) for name, each in shown.items()]
    if out:
        told = "What stands out in the sources that are not shown in full, the most telling first:"
        parts.append(f"{told}\n{_fenced(chr(10).join(map(_line, out)))}")
    if changed:
        parts.append(f"What may be changes:\n{_fenced(chr(10).join(map(_line, changed)))}")
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


def found(lines: Sequence[Found], words: Sequence[str], state: State, *, is_all: bool) -> str:
    """Return what a search shows: how many lines there are, and different ones from all over them.

    Args:
        lines: what was found.
        words: what was searched.
        state: the session.
        is_all: whether there are no more.
    """
    alike: dict[str, list[Found]] = {}
    for each in lines:
        alike.setdefault(shape(each.text), []).append(each)
    groups = list(alike.values())
    told = f"Lines with {', '.join(words)}: {len(lines)}{'' if is_all else ' and more'}"
    if len(groups) > FOUND:
        told += f", of {len(groups)} kinds; some of them, from the first to the last"
        last = len(groups) - 1
        groups = [groups[round(last * number / (FOUND - 1))] for number in range(FOUND)]
    shown = [
        f"{each[0].source} line {each[0].line}: {_excerpt(each[0].text, words)}{_alike(each)}"
        for each in groups
    ]
    return "\n".join([f"{told}{_names(lines, state)}", *shown])


def _alike(lines: Sequence[Found]) -> str:
    """Return how many lines say the same as the first, and between what their numbers are."""
    if len(lines) == 1:
        return ""
    numbers = [[float(each) for each in _DECIMAL.findall(line.text)] for line in lines]
    spans = [
        f"{min(column):g} to {max(column):g}"
        for column in zip(*numbers, strict=False)
        if min(column) != max(column)
    ]
    values = f", with numbers from {'; '.join(spans[:SPANS])}" if spans else ""
    return f" [and {len(lines) - 1} alike, until line {lines[-1].line}{values}]"


def passage(lines: Sequence[Found]) -> str:
    """Return lines that follow each other."""
    if not lines:
        return "There are no such lines."
    told = f"{lines[0].source} from line {lines[0].line}"
    return "\n".join([told, *(f"{each.line}: {each.text[:WIDTH]}" for each in lines)])


def _names(lines: Sequence[Found], state: State) -> str:
    """Return which sources the lines are of, if they are of several."""
    several = dict.fromkeys(each.source for each in lines)
    named = [f"{each} {state['sources'][each]['name'][:60]}" for each in several]
    return f" (in {', '.join(named)})" if len(named) > 1 else ""


def _excerpt(text: str, words: Sequence[str]) -> str:
    """Return a line, or the part of a long one around the first word that was searched."""
    if len(text) <= WIDTH:
        return text
    lower = text.lower()
    at = min((place for each in words if (place := lower.find(each.lower())) >= 0), default=0)
    start = max(0, at - BEFORE)
    return f"[from character {start}] {text[start : start + WIDTH]}"


def _line(each: Seen) -> str:
    about = f" [{each.component}]" if each.component else ""
    return f"{each.source}{about}: {each.quote}"


def _sources(state: State) -> list[str]:
    return [
        f"- {name}, {each['name'] or 'pasted'}, {each['kind']} {each['format']}, {each['lines']} lines"
        for name, each in state["sources"].items()
    ]


def _source(name: str, about: Mapping[str, str], shown: Shown) -> str:
    part = "" if shown.is_whole else ", its beginning"
    return f"Source {name} {about['name']}{part}:\n{_fenced(shown.text)}"


def _fenced(text: str) -> str:
    """Return a text between fences that it does not contain."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"

"""Mermaid diagrams from templates. Labels are quoted and hold no character of the syntax."""

import re
from collections.abc import Sequence

from my_agent.research.model import Report
from my_agent.research.text import cut

_LABEL = 60


def label(text: str) -> str:
    """Return a text as the content of a quoted label."""
    plain = re.sub(r"[^\w\s.,%€$£+/'-]", " ", text)
    return cut(plain.replace("--", "-"), _LABEL) or "-"


def diagrams(report: Report) -> list[str]:
    """Return the diagrams of a report: its statements by section, and what they are about."""
    if not report.sections:
        return []
    return [_pie(report), _tree(report)]


def _pie(report: Report) -> str:
    lines = ["pie showData", '    title "Proven statements by section"']
    lines += [
        f'    "{label(section.title)}" : {len(section.claims)}' for section in report.sections
    ]
    return "\n".join(lines)


def _tree(report: Report) -> str:
    lines = ["flowchart LR", f'    q["{label(report.title)}"]']
    for number, section in enumerate(report.sections):
        lines.append(f'    q --> s{number}["{label(section.title)}"]')
        lines += _leaves(f"s{number}", [claim.text for claim in section.claims[:3]])
    return "\n".join(lines)


def _leaves(parent: str, texts: Sequence[str]) -> list[str]:
    return [
        f'    {parent} --> {parent}c{number}["{label(text)}"]' for number, text in enumerate(texts)
    ]

"""Showing: what stands out in the evidence, and what runbooks say, as text. Pure."""

from collections.abc import Sequence

from my_agent.diagnosis import report
from my_agent.diagnosis.analysis.anomalies import Anomaly
from my_agent.diagnosis.analysis.overview import Overview, Section
from my_agent.diagnosis.record.fold import State
from my_agent.diagnosis.runbooks import Passage

QUOTED = 240


def render(shown: Overview, state: State) -> str:
    """Return what stands out, by component, in the order in which it appeared.

    Args:
        shown: what stands out.
        state: the session, for the names of its sources.
    """
    if not shown.sections:
        return ""
    lines = ["What stands out, without a judgement:"]
    for section in shown.sections:
        lines.append(f"- {_head(section)}")
        lines += [f"  - {_line(each, state)}" for each in section.lines]
        if section.more:
            lines.append(f"  - and {section.more} more")
    if shown.more:
        lines.append(f"- {shown.more} more components")
    if shown.changes:
        lines += ["What was changed before:", *(f"- {_line(e, state)}" for e in shown.changes)]
    return "\n".join(lines)


def passages(found: Sequence[Passage]) -> str:
    """Return what runbooks say."""
    if not found:
        return ""
    lines = ["Your runbooks say:"]
    for each in found:
        where = report.plain(", ".join(filter(None, [each.document, each.section])))
        lines.append(f"- {where}: {report.plain(each.quote[:QUOTED])}")
    return "\n".join(lines)


def _head(section: Section) -> str:
    name = report.plain(section.component) or "Without a name"
    blamed = ", ".join(map(report.plain, section.blamed_by))
    return f"{name}, named by trouble of {blamed}" if blamed else name


def _line(each: Anomaly, state: State) -> str:
    when = "" if each.when is None else f"{report.moment(each.when)} "
    often = f", {each.count} times" if each.count > 1 else ""
    source = state["sources"].get(each.source, {})
    line = f" line {each.places[0].line}" if each.places else ""
    name = report.plain(str(source.get("name") or source.get("kind", "")))
    return f"{when}{report.code(each.text[:QUOTED])} ({name}{line}{often})"

"""Showing: what stands out in the evidence, and what runbooks say, as text. Pure."""

from collections.abc import Sequence

from my_agent.diagnosis import report
from my_agent.diagnosis.analysis.anomalies import Anomaly
from my_agent.diagnosis.analysis.checks import Seen
from my_agent.diagnosis.fold import State
from my_agent.diagnosis.runbooks import Passage

MOST = 8
"""Lines that stand out and are shown."""
QUOTED = 240


def render(seen: Sequence[Seen], found: Sequence[Anomaly], state: State) -> str:
    """Return what stands out, by component, in the order in which it appeared.

    Args:
        seen: the lines.
        found: what makes each of them stand out.
        state: the session, for the names of its sources.
    """
    about = {each.id: each for each in found}
    by: dict[str, list[Seen]] = {}
    for each in sorted(seen, key=lambda each: (each.when is None, each.when or 0)):
        by.setdefault(each.component, []).append(each)
    if not by:
        return ""
    lines = ["What stands out, the earliest first:"]
    for component, each in by.items():
        lines.append(f"- {report.plain(component) or 'Without a name'}")
        lines += [f"  - {_line(one, about.get(one.id), state)}" for one in each]
    return "\n".join(lines)


def passages(found: Sequence[Passage]) -> str:
    """Return what runbooks say."""
    if not found:
        return ""
    lines = ["Your runbooks say:"]
    for each in found:
        where = report.plain(" › ".join(filter(None, [each.document, each.section])))
        lines.append(f"- {where}: {report.plain(each.quote[:QUOTED])}")
    return "\n".join(lines)


def _line(seen: Seen, about: Anomaly | None, state: State) -> str:
    when = "" if seen.when is None else f"{report.moment(seen.when)} "
    often = f", {about.count} times" if about is not None and about.count > 1 else ""
    source = state["sources"].get(seen.source, {})
    line = f" line {about.places[0].line}" if about is not None and about.places else ""
    name = report.plain(str(source.get("name") or source.get("kind", "")))
    return f"{when}{report.code(seen.quote[:QUOTED])} ({name}{line}{often})"

"""The report as Markdown."""

from my_agent.research.model import Claim, Report, SourceRow
from my_agent.research.report.escaping import cell, inline
from my_agent.research.report.mermaid import diagrams

OFFLINE = (
    "No language model took part in at least one step: the statements are sentences of the pages, "
    "chosen by their words."
)
NOTHING = "No page that was read says anything about this question."


def render(report: Report) -> str:
    """Return the report as Markdown, with its sources and diagrams."""
    lines = [f"# {inline(report.title)}", ""]
    if report.offline:
        lines += [f"> {OFFLINE}", ""]
    if report.status != "completed":
        lines += [f"> The project is {report.status}. This report is partial.", ""]
    if report.limits_hit:
        lines += [f"> Limits that were reached: {', '.join(report.limits_hit)}.", ""]
    if report.found_nothing:
        lines += [NOTHING, ""]
    for section in report.sections:
        lines += [f"## {inline(section.title)}", "", *map(_claim, section.claims), ""]
    if report.disagreements:
        lines += ["## Sources differ", ""]
        for each in report.disagreements:
            lines += [f"- {inline(each.subject)}"]
            lines += [
                f"    - {date or 'undated'}: {inline(value)} [{entry}]"
                for value, date, entry in each.variants
            ]
        lines.append("")
    for diagram in diagrams(report):
        lines += ["```mermaid", diagram, "```", ""]
    if report.unsupported:
        lines += ["## Not supported", "", "These statements are not part of the report.", ""]
        lines += [f"- {inline(each.text)} ({inline(each.reason)})" for each in report.unsupported]
        lines.append("")
    if report.ledger:
        lines += ["## Quotes", ""]
        lines += [
            f"- [{each.id}] “{inline(each.quote)}” {inline(each.url)}" for each in report.ledger
        ]
        lines.append("")
    lines += ["## Sources", "", "| Title | URL | Published | Origin | Quality | Read |"]
    lines += ["| --- | --- | --- | --- | --- | --- |", *map(_source, report.sources), ""]
    usage = ", ".join(f"{name} {value:g}" for name, value in report.usage.items())
    lines += [f"Used: {usage}.", ""]
    return "\n".join(lines)


def _claim(claim: Claim) -> str:
    marks = "".join(f" [{each}]" for each in claim.entries)
    count = f" ({claim.origins} independent origins)" if claim.origins > 1 else ""
    return f"- {inline(claim.text)}{marks}{count}"


def _source(row: SourceRow) -> str:
    cells = (
        *(cell(row.title), cell(row.url), cell(row.published or ""), cell(row.origin)),
        *(f"{row.quality:.2f}", "yes" if row.crawled else "no"),
    )
    return f"| {' | '.join(cells)} |"

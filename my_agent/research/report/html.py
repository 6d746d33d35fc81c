"""The report as one HTML page that also prints well. It has no script and loads nothing."""

from html import escape
from urllib.parse import urlsplit

from my_agent.research.model import Claim, Report
from my_agent.research.report.markdown import NOTHING, OFFLINE

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%;font-size:.85rem}"
    "td,th{border:1px solid #999;padding:.3rem;text-align:left;overflow-wrap:anywhere}"
    ".note{border-left:4px solid #b60;padding-left:.8rem}"
    "@media print{body{max-width:none;margin:0}li,tr{break-inside:avoid}h2{break-after:avoid}}"
)


def render(report: Report) -> str:
    """Return the report as an HTML page."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'>",
        f"<title>{escape(report.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(report.title)}</h1>",
    ]
    if report.offline:
        parts.append(f"<p class='note'>{escape(OFFLINE)}</p>")
    if report.status != "completed":
        parts.append(
            f"<p class='note'>The project is {escape(report.status)}; this is partial.</p>"
        )
    if report.limits_hit:
        listed = escape(", ".join(report.limits_hit))
        parts.append(f"<p class='note'>Limits that were reached: {listed}.</p>")
    if report.found_nothing:
        parts.append(f"<p>{escape(NOTHING)}</p>")
    for section in report.sections:
        claims = "".join(map(_claim, section.claims))
        parts.append(f"<h2>{escape(section.title)}</h2><ul>{claims}</ul>")
    if report.disagreements:
        parts.append("<h2>Sources differ</h2><ul>")
        for each in report.disagreements:
            variants = "".join(
                f"<li>{escape(date or 'undated')}: {escape(value)} {_mark(entry)}</li>"
                for value, date, entry in each.variants
            )
            parts.append(f"<li>{escape(each.subject)}<ul>{variants}</ul></li>")
        parts.append("</ul>")
    if report.unsupported:
        refused = "".join(
            f"<li>{escape(each.text)} ({escape(each.reason)})</li>" for each in report.unsupported
        )
        parts.append(f"<h2>Not supported</h2><ul>{refused}</ul>")
    quotes = "".join(
        f"<li id='q{escape(each.id)}'>[{escape(each.id)}] “{escape(each.quote)}” {_link(each.url)}</li>"
        for each in report.ledger
    )
    parts.append(f"<h2>Quotes</h2><ul>{quotes}</ul>" if quotes else "")
    rows = "".join(
        f"<tr><td>{escape(row.title)}</td><td>{_link(row.url)}</td>"
        f"<td>{escape(row.published or '-')}</td><td>{escape(row.origin or '-')}</td>"
        f"<td>{row.quality:.2f}</td><td>{'yes' if row.crawled else 'no'}</td></tr>"
        for row in report.sources
    )
    heads = "".join(
        f"<th>{each}</th>" for each in ("Title", "URL", "Published", "Origin", "Quality", "Read")
    )
    parts.append(f"<h2>Sources</h2><table><tr>{heads}</tr>{rows}</table></body></html>")
    return "".join(parts)


def _claim(claim: Claim) -> str:
    marks = " ".join(map(_mark, claim.entries))
    count = f" ({claim.origins} independent origins)" if claim.origins > 1 else ""
    return f"<li>{escape(claim.text)} {marks}{count}</li>"


def _mark(entry: str) -> str:
    return f"<a href='#q{escape(entry)}'>[{escape(entry)}]</a>"


def _link(url: str) -> str:
    shown = escape(url)
    if urlsplit(url).scheme not in ("http", "https"):
        return shown
    return f"<a href='{shown}' rel='noreferrer noopener'>{shown}</a>"

"""Shortlist: number, page, filter and explain candidates for the conversation. Pure functions.

A candidate's number is its place in the list that the user saw last, also while the order changes.
"""

from collections.abc import Mapping, Sequence

from my_agent.companies import ssic
from my_agent.icp_finder import reports
from my_agent.icp_finder.model import Scored
from my_agent.icp_finder.records.feedback import Feedback
from my_agent.understanding import meaning
from my_agent.web.websites import readable

# Most candidates of a discovery that a conversation is about, and of one page.
MOST, PAGE = 1000, 10

# Fits that a filter understands besides plain words.
_WITH = {"website", "websites", "a website"}


def filtered(words: str, found: Sequence[Scored]) -> list[Scored]:
    """Return the candidates whose data contain each of the words in any form, such as `Johor`.

    If none does, those of the industry that the words name. `a website` gives those that have one.
    """
    wanted = words.casefold().strip(" .?!")
    if wanted in _WITH:
        return [each for each in found if each.candidate.site]
    asked = [word for word in wanted.replace(",", " ").split() if word not in ("and", "or", "the")]
    if whole := [each for each in found if all(meaning.has(word, _text(each)) for word in asked)]:
        return whole
    best = ssic.find(wanted, limit=1)
    codes = ssic.codes([wanted]) if best and best[0].score >= ssic.PHRASE else []
    of_it = [e for e in found if any(ssic.covers(code, e.candidate.ssic[:1]) for code in codes)]
    # A cold store is a warehouse that has something to do with cold, if one has.
    return [
        each for each in of_it if any(meaning.has(word, _text(each)) for word in asked)
    ] or of_it


def listed(found: Sequence[Scored], start: int, said: Mapping[str, Feedback]) -> str:
    """Return a page of the list, which is in order, after its first `start` candidates.

    Each is numbered, and marked with its feedback, given by key.
    """
    lines = []
    for at, each in enumerate(found[start : start + PAGE], start + 1):
        verdict = said[each.candidate.key].verdict if each.candidate.key in said else None
        mark = {"kept": " (kept)", "liked": " (liked)"}.get(verdict or "", "")
        lines.append(f"{at}. {reports.line(each)}{mark}")
    return "\n".join(lines)


def explained(scored: Scored, place: int, said: Mapping[str, Feedback]) -> str:
    """Explain a candidate: each criterion with its points, its evidence and where that comes from.

    Its place is its number in the list; 0: it is not in the list. Feedback is given by key.
    """
    candidate = scored.candidate
    lead = f"{place}. {candidate.name}" if place else candidate.name
    lines = [f"{lead}: {scored.score.total:.0%}. {_origin(scored)}"]
    for name, points in sorted(scored.score.parts.items(), key=lambda part: -part[1]):
        label = "likeness to your customers" if name == "customers" else name
        lines.append(f"- {label}: {points:.0%}: {_evidence(name, scored)}")
    lines += _details(scored)
    if (own := said.get(candidate.key)) is not None:
        why = f", because: {own.reason}" if own.reason else ""
        lines.append(f"You have {own.verdict} it on {own.at:%d %b %Y}{why}.")
    return "\n".join(lines)


def domain_of(scored: Scored) -> str:
    """Return the domain of a candidate; empty if it has none."""
    kind, _, domain = scored.candidate.key.partition(":")
    return domain if kind == "domain" else ""


def _text(scored: Scored) -> str:
    candidate = scored.candidate
    parts = (candidate.text, candidate.region, candidate.website, candidate.source)
    size = candidate.details.get("size")
    return " ".join(str(each) for each in (*parts, size) if each).casefold()


def _origin(scored: Scored) -> str:
    candidate = scored.candidate
    if candidate.source == "register":
        return f"From the register of companies (UEN {candidate.uen})."
    where = f": {readable(domain_of(scored))}" if domain_of(scored) else ""
    return f"Found on the web{where}."


def _evidence(name: str, scored: Scored) -> str:
    """Return the evidence for a criterion, and its source."""
    found = [
        f"{each['found']} ({_source(each['source'])})"
        for each in scored.score.evidence
        if each["part"] == name
    ]
    return "; ".join(found) or "not known, or it does not fit"


def _source(source: str) -> str:
    return readable(source.partition("://")[2].partition("/")[0]) if "://" in source else source


def _details(scored: Scored) -> list[str]:
    details = scored.candidate.details
    if not details:
        return ["It is not enriched yet."]
    lines = []
    for name, label in (("emails", "E-mail"), ("phones", "Telephone")):
        if values := details.get(name):
            lines.append(f"{label}: {', '.join(map(str, values))} (its website).")
    if note := details.get("note"):
        lines.append(str(note))
    return lines

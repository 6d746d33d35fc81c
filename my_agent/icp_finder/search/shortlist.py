"""Shortlist: number, page, filter and explain candidates for the conversation. Pure functions.

A candidate's number is its place in the list that the user saw last, also while the order changes.
"""

from collections.abc import Iterable, Mapping, Sequence

from my_agent.icp_finder import prompts
from my_agent.icp_finder.model import Scored
from my_agent.icp_finder.records.feedback import Feedback
from my_agent.web.websites import readable

# Most candidates of a discovery that a conversation is about, and of one page.
MOST, PAGE = 1000, 10

_CRITERIA = {
    "industry": "industry",
    "keywords": "keywords",
    "customers": "likeness to your customers",
    "region": "region",
    "size": "size",
    "website": "website",
}
# Fits that a filter understands besides plain words.
_WITH = {"website", "websites", "a website"}


def by_number(numbers: Iterable[int], view: Sequence[str], found: Sequence[Scored]) -> list[Scored]:
    """Return the candidates with these numbers in the list that the user saw.

    Args:
        numbers: from 1.
        view: keys of the candidates, as they were numbered.
        found: all candidates.
    """
    known = {each.candidate.key: each for each in found}
    keys = [view[number - 1] for number in numbers if 0 < number <= len(view)]
    return [known[key] for key in keys if key in known]


def by_name(name: str, found: Sequence[Scored]) -> list[Scored]:
    """Return the candidates with a name or domain; the closest first."""
    wanted = name.casefold().strip()
    if not wanted:
        return []
    exact = [each for each in found if wanted in (_name(each), domain_of(each))]
    return exact or [each for each in found if wanted in _name(each)]


def filtered(words: str, found: Sequence[Scored], regions: Iterable[str] = ()) -> list[Scored]:
    """Return the candidates whose data contain each of the words, or a website if that is asked.

    Args:
        words: such as `Johor` or `a website`.
        found: the candidates.
        regions: not used to filter; regions of the profile are shown with each candidate.
    """
    wanted = words.casefold().strip(" .?!")
    if wanted in _WITH:
        return [each for each in found if each.candidate.site]
    asked = [word for word in wanted.replace(",", " ").split() if word not in ("and", "or", "the")]
    return [each for each in found if all(word in _text(each) for word in asked)]


def listed(found: Sequence[Scored], start: int, said: Mapping[str, Feedback]) -> str:
    """Return a page of the list, numbered from `start` + 1.

    Args:
        found: the candidates in the order of the list.
        start: number of candidates before the page.
        said: feedback, by key.
    """
    lines = []
    for at, each in enumerate(found[start : start + PAGE], start + 1):
        verdict = said[each.candidate.key].verdict if each.candidate.key in said else None
        mark = {"kept": " (kept)", "liked": " (liked)"}.get(verdict or "", "")
        lines.append(f"{at}. {prompts.line(each)}{mark}")
    return "\n".join(lines)


def explained(scored: Scored, place: int, said: Mapping[str, Feedback]) -> str:
    """Explain a candidate: each criterion with its points, its evidence and where that comes from.

    Args:
        scored: the candidate.
        place: its number in the list; 0: it is not in the list.
        said: feedback, by key.
    """
    candidate = scored.candidate
    lead = f"{place}. {candidate.name}" if place else candidate.name
    lines = [f"{lead}: {scored.score.total:.0%}. {_origin(scored)}"]
    for name, points in sorted(scored.score.parts.items(), key=lambda part: -part[1]):
        label = _CRITERIA.get(name, name.replace("_", " "))
        lines.append(f"- {label}: {points:.0%}: {_evidence(name, scored)}")
    lines += _details(scored)
    if (own := said.get(candidate.key)) is not None:
        why = f", because: {own.reason}" if own.reason else ""
        lines.append(f"You have {own.verdict} it on {own.at:%d %b %Y}{why}.")
    return "\n".join(lines)


def domain_of(scored: Scored) -> str:
    """Return the domain of a candidate; empty if it has none."""
    key = scored.candidate.key
    return key.removeprefix("domain:") if key.startswith("domain:") else ""


def _name(scored: Scored) -> str:
    return scored.candidate.name.casefold()


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

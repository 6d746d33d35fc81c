"""Scoring: rate how well a candidate fits an ICP, as a sum of explainable features. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from my_agent.companies import ssic
from my_agent.companies.texts import words
from my_agent.icp_finder.model import WEIGHTS, Candidate, Company, Evidence, Icp, Score, Scored

# The most that a user's feedback adds or takes away.
FEEDBACK = 0.3
# Fit of a feature that is unknown: counts neither for nor against a candidate.
UNKNOWN = 0.5
# Fit of a company whose secondary activity matches.
SECONDARY = 0.7
# Fit of a company whose industry has that many first digits in common with a wanted one, most first.
RELATED = {4: 0.7, 3: 0.6, 2: 0.5}
# Number of words shared with a customer's site that counts as a full match.
FULL_OVERLAP = 12
# A likeness from here on is evidence.
ALIKE = 0.5


class Fit(NamedTuple):
    """The fit of a candidate in one feature."""

    value: float  # from 0 to 1
    found: str = ""  # what speaks for it, in words; empty without evidence
    source: str = ""  # where that was found


def score(
    candidate: Candidate,
    company: Company,
    icp: Icp,
    *,
    likeness: float | None = None,
    feedback: float = 0.0,
) -> Score:
    """Rate a candidate.

    A part is the share of the feature's weight in the weights of all wanted features, times the fit
    from 0 to 1. An empty list of the ICP leaves the sum. An unknown value counts as one half.

    Args:
        candidate: the candidate.
        company: the tenant's company; candidates should resemble its customers.
        icp: the ideal customer profile.
        likeness: how much it does what a customer does, from 0 to 1, as `likeness` has measured it;
            None: the words that their texts share decide.
        feedback: what the users think of it, from -1 (rejected) to 1 (wanted).
    """
    found = fits(candidate, company, icp, likeness=likeness)
    weight = sum(WEIGHTS[name] for name in found)
    parts = {name: round(WEIGHTS[name] / weight * fit.value, 4) for name, fit in found.items()}
    known = {name: fit for name, fit in found.items() if fit.found}
    evidence = tuple(
        Evidence(part=name, found=fit.found, source=fit.source) for name, fit in known.items()
    )
    proven = sum(WEIGHTS[name] for name in known) / weight
    plain = Score(round(sum(parts.values()), 4), parts, evidence, round(proven, 4))
    return with_feedback(plain, feedback)


def scored(
    candidates: Sequence[Candidate],
    company: Company,
    icp: Icp,
    likenesses: Iterable[float | None],
    feedback: Mapping[str, float],
) -> list[Scored]:
    """Rate candidates by `score`, with the likeness of each, and the feedback by key."""
    return [
        Scored(each, score(each, company, icp, likeness=alike, feedback=feedback.get(each.key, 0)))
        for each, alike in zip(candidates, likenesses, strict=True)
    ]


def with_feedback(found: Score, feedback: float) -> Score:
    """Return a score with this feedback, from -1 to 1, in place of the one that it may have."""
    parts = {name: part for name, part in found.parts.items() if name != "feedback"}
    evidence = tuple(each for each in found.evidence if each["part"] != "feedback")
    total = sum(parts.values())
    if feedback:
        # Bounded, so that the total stays between 0 and 1.
        parts["feedback"] = round(min(max(FEEDBACK * feedback, -total), 1 - total), 4)
        wish = "your team wants such a company" if feedback > 0 else "your team rejected it"
        evidence = (*evidence, Evidence(part="feedback", found=wish, source="feedback"))
    return Score(round(sum(parts.values()), 4), parts, evidence, found.proven)


def fits(
    candidate: Candidate, company: Company, icp: Icp, *, likeness: float | None = None
) -> dict[str, Fit]:
    """Return the fit of a candidate for each wanted feature.

    The website counts always: a company without one cannot be enriched. Customers count if one of
    their sites has been read.
    """
    found = {}
    if icp["industries"]:
        found["industry"] = _industry(candidate, icp["industries"])
    if icp["keywords"]:
        found["keywords"] = _said(candidate, icp["keywords"])
    if any(site["about"] for site in company["customers"]):
        found["customers"] = _likeness(candidate, company, likeness)
    if icp["regions"]:
        found["region"] = _region(candidate, icp["regions"])
    if icp["sizes"]:
        found["size"] = _size(candidate, icp["sizes"])
    site = candidate.site
    found["website"] = Fit(1.0, site, _origin(candidate)) if site else Fit(0.0)
    return found


def excluding(icp: Icp) -> Callable[[Candidate], bool]:
    """Return whether the profile excludes a candidate: by main activity, region, name or domain."""
    named = icp.get("exclusions", [])
    if not named:
        return lambda _: False
    codes, regions = ssic.codes(named), {each.casefold() for each in named}
    forms = "|".join(re.escape(each.removesuffix("s")) for each in named)
    said = re.compile(rf"\b(?:{forms})(?:s|es)?\b", re.IGNORECASE)

    def is_excluded(candidate: Candidate) -> bool:
        own = list(candidate.ssic[:1])
        if not own:
            # A page of the web names no code: what it says first counts.
            told = f"{candidate.name}. {candidate.about[:300]}"
            own = ssic.codes(ssic.industries_in(told, limit=1))
        return (
            any(ssic.covers(code, own) for code in codes)
            or candidate.region.casefold() in regions
            or candidate.key.removeprefix("domain:") in regions
            or said.search(f"{candidate.name} {candidate.industry}") is not None
        )

    return is_excluded


def _origin(candidate: Candidate) -> str:
    return "register" if candidate.source == "register" else "web search"


def _where(candidate: Candidate, holds: Callable[[str], bool]) -> str:
    """Return the source whose text holds something: the site that was read, or the search."""
    read = str(candidate.details.get("about") or "")
    listed = f"{candidate.name} {candidate.industry} {candidate.about}"
    if read and holds(read) and not holds(listed):
        return _read_from(candidate)
    return _origin(candidate)


def _read_from(candidate: Candidate) -> str:
    return candidate.site or "website"


def _said(candidate: Candidate, wanted: list[str]) -> Fit:
    """Rate the share of phrases that the texts about a candidate contain."""
    text = candidate.text
    said = [each for each in wanted if each.strip() and _contains(text, each)]
    if not said:
        return Fit(0.0)
    source = _where(candidate, lambda text: _contains(text, said[0]))
    return Fit(len(said) / len(wanted), ", ".join(said), source)


def _industry(candidate: Candidate, wanted: list[str]) -> Fit:
    """Rate the industry: the deeper the common code, and the surer the meaning, the better."""
    known, told = list(candidate.ssic), ""
    if not known:
        known = ssic.codes([candidate.industry]) if candidate.industry else []
        told = candidate.industry
    if not known:
        known = ssic.codes(ssic.industries_in(candidate.text))
    said = _said(candidate, wanted)
    if not known:
        return said._replace(value=max(UNKNOWN / 2, said.value))
    best, code = max(_depth(asked, known) for asked in wanted)
    if said.value > best:
        return said
    if not best:
        return Fit(0.0)
    what = f"SSIC {code} {ssic.title(code)}" if candidate.ssic else told or ssic.title(code)
    return Fit(best, what, _origin(candidate))


def _depth(asked: str, known: list[str]) -> tuple[float, str]:
    """Return the fit of a company's codes for a wanted industry, and the code that fits best."""
    matches = ssic.find(asked)
    rated = [(0.0, known[0])]
    for match in matches:
        if match.score >= matches[0].score - ssic.MAX_GAP:
            sure = match.score / matches[0].score
            for code, main in zip(known, (1.0, *[SECONDARY] * len(known)), strict=False):
                rated.append((round(main * sure * _common(match.code, code), 4), code))
    return max(rated, key=lambda each: each[0])


def _common(wanted: str, code: str) -> float:
    """Rate how close a company's code is to a wanted one: 1 if the wanted one covers it."""
    if ssic.covers(wanted, [code]):
        return 1.0
    digits = (each for each in RELATED if len(wanted) >= each and code.startswith(wanted[:each]))
    return RELATED.get(next(digits, 0), 0.0)


def _likeness(candidate: Candidate, company: Company, measured: float | None) -> Fit:
    """Rate how much a candidate is like a customer: by what both do, and by the words they share."""
    own, sites = words(candidate.text), company["customers"]
    shared = max((own & words(f"{site['name']} {site['about']}") for site in sites), key=len)
    value = max(min(1.0, len(shared) / FULL_OVERLAP), measured or 0.0)
    said = sorted(shared)[:5]
    if value < ALIKE and not said:
        return Fit(value)
    found = f"shares {', '.join(said)}" if said else "does what your customers do"
    return Fit(value, found, _where(candidate, lambda text: bool(words(text) & shared)))


def _region(candidate: Candidate, wanted: list[str]) -> Fit:
    found, source = candidate.region, _origin(candidate)
    if not found and candidate.details.get("region"):
        found, source = str(candidate.details["region"]), _read_from(candidate)
    if not found:
        said = [each for each in wanted if _contains(candidate.text, each)]
        if not said:
            return Fit(UNKNOWN)
        return Fit(1.0, said[0], _where(candidate, lambda text: _contains(text, said[0])))
    # Candidates of the register are in Singapore. They also match wider regions that contain it.
    fitting = [*wanted, *(["Singapore"] if around_singapore(wanted) else [])]
    if any(_contains(found, each) for each in fitting):
        return Fit(1.0, found, source)
    return Fit(0.0)


def _size(candidate: Candidate, wanted: list[str]) -> Fit:
    size = candidate.details.get("size")
    if size is None:
        return Fit(UNKNOWN)
    return Fit(1.0, f"{size} people", _read_from(candidate)) if size in wanted else Fit(0.0)


# fmt: off
AROUND_SINGAPORE = frozenset((
    "singapore", "sg", "asean", "southeast asia", "south east asia", "south-east asia", "sea",
    "asia", "asia pacific", "asia-pacific", "apac", "global", "worldwide", "international",
))
# fmt: on


def around_singapore(regions: Iterable[str]) -> bool:
    """Return whether one of the regions contains Singapore."""
    return any(" ".join(each.casefold().split()) in AROUND_SINGAPORE for each in regions)


def _contains(text: str, phrase: str) -> bool:
    return phrase.casefold() in text.casefold()

"""Scoring: rate how well a candidate fits an ICP, as a sum of explainable features. Pure."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from my_agent.icp_finder.model import Candidate, Company, Evidence, Icp, Score
from my_agent.icp_finder.search import ssic

WEIGHTS = {
    "industry": 0.35,
    "keywords": 0.2,
    "customers": 0.15,
    "region": 0.15,
    "size": 0.1,
    "website": 0.05,
}
"""Weight of each feature; the sum is 1. The features of unset criteria leave the sum."""

# The most that a user's feedback adds or takes away.
FEEDBACK = 0.3
# Fit of a feature that is unknown: counts neither for nor against a candidate.
UNKNOWN = 0.5
# Fit of a company whose secondary activity matches.
SECONDARY = 0.7
# Fit of a company whose industry has the first digits in common with a wanted one, by their number.
RELATED = {4: 0.7, 3: 0.6, 2: 0.5}
# Words up to this length are ignored in comparisons.
SHORT_WORD = 3
# Number of words shared with a customer's site that counts as a full match.
FULL_OVERLAP = 12
# A likeness from here on is evidence.
ALIKE = 0.5


class Fit(NamedTuple):
    """The fit of a candidate in one feature.

    Attributes:
        value: from 0 to 1.
        found: what speaks for it, in words; empty without evidence.
        source: where that was found.
    """

    value: float
    found: str = ""
    source: str = ""


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
        likeness: how much the candidate does what a customer does, from 0 to 1, as `likeness` has
            measured it; None: the words that their texts share decide.
        feedback: what the users think of the candidate, from -1 (rejected) to 1 (wanted).
    """
    found = fits(candidate, company, icp, likeness=likeness)
    weight = sum(WEIGHTS[name] for name in found)
    parts = {name: round(WEIGHTS[name] / weight * fit.value, 4) for name, fit in found.items()}
    evidence = [
        Evidence(part=name, found=fit.found, source=fit.source)
        for name, fit in found.items()
        if fit.found
    ]
    proven = sum(WEIGHTS[each["part"]] for each in evidence) / weight
    plain = Score(round(sum(parts.values()), 4), parts, tuple(evidence), round(proven, 4))
    return with_feedback(plain, feedback)


def with_feedback(found: Score, feedback: float) -> Score:
    """Return a score with this feedback in place of the one that it may have.

    Args:
        found: the score.
        feedback: what the users think of the candidate, from -1 (rejected) to 1 (wanted); 0: nothing.
    """
    parts = {name: part for name, part in found.parts.items() if name != "feedback"}
    evidence = tuple(each for each in found.evidence if each["part"] != "feedback")
    total = sum(parts.values())
    if feedback:
        # Bounded, so that the total stays between 0 and 1.
        parts["feedback"] = round(min(max(FEEDBACK * feedback, -total), 1 - total), 4)
        evidence = (*evidence, Evidence(part="feedback", found=_wish(feedback), source="feedback"))
    return Score(round(sum(parts.values()), 4), parts, evidence, found.proven)


def _wish(feedback: float) -> str:
    return "your team wants such a company" if feedback > 0 else "your team rejected it"


def fits(
    candidate: Candidate, company: Company, icp: Icp, *, likeness: float | None = None
) -> dict[str, Fit]:
    """Return the fit of a candidate for each wanted feature.

    The website counts always: a company without one cannot be enriched. Customers count if one of
    their sites has been read.
    """
    wanted: dict[str, tuple[bool, Callable[[], Fit]]] = {
        "industry": (bool(icp["industries"]), lambda: _industry(candidate, icp["industries"])),
        "keywords": (bool(icp["keywords"]), lambda: _keywords(candidate, icp["keywords"])),
        "customers": (
            any(site["about"] for site in company["customers"]),
            lambda: _likeness(candidate, company, likeness),
        ),
        "region": (bool(icp["regions"]), lambda: _region(candidate, icp["regions"])),
        "size": (bool(icp["sizes"]), lambda: _size(candidate, icp["sizes"])),
        "website": (True, lambda: _website(candidate)),
    }
    return {name: fit() for name, (is_wanted, fit) in wanted.items() if is_wanted}


def excluding(icp: Icp) -> Callable[[Candidate], bool]:
    """Return whether the profile excludes a candidate: by main activity, region, name or domain."""
    named = icp.get("exclusions", [])
    codes, regions = ssic.codes(named), {each.casefold() for each in named}
    forms = "|".join(re.escape(each.removesuffix("s")) for each in named)
    said = re.compile(rf"\b(?:{forms})(?:s|es)?\b", re.IGNORECASE)

    def is_excluded(candidate: Candidate) -> bool:
        if not named:
            return False
        own = list(candidate.ssic[:1])
        if not own:
            # A page of the web names no code: what it says first counts.
            own = ssic.codes(
                ssic.industries_in(f"{candidate.name}. {candidate.about[:300]}", limit=1)
            )
        return (
            any(ssic.covers(code, own) for code in codes)
            or candidate.region.casefold() in regions
            or candidate.key.removeprefix("domain:") in regions
            or said.search(f"{candidate.name} {candidate.industry}") is not None
        )

    return is_excluded


def text_of(candidate: Candidate) -> str:
    """Join all known texts about a candidate."""
    known = (candidate.name, candidate.industry, candidate.about, candidate.details.get("about"))
    return " ".join(str(each) for each in known if each)


def website_of(candidate: Candidate) -> str | None:
    """Return the candidate's website, or the one that enrichment has found."""
    return candidate.website or candidate.details.get("website")


def _origin(candidate: Candidate) -> str:
    return "register" if candidate.source == "register" else "web search"


def _where(candidate: Candidate, holds: Callable[[str], bool]) -> str:
    """Return the source whose text holds something: the site that was read, or the search."""
    read = str(candidate.details.get("about") or "")
    listed = f"{candidate.name} {candidate.industry} {candidate.about}"
    if read and holds(read) and not holds(listed):
        return website_of(candidate) or "website"
    return _origin(candidate)


def _industry(candidate: Candidate, wanted: list[str]) -> Fit:
    """Rate the industry: the deeper the common code, and the surer the meaning, the better."""
    known, source, told = list(candidate.ssic), _origin(candidate), ""
    if not known:
        known = ssic.codes([candidate.industry]) if candidate.industry else []
        told = candidate.industry
    if not known:
        known = ssic.codes(ssic.industries_in(text_of(candidate)))
    text = text_of(candidate)
    shared = _share(wanted, text)
    if not known:
        return Fit(max(UNKNOWN / 2, shared), *_named(candidate, wanted, shared))
    best, code = max((_depth(asked, known) for asked in wanted), default=(0.0, ""))
    if shared > best:
        return Fit(shared, *_named(candidate, wanted, shared))
    what = f"SSIC {code} {ssic.title(code)}" if candidate.ssic else told or ssic.title(code)
    return Fit(best, what if best > 0 else "", source if best > 0 else "")


def _named(candidate: Candidate, wanted: list[str], share: float) -> tuple[str, str]:
    said = [each for each in wanted if _contains(text_of(candidate), each)] if share else []
    if not said:
        return "", ""
    return ", ".join(said), _where(candidate, lambda text: _contains(text, said[0]))


def _depth(asked: str, known: list[str]) -> tuple[float, str]:
    """Return the fit of a company's codes for a wanted industry, and the code that fits best."""
    matches = ssic.find(asked)
    best = matches[0].score if matches else 1.0
    rated = [(0.0, known[0])]
    for match in matches:
        if match.score < best - ssic.MAX_GAP:
            continue
        sure = match.score / best
        for at, code in enumerate(known):
            main = 1.0 if at == 0 else SECONDARY
            rated.append((round(main * sure * _common(match.code, code), 4), code))
    return max(rated, key=lambda each: each[0])


def _common(wanted: str, code: str) -> float:
    """Rate how close a company's code is to a wanted one: 1 if the wanted one covers it."""
    if ssic.covers(wanted, [code]):
        return 1.0
    if wanted.isalpha():
        return 0.0
    same = next((n for n in range(min(len(wanted), len(code)), 1, -1) if wanted[:n] == code[:n]), 0)
    return RELATED.get(min(same, 4), 0.0)


def _keywords(candidate: Candidate, wanted: list[str]) -> Fit:
    text = text_of(candidate)
    said = [each for each in wanted if each.strip() and _contains(text, each)]
    if not said:
        return Fit(0.0)
    source = _where(candidate, lambda text: _contains(text, said[0]))
    return Fit(len(said) / len(wanted), ", ".join(said), source)


def _likeness(candidate: Candidate, company: Company, measured: float | None) -> Fit:
    """Rate how much a candidate is like a customer: by what both do, and by the words they share."""
    site_words = [words(f"{site['name']} {site['about']}") for site in company["customers"]]
    own = words(text_of(candidate))
    shared = max(site_words, key=lambda each: len(own & each), default=set())
    overlap = min(1.0, len(own & shared) / FULL_OVERLAP)
    value = overlap if measured is None else max(overlap, measured)
    said = sorted(own & shared)[:5]
    if value < ALIKE and not said:
        return Fit(value)
    found = f"shares {', '.join(said)}" if said else "does what your customers do"
    return Fit(value, found, _where(candidate, lambda text: bool(words(text) & shared)))


def _region(candidate: Candidate, wanted: list[str]) -> Fit:
    found, source = candidate.region, _origin(candidate)
    if not found and candidate.details.get("region"):
        found, source = str(candidate.details["region"]), website_of(candidate) or "website"
    if not found:
        text = text_of(candidate)
        said = [each for each in wanted if _contains(text, each)]
        if not said:
            return Fit(UNKNOWN)
        return Fit(1.0, said[0], _where(candidate, lambda text: _contains(text, said[0])))
    # Candidates of the register are in Singapore. They also match wider regions that contain it.
    fit = _any([*wanted, *(["Singapore"] if around_singapore(wanted) else [])], found)
    return Fit(fit, found if fit else "", source if fit else "")


def _size(candidate: Candidate, wanted: list[str]) -> Fit:
    size = candidate.details.get("size")
    if size is None:
        return Fit(UNKNOWN)
    fits = size in wanted
    source = website_of(candidate) or "website"
    return Fit(float(fits), f"{size} people" if fits else "", source if fits else "")


def _website(candidate: Candidate) -> Fit:
    site = website_of(candidate)
    return Fit(1.0, site, _origin(candidate)) if site else Fit(0.0)


AROUND_SINGAPORE = frozenset(
    (
        *(
            "singapore",
            "sg",
            "asean",
            "southeast asia",
            "south east asia",
            "south-east asia",
            "sea",
        ),
        *("asia", "asia pacific", "asia-pacific", "apac", "global", "worldwide", "international"),
    )
)


def around_singapore(regions: Iterable[str]) -> bool:
    """Return whether one of the regions contains Singapore."""
    return any(" ".join(each.casefold().split()) in AROUND_SINGAPORE for each in regions)


def words(text: str) -> set[str]:
    """Return the longer words of a text, case-folded."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > SHORT_WORD}


def _any(wanted: list[str], text: str) -> float:
    return 1.0 if any(_contains(text, each) for each in wanted) else 0.0


def _share(wanted: list[str], text: str) -> float:
    """Return the share of phrases that a text contains."""
    return sum(_contains(text, each) for each in wanted) / len(wanted) if wanted else 0.0


def _contains(text: str, phrase: str) -> bool:
    return phrase.casefold() in text.casefold()

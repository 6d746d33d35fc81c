"""Scoring: rate how well a candidate fits an ICP, as a sum of explainable features. Pure."""

import re
from collections.abc import Callable, Iterable

from my_agent.icp_finder import ssic
from my_agent.icp_finder.model import Candidate, Company, Icp, Score

WEIGHTS = {
    "industry": 0.35,
    "keywords": 0.2,
    "customers": 0.15,
    "region": 0.15,
    "size": 0.1,
    "website": 0.05,
}
"""Maximum contribution of each feature to the total; the sum is 1."""

# Fit of a feature that is unknown: counts neither for nor against a candidate.
UNKNOWN = 0.5
# Fit of a company whose secondary activity matches.
SECONDARY = 0.7
# Words up to this length are ignored in comparisons.
SHORT_WORD = 3
# Number of words shared with a customer's site that counts as a full match.
FULL_OVERLAP = 12


def score(candidate: Candidate, company: Company, icp: Icp) -> Score:
    """Rate a candidate.

    A part is the feature's weight times the fit from 0 to 1. An empty list of the ICP fits every
    candidate. An unknown value counts as one half.

    Args:
        candidate: the candidate.
        company: the tenant's company; candidates should resemble its customers.
        icp: the ideal customer profile.
    """
    parts = {name: round(WEIGHTS[name] * fit, 4) for name, fit in fits(candidate, company, icp)}
    return Score(round(sum(parts.values()), 4), parts)


def fits(candidate: Candidate, company: Company, icp: Icp) -> list[tuple[str, float]]:
    """Return the fit of a candidate for each feature, from 0 to 1."""
    features: dict[str, Callable[[], float]] = {
        "industry": lambda: _industry(candidate, icp["industries"]),
        "keywords": lambda: _share(icp["keywords"], text_of(candidate)),
        "customers": lambda: _likeness(candidate, company),
        "region": lambda: _region(candidate, icp["regions"]),
        "size": lambda: _size(candidate, icp["sizes"]),
        "website": lambda: 1.0 if website_of(candidate) else 0.0,
    }
    return [(name, features[name]()) for name in WEIGHTS]


def text_of(candidate: Candidate) -> str:
    """Join all known texts about a candidate."""
    known = (candidate.name, candidate.industry, candidate.about, candidate.details.get("about"))
    return " ".join(str(each) for each in known if each)


def website_of(candidate: Candidate) -> str | None:
    """Return the candidate's website, or the one that enrichment has found."""
    return candidate.website or candidate.details.get("website")


def _industry(candidate: Candidate, wanted: list[str]) -> float:
    """Rate the industry: 1 if the main code matches, less for another code or the same division."""
    if not wanted:
        return 1.0
    codes = ssic.codes(wanted)
    known = list(candidate.ssic) or ssic.codes([candidate.industry])
    if not known:
        known = ssic.codes(ssic.industries_in(text_of(candidate)))
    if not known:
        return max(UNKNOWN / 2, _share(wanted, text_of(candidate)))
    if any(ssic.covers(code, known[:1]) for code in codes):
        return 1.0
    if any(ssic.covers(code, known) for code in codes):
        return SECONDARY
    same_division = {code[:2] for code in codes} & {code[:2] for code in known}
    return max(UNKNOWN if same_division else 0.0, _share(wanted, text_of(candidate)))


def _likeness(candidate: Candidate, company: Company) -> float:
    """Rate how many words a candidate shares with the site of a customer."""
    site_words = [words(f"{site['name']} {site['about']}") for site in company["customers"]]
    if not any(site_words):
        return UNKNOWN
    shared = max(len(words(text_of(candidate)) & each) for each in site_words)
    return min(1.0, shared / FULL_OVERLAP)


def _region(candidate: Candidate, wanted: list[str]) -> float:
    if not wanted:
        return 1.0
    where = candidate.region or str(candidate.details.get("region") or "")
    if not where:
        return max(UNKNOWN, _any(wanted, text_of(candidate)))
    # Candidates of the register are in Singapore. They also match wider regions that contain it.
    return _any([*wanted, *(["Singapore"] if around_singapore(wanted) else [])], where)


def _size(candidate: Candidate, wanted: list[str]) -> float:
    size = candidate.details.get("size")
    if not wanted:
        return 1.0
    return UNKNOWN if size is None else float(size in wanted)


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
    """Return the share of phrases that a text contains; 1 if there are no phrases."""
    return sum(_contains(text, each) for each in wanted) / len(wanted) if wanted else 1.0


def _contains(text: str, phrase: str) -> bool:
    return phrase.casefold() in text.casefold()

"""Scoring: how well a candidate fits an ICP, as a sum of features that can be explained. Pure."""

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
"""What each feature adds to the total at most; together 1."""

# What is not known neither speaks for a candidate nor against it.
UNKNOWN = 0.5
# What a company does beside its main activity.
BESIDE = 0.7
# A word that is shared says something if it is longer than this.
SHORT = 3
# So many words shared with the customers' sites are as alike as it gets.
ALIKE = 12


def score(candidate: Candidate, company: Company, icp: Icp) -> Score:
    """How well a candidate fits.

    The parts are the features' weights, each times how well the candidate fits in that: an empty
    list of the ICP fits everybody, and what is not known of the candidate counts a half.

    Args:
        candidate: the candidate.
        company: the tenant's company; its customers are what candidates should be like.
        icp: what is asked for.
    """
    parts = {name: round(WEIGHTS[name] * fit, 4) for name, fit in fits(candidate, company, icp)}
    return Score(round(sum(parts.values()), 4), parts)


def fits(candidate: Candidate, company: Company, icp: Icp) -> list[tuple[str, float]]:
    """How well a candidate fits in each feature, from 0 to 1."""
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
    """Everything that is known of a candidate in words."""
    known = (candidate.name, candidate.industry, candidate.about, candidate.details.get("about"))
    return " ".join(str(each) for each in known if each)


def website_of(candidate: Candidate) -> str | None:
    """Its website, or the one that enrichment has found."""
    return candidate.website or candidate.details.get("website")


def _industry(candidate: Candidate, wanted: list[str]) -> float:
    """1 within the industry by its first code, less by another; half where only the division is."""
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
        return BESIDE
    beside = {code[:2] for code in codes} & {code[:2] for code in known}
    return max(UNKNOWN if beside else 0.0, _share(wanted, text_of(candidate)))


def _likeness(candidate: Candidate, company: Company) -> float:
    """How many words a candidate shares with the customers' sites."""
    said = [words(f"{site['name']} {site['about']}") for site in company["customers"]]
    if not any(said):
        return UNKNOWN
    shared = max(len(words(text_of(candidate)) & each) for each in said)
    return min(1.0, shared / ALIKE)


def _region(candidate: Candidate, wanted: list[str]) -> float:
    if not wanted:
        return 1.0
    where = candidate.region or str(candidate.details.get("region") or "")
    if not where:
        return max(UNKNOWN, _any(wanted, text_of(candidate)))
    # The register says where: in Singapore. Regions around it are wanted, too.
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
    """Whether one of these regions has Singapore in it."""
    return any(" ".join(each.casefold().split()) in AROUND_SINGAPORE for each in regions)


def words(text: str) -> set[str]:
    """The words of a text that say something, compared as they are."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > SHORT}


def _any(wanted: list[str], text: str) -> float:
    return 1.0 if any(_says(text, each) for each in wanted) else 0.0


def _share(wanted: list[str], text: str) -> float:
    """The share of phrases that a text says; all of none."""
    return sum(_says(text, each) for each in wanted) / len(wanted) if wanted else 1.0


def _says(text: str, phrase: str) -> bool:
    return phrase.casefold() in text.casefold()

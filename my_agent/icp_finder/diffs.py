"""Diffs: what a discovery was done for, and how it differs from what is asked now. Pure."""

from contexts.payloads import payload_hash
from my_agent.icp_finder.model import Basis, Company, Icp

PARTS = ("website", "customers", "industries", "sizes", "regions", "keywords")
"""What can differ, in the order in which people care."""


def basis(company: Company, icp: Icp) -> Basis:
    """What a discovery for this company and ICP depends on.

    Neither order, case nor repetition in a list matters; nor does how a website was spelled.
    """
    return {
        "website": company["site"]["domain"],
        "customers": sorted({site["domain"] for site in company["customers"]}),
        "icp": {
            "industries": _set(icp["industries"]),
            "sizes": _set(icp["sizes"]),
            "regions": _set(icp["regions"]),
            "keywords": _set(icp["keywords"]),
        },
    }


def icp_hash(of: Basis) -> str:
    """The first digits of the SHA-256 of a basis; equal for equal ones."""
    return payload_hash(of)


def changed(old: Basis, new: Basis) -> tuple[str, ...]:
    """Which of `PARTS` differ; none exactly where the hashes are equal."""
    before, after = _parts(old), _parts(new)
    return tuple(part for part in PARTS if before[part] != after[part])


def _parts(of: Basis) -> dict[str, object]:
    return {"website": of["website"], "customers": of["customers"], **of["icp"]}


def _set(words: list[str]) -> list[str]:
    return sorted({" ".join(word.split()).casefold() for word in words} - {""})

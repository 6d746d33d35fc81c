"""Diffs: compare what a discovery was based on with what is asked now. Pure functions."""

from collections.abc import Mapping
from typing import Any, cast

from my_agent.icp_finder.model import Basis, Company, Icp
from my_agent.threads.payloads import payload_hash

PARTS = ("website", "customers", "industries", "sizes", "regions", "keywords", "exclusions")
"""The parts of a basis, the most important to users first."""


def basis(company: Company, icp: Icp) -> Basis:
    """Return what a discovery for this company and ICP depends on.

    Order, case and duplicates in lists are ignored, and so are different spellings of a website.
    """
    given = cast("Mapping[str, list[str]]", icp)
    wanted: Any = {name: _set(given.get(name, [])) for name in PARTS[2:]}
    if not wanted["exclusions"]:
        # So that the hash of a profile without any is that of before there were exclusions.
        del wanted["exclusions"]
    return {
        "website": company["site"]["domain"],
        "customers": sorted({site["domain"] for site in company["customers"]}),
        "icp": wanted,
    }


def icp_hash(of: Basis) -> str:
    """Return the first digits of the SHA-256 of a basis. Equal bases have equal hashes."""
    return payload_hash(of)


def changed(old: Basis, new: Basis) -> tuple[str, ...]:
    """Return the `PARTS` that differ; none if and only if the hashes are equal."""
    before, after = _parts(old), _parts(new)
    return tuple(part for part in PARTS if before[part] != after[part])


def _parts(of: Basis) -> dict[str, object]:
    return {"exclusions": [], **of, **of["icp"]}


def _set(words: list[str]) -> list[str]:
    return sorted({" ".join(word.split()).casefold() for word in words} - {""})

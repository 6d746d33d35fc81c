"""Data types of the ICP finder: companies, ideal customer profiles, candidates, jobs.

Values in a thread's state or in a JSON column are TypedDicts; results of `records` are frozen
dataclasses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from typing_extensions import TypedDict


class Site(TypedDict):
    """A company's website and what could be read from it.

    Attributes:
        website: URL of its first page, such as `https://acme.example`.
        domain: its registrable domain; identifies the company.
        name: the name in the page's title; the domain if the page could not be read.
        about: text of the page, shortened; empty if the page could not be read.
    """

    website: str
    domain: str
    name: str
    about: str


class Company(TypedDict):
    """The tenant's own company.

    Attributes:
        site: its website.
        customers: websites of its best customers, which candidates should resemble.
    """

    site: Site
    customers: list[Site]


class Icp(TypedDict):
    """An ideal customer profile. An empty list means any.

    Attributes:
        industries: in words, such as `Freight transport by road`.
        sizes: ranges of `SIZES`.
        regions: countries or cities.
        keywords: words that the website of such a customer contains.
    """

    industries: list[str]
    sizes: list[str]
    regions: list[str]
    keywords: list[str]


SIZES = ("1-10", "11-50", "51-200", "201-500", "501-1000", "1001+")
"""Ranges of numbers of employees."""


class Basis(TypedDict):
    """The input of a discovery. After a change of it, the stored candidates no longer fit.

    Attributes:
        website: domain of the tenant's company.
        customers: domains of the customers, sorted.
        icp: the ideal customer profile, normalized.
    """

    website: str
    customers: list[str]
    icp: Icp


@dataclass(frozen=True)
class Profile:
    """A stored company."""

    company: Company
    confirmed: bool
    updated_at: datetime


@dataclass(frozen=True)
class Rule:
    """A stored ICP, under the name of a rule."""

    name: str
    icp: Icp
    confirmed: bool
    updated_at: datetime


@dataclass(frozen=True)
class Discovery:
    """The last search for candidates of a company.

    Attributes:
        rule_name: the rule of the search.
        basis: the input of the search.
        candidates: number of stored candidates.
        at: time of the search.
    """

    rule_name: str
    basis: Basis
    candidates: int
    at: datetime


@dataclass(frozen=True)
class Snapshot:
    """The stored data of a tenant's company. None means that nothing is stored.

    Attributes:
        profile: the company.
        rule: the rule with the requested name, or else the one saved last.
        discovery: the last search for the company under any rule.
    """

    profile: Profile | None = None
    rule: Rule | None = None
    discovery: Discovery | None = None


@dataclass(frozen=True)
class Candidate:
    """A company that may become a customer.

    Attributes:
        key: identifies the candidate in its discovery: `uen:...` or `domain:...`.
        ssic: codes of its activities, the main one first.
        industry: its main activity in words.
        details: result of the enrichment.
    """

    key: str
    name: str
    source: Literal["web", "register"]
    website: str | None = None
    uen: str | None = None
    ssic: Sequence[str] = ()
    industry: str = ""
    region: str = ""
    about: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """How well a candidate fits, from 0 to 1.

    Attributes:
        total: sum of the parts.
        parts: contribution of each feature to the total.
    """

    total: float
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Scored:
    """A candidate with its score."""

    candidate: Candidate
    score: Score


@dataclass(frozen=True)
class Job:
    """An enrichment in the background.

    Attributes:
        created: whether this call started its run.
        done: number of enriched candidates.
        total: number of candidates of the job.
    """

    id: str
    status: Literal["queued", "running", "done", "cancelled", "failed"]
    created: bool
    done: int
    total: int

"""What the ICP finder talks about: companies, an ideal customer profile, candidates, jobs.

What a thread's state or a JSON column holds is a TypedDict; what the records return is frozen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from typing_extensions import TypedDict


class Site(TypedDict):
    """A company's website, and what could be read of it.

    Attributes:
        website: URL of its first page, such as `https://acme.example`.
        domain: its registrable domain; tells companies apart.
        name: what the page calls itself; the domain where it could not be read.
        about: what the page says, shortened; empty where it could not be read.
    """

    website: str
    domain: str
    name: str
    about: str


class Company(TypedDict):
    """The tenant's own company.

    Attributes:
        site: its website.
        customers: websites of customers that it would like more of.
    """

    site: Site
    customers: list[Site]


class Icp(TypedDict):
    """An ideal customer profile; an empty list: any.

    Attributes:
        industries: in words, such as `Freight transport by road`.
        sizes: ranges of `SIZES`.
        regions: countries or cities.
        keywords: words that such a customer's website would have.
    """

    industries: list[str]
    sizes: list[str]
    regions: list[str]
    keywords: list[str]


SIZES = ("1-10", "11-50", "51-200", "201-500", "501-1000", "1001+")
"""Numbers of employees."""


class Basis(TypedDict):
    """What a discovery depends on. A change of it makes the candidates those of another question.

    Attributes:
        website: domain of the tenant's company.
        customers: domains of the customers, sorted.
    """

    website: str
    customers: list[str]
    icp: Icp


@dataclass(frozen=True)
class Profile:
    """A company as it was saved."""

    company: Company
    confirmed: bool
    updated_at: datetime


@dataclass(frozen=True)
class Rule:
    """An ICP as it was saved, under the name of a rule."""

    name: str
    icp: Icp
    confirmed: bool
    updated_at: datetime


@dataclass(frozen=True)
class Discovery:
    """The last search for candidates of a company.

    Attributes:
        rule_name: the rule that it was for.
        basis: what it was done for.
        candidates: how many it left.
        at: when.
    """

    rule_name: str
    basis: Basis
    candidates: int
    at: datetime


@dataclass(frozen=True)
class Snapshot:
    """What is known of a tenant's company; None: not yet.

    Attributes:
        rule: of the name that was asked for, or else the one saved last.
        discovery: the last one of the company, for whatever rule.
    """

    profile: Profile | None = None
    rule: Rule | None = None
    discovery: Discovery | None = None


@dataclass(frozen=True)
class Candidate:
    """A company that may become a customer.

    Attributes:
        key: tells candidates of one discovery apart: `uen:...` or `domain:...`.
        ssic: codes of its activities.
        industry: its main activity in words.
        details: what enrichment has found.
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
        parts: what each feature adds to the total.
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
        created: whether this call made it; else it was there already.
        done: candidates that are enriched, of `total`.
    """

    id: str
    status: Literal["queued", "running", "done", "cancelled", "failed"]
    created: bool
    done: int
    total: int

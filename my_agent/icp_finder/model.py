"""Data types of the ICP finder: companies, ideal customer profiles, candidates, jobs.

Values in a thread's state or in a JSON column are TypedDicts; results of `records` are frozen
dataclasses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NotRequired

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
        exclusions: industries, regions and words of companies that are never wanted.
    """

    industries: list[str]
    sizes: list[str]
    regions: list[str]
    keywords: list[str]
    exclusions: NotRequired[list[str]]


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


class Evidence(TypedDict):
    """What a part of a score is based on.

    Attributes:
        part: the feature.
        found: what was found, in words.
        source: where it was found: a URL, or `register`, `web search` or `feedback`.
    """

    part: str
    found: str
    source: str


@dataclass(frozen=True)
class Score:
    """How well a candidate fits, from 0 to 1.

    Attributes:
        total: sum of the parts.
        parts: contribution of each wanted feature to the total.
        evidence: what the parts are based on; a part without evidence is unknown or does not fit.
        proven: share of the wanted features, by weight, for which there is evidence.
    """

    total: float
    parts: Mapping[str, float]
    evidence: Sequence[Evidence] = ()
    proven: float = 0.0


@dataclass(frozen=True)
class Scored:
    """A candidate with its score."""

    candidate: Candidate
    score: Score


WebAnswer = Literal["found", "nothing", "failed", "off"]
"""What a search of the web gave: companies, none, no answer, or it is switched off."""

RegisterAnswer = Literal["found", "nothing", "empty", "no_codes", "elsewhere", "not_asked"]
"""What the register gave: companies; none of the industries; it holds no companies; the industries
match no code; the wanted regions exclude it; or it was not needed."""


class Sources(TypedDict):
    """What the sources of a search answered.

    Attributes:
        web: the answer of the web.
        register: the answer of the register.
    """

    web: WebAnswer
    register: RegisterAnswer


class Line(TypedDict):
    """A candidate in a version of a discovery."""

    key: str
    name: str
    total: float


class Change(Line):
    """A candidate whose score has changed.

    Attributes:
        before: the total in the version before.
    """

    before: float


class Changes(TypedDict):
    """What a version of a discovery changed. A first version changed nothing.

    Attributes:
        new: candidates that the version before did not have.
        gone: candidates that only the version before had.
        changed: candidates with a clearly different score.
    """

    new: list[Line]
    gone: list[Line]
    changed: list[Change]


@dataclass(frozen=True)
class Version:
    """A version of a discovery.

    Attributes:
        number: counts from 1.
        sources: what web and register answered.
        candidates: the candidates, best first.
        changes: what it changed.
        at: time of the search.
    """

    number: int
    sources: Sources
    candidates: Sequence[Line]
    changes: Changes
    at: datetime


@dataclass(frozen=True)
class Failure:
    """A candidate that could not be enriched.

    Attributes:
        why: the reason, a sentence.
    """

    key: str
    name: str
    why: str


@dataclass(frozen=True)
class Job:
    """An enrichment in the background.

    Attributes:
        created: whether this call started its run.
        done: number of candidates that were tried.
        total: number of candidates of the job.
        failures: candidates that were tried and could not be enriched.
    """

    id: str
    status: Literal["queued", "running", "done", "cancelled", "failed"]
    created: bool
    done: int
    total: int
    failures: Sequence[Failure] = ()

"""Data types of the ICP finder: companies, ideal customer profiles, candidates, jobs.

Values in a thread's state or in a JSON column are TypedDicts; results of `records` are frozen
dataclasses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, NotRequired

from typing_extensions import TypedDict

SIZES = ("1-10", "11-50", "51-200", "201-500", "501-1000", "1001+")
"""Ranges of numbers of employees."""

WEIGHTS = {
    "industry": 0.35,
    "keywords": 0.2,
    "customers": 0.15,
    "region": 0.15,
    "size": 0.1,
    "website": 0.05,
}
"""The features of a score with their weights; the sum is 1. Features of unset criteria leave it."""


class Site(TypedDict):
    """A company's website and what could be read from it."""

    website: str  # URL of its first page, such as `https://acme.example`
    domain: str  # its registrable domain; identifies the company
    name: str  # the name in the page's title; the domain if the page could not be read
    about: str  # text of the page, shortened; empty if the page could not be read


class Company(TypedDict):
    """The tenant's own company, and its best customers, which candidates should resemble."""

    site: Site
    customers: list[Site]


class Icp(TypedDict):
    """An ideal customer profile. An empty list means any."""

    industries: list[str]  # in words, such as `Freight transport by road`
    sizes: list[str]  # ranges of `SIZES`
    regions: list[str]  # countries or cities
    keywords: list[str]  # words that the website of such a customer contains
    # Industries, regions and words of companies that are never wanted.
    exclusions: NotRequired[list[str]]


class Basis(TypedDict):
    """The input of a discovery. After a change of it, the stored candidates no longer fit."""

    website: str  # domain of the tenant's company
    customers: list[str]  # domains, sorted
    icp: Icp  # normalized


class DiscoveryKey(NamedTuple):
    """Identifies a discovery, its candidates and its job."""

    tenant_id: str  # the owner; every transaction touches the rows of one tenant
    rule_name: str  # the rule of the search
    icp_hash: str  # hash of the `Basis`, `diffs.icp_hash`


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
    """The last search for candidates of a company, and the number of stored candidates."""

    rule_name: str
    basis: Basis
    candidates: int
    at: datetime


@dataclass(frozen=True)
class Snapshot:
    """The stored data of a tenant's company. None means that nothing is stored."""

    profile: Profile | None = None
    rule: Rule | None = None  # the rule with the requested name, or else the one saved last
    discovery: Discovery | None = None  # the last search for the company under any rule


@dataclass(frozen=True)
class Candidate:
    """A company that may become a customer."""

    key: str  # identifies it in its discovery: `uen:...` or `domain:...`
    name: str
    source: Literal["web", "register"]
    website: str | None = None
    uen: str | None = None
    ssic: Sequence[str] = ()  # codes of its activities, the main one first
    industry: str = ""  # its main activity in words
    region: str = ""
    about: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)  # result of the enrichment

    @property
    def text(self) -> str:
        """Return all known texts about it."""
        known = (self.name, self.industry, self.about, self.details.get("about"))
        return " ".join(str(each) for each in known if each)

    @property
    def site(self) -> str | None:
        """Return its website, or the one that enrichment has found."""
        return self.website or self.details.get("website")


class Evidence(TypedDict):
    """What a part of a score is based on."""

    part: str  # the feature
    found: str  # in words
    source: str  # a URL, or `register`, `web search` or `feedback`


@dataclass(frozen=True)
class Score:
    """How well a candidate fits, from 0 to 1."""

    total: float  # sum of the parts
    parts: Mapping[str, float]  # contribution of each wanted feature to the total
    evidence: Sequence[Evidence] = ()  # a part without evidence is unknown or does not fit
    proven: float = 0.0  # share of the wanted features, by weight, for which there is evidence


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
    """What the sources of a search answered."""

    web: WebAnswer
    register: RegisterAnswer


class Line(TypedDict):
    """A candidate in a version of a discovery."""

    key: str
    name: str
    total: float


class Change(Line):
    """A candidate whose score has changed."""

    before: float  # the total in the version before


class Changes(TypedDict):
    """What a version of a discovery changed. A first version changed nothing."""

    new: list[Line]  # candidates that the version before did not have
    gone: list[Line]  # candidates that only the version before had
    changed: list[Change]  # candidates with a clearly different score


@dataclass(frozen=True)
class Version:
    """A version of a discovery."""

    number: int  # counts from 1
    sources: Sources
    candidates: Sequence[Line]  # best first
    changes: Changes
    at: datetime


@dataclass(frozen=True)
class Failure:
    """A candidate that could not be enriched."""

    key: str
    name: str
    why: str  # a sentence


@dataclass(frozen=True)
class Job:
    """An enrichment in the background."""

    id: str
    status: Literal["queued", "running", "done", "cancelled", "failed"]
    created: bool  # whether this call started its run
    done: int  # number of candidates that were tried
    total: int  # number of candidates of the job
    failures: Sequence[Failure] = ()

"""What the parts of a research project exchange. Every value survives JSON by `dataclasses.asdict`."""

from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

SUPPORTED: Literal["supported"] = "supported"
NOT_SUPPORTED: Literal["not_supported"] = "not_supported"


@dataclass(frozen=True)
class SearchResult:
    """A hit of a search.

    Attributes:
        url: the address as the source gave it.
        title: the title.
        source: the kind of the source, such as "rss", "web" or "corpus".
        snippet: the text that the source shows.
        published: ISO date of publication; None if unknown.
        quality: from 0 (worst) to 1 (best).
        query: the query that found it.
    """

    url: str
    title: str
    source: str
    snippet: str = ""
    published: str | None = None
    quality: float = 0.5
    query: str = ""


@dataclass(frozen=True)
class SourceFailure:
    """A source that did not answer.

    Attributes:
        source: the kind of the source.
        reason: why, as a sentence.
    """

    source: str
    reason: str


@dataclass(frozen=True)
class SearchOutcome:
    """The results of one query in all sources, and the sources that failed."""

    results: tuple[SearchResult, ...] = ()
    failures: tuple[SourceFailure, ...] = ()


@dataclass(frozen=True)
class CrawledPage:
    """A page that was read.

    Attributes:
        url: the canonical address after redirects.
        requested_url: the address that was asked for.
        title: the title.
        text: the main text.
        sha256: of the text.
        published: ISO date of publication; None if unknown.
        site_name: the name of the site, or its host.
        fetched_at: ISO date and time.
        bytes: size of the answer in bytes.
        origin: id of the group of near-duplicates that the page belongs to.
        entities: features, competitors, technologies and so on, by kind.
        compressed: whether the text is an extract of the page.
    """

    url: str
    requested_url: str
    title: str
    text: str
    sha256: str
    published: str | None = None
    site_name: str = ""
    fetched_at: str = ""
    bytes: int = 0
    origin: str = ""
    entities: dict[str, list[str]] = field(default_factory=dict)
    compressed: bool = False


@dataclass(frozen=True)
class CrawlFailure:
    """A page that could not be read.

    Attributes:
        url: the address that was asked for.
        reason: why, as a sentence.
        retryable: whether another attempt may succeed.
    """

    url: str
    reason: str
    retryable: bool = False


@dataclass(frozen=True)
class LedgerEntry:
    """A quote: `text[start:end] == quote` in the text of the page with this hash.

    Attributes:
        id: "1", "2" and so on; the marker in the report.
        url: the page.
        sha256: of the page's text.
        start: first character of the quote.
        end: the character after the quote.
        quote: the words themselves.
    """

    id: str
    url: str
    sha256: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True)
class Claim:
    """A statement of the report.

    Attributes:
        text: the statement.
        entries: ids of the ledger entries that support it.
        origins: number of independent origins among them.
        status: whether the entries support it.
        reason: why they do not.
    """

    text: str
    entries: tuple[str, ...] = ()
    origins: int = 0
    status: Literal["supported", "not_supported"] = NOT_SUPPORTED
    reason: str = ""


@dataclass(frozen=True)
class Disagreement:
    """A fact on which the sources differ.

    Attributes:
        subject: what the fact is about.
        variants: value, ISO date of its source or "", and ledger id; the newest first.
    """

    subject: str
    variants: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Analysis:
    """What the analyzer found.

    Attributes:
        overview: fewer than 500 characters.
        features: statements about features.
        competitors: statements about competitors.
        swot: statements by "strengths", "weaknesses", "opportunities" and "threats".
        summary: Markdown with the overview and a summary of each part.
    """

    overview: str = ""
    features: tuple[Claim, ...] = ()
    competitors: tuple[Claim, ...] = ()
    swot: dict[str, list[Claim]] = field(default_factory=dict)
    summary: str = ""


@dataclass(frozen=True)
class Section:
    """A section of the report and its supported statements."""

    title: str
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class SourceRow:
    """A row of the table of sources.

    Attributes:
        url: the address.
        title: the title.
        published: ISO date of publication; None if unknown.
        origin: id of the group of near-duplicates.
        quality: from 0 to 1.
        crawled: whether the page was read.
    """

    url: str
    title: str
    published: str | None = None
    origin: str = ""
    quality: float = 0.0
    crawled: bool = False


@dataclass(frozen=True)
class Report:
    """A report: statements with their quotes, and what is known about how it came about.

    Attributes:
        project_id: the project.
        title: the title.
        question: what was asked.
        created_at: ISO date and time of the start.
        completed_at: ISO date and time of the report.
        status: status of the project.
        sections: the supported statements by section.
        disagreements: facts on which the sources differ.
        unsupported: statements that are not published, with the reasons.
        ledger: all quotes that statements refer to.
        sources: every page that was found.
        limits_hit: names of the budgets that ended the work early.
        usage: what was spent, by budget.
        offline: whether no model took part.
        found_nothing: whether no page said anything about the question.
    """

    project_id: str
    title: str
    question: str
    created_at: str
    completed_at: str
    status: str
    sections: tuple[Section, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    unsupported: tuple[Claim, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()
    sources: tuple[SourceRow, ...] = ()
    limits_hit: tuple[str, ...] = ()
    usage: dict[str, float] = field(default_factory=dict)
    offline: bool = False
    found_nothing: bool = False


@dataclass(frozen=True)
class ProjectSnapshot:
    """A project at one moment, as the state file and the backups hold it.

    Attributes:
        project_id: the project.
        title: the title.
        status: status of the project.
        progress: from 0 to 100.
        progress_message: what happens now.
        created_at: ISO date and time.
        updated_at: ISO date and time.
        results: all search results, best first.
        pages: all pages that were read.
        analysis: the analysis; None before it.
        citations: the ledger.
    """

    project_id: str
    title: str
    status: str
    progress: int
    progress_message: str
    created_at: str
    updated_at: str
    results: tuple[SearchResult, ...] = ()
    pages: tuple[CrawledPage, ...] = ()
    analysis: Analysis | None = None
    citations: tuple[LedgerEntry, ...] = ()


def as_dict(value: Any) -> dict[str, Any]:
    """Return a dataclass as a dict of JSON values."""
    return asdict(value)


def from_dict(kind: type[T], value: dict[str, Any]) -> T:
    """Return the dataclass of a dict that `as_dict` made. Unknown keys are ignored.

    Raises:
        TypeError: a required key is missing.
    """
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind) if each.name in value]  # type: ignore[arg-type]
    return kind(**{name: _built(hints[name], value[name]) for name in names})


def _built(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin, inner = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return from_dict(hint, value)
    if origin is tuple:
        kinds = [inner[0]] * len(value) if inner[-1] is ... else list(inner)
        return tuple(_built(kind, each) for kind, each in zip(kinds, value, strict=True))
    if origin is list:
        return [_built(inner[0], each) for each in value]
    if origin is dict:
        return {key: _built(inner[1], each) for key, each in value.items()}
    if inner and type(None) in inner:
        return _built(next(each for each in inner if each is not type(None)), value)
    return value

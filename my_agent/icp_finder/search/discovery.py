"""Discovery: search the web for candidates and for the websites of candidates.

If the search engines do not answer, the caller is told: no answer is not the same as no company.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import httpx

from my_agent.companies.texts import carries, plain_name
from my_agent.icp_finder.model import Candidate, Company, Icp, WebAnswer
from my_agent.icp_finder.settings import IcpSettings
from my_agent.storable import one_line
from my_agent.web import page_kinds, sites
from my_agent.web.pages import name_in
from my_agent.web.search import ask
from my_agent.web.websites import readable

logger = logging.getLogger(__name__)

# Timeouts in seconds: of one engine, and of all queries of one call of this module.
ENGINE_SECONDS, SEARCH_SECONDS = 5, 15.0
QUERIES = 4
RESULTS = 20
Result = dict[str, Any]


class WebUnreachable(RuntimeError):
    """The web could not be asked."""


@dataclass(frozen=True)
class Found:
    """The answer of the web."""

    answer: WebAnswer  # whether it was asked, and whether it gave companies
    # In the order of the search engine; also those found before a failure.
    candidates: Sequence[Candidate] = ()


async def discover(company: Company, icp: Icp, *, limit: int) -> Found:
    """Search the web for at most `limit` candidates. Each company occurs once.

    Neither the tenant's company nor its customers become candidates.
    """
    if not IcpSettings.from_environment().icp_web_search:
        return Found("off")
    known = {company["site"]["domain"], *(site["domain"] for site in company["customers"])}
    results, failed = await _search(queries(company, icp))
    found: dict[str, Candidate] = {}
    for result in results:
        candidate = _candidate(result, icp["regions"])
        if candidate is not None and candidate.key.removeprefix("domain:") not in known:
            found.setdefault(candidate.key, candidate)
    answer: WebAnswer = "failed" if failed else "found" if found else "nothing"
    return Found(answer, list(found.values())[: max(limit, 0)])


async def website_of(name: str, region: str) -> str | None:
    """Search for a company's own website: one whose domain matches the company's name.

    The region may be empty.

    Raises:
        WebUnreachable: no search engine answered.
    """
    if not IcpSettings.from_environment().icp_web_search:
        return None
    results, failed = await _search([f"{plain_name(name)} {region}".strip()])
    for website, domain in map(_site, results):
        if carries(domain, name):
            return website
    if failed:
        raise WebUnreachable("The web could not be asked")
    return None


def queries(company: Company, icp: Icp) -> list[str]:
    """Build the queries: each industry in each region, with the first keywords."""
    words = " ".join(icp["keywords"][:3])
    wanted = [(industry, words) for industry in icp["industries"]] or [(words, "")] * bool(words)
    asked = [
        " ".join(f"{what} companies {place} {more}".split())
        for place, (what, more) in product(icp["regions"] or [""], wanted)
    ]
    return (asked or [f"companies like {site['name']}" for site in company["customers"]])[:QUERIES]


async def _search(asked: Iterable[str]) -> tuple[list[Result], bool]:
    """Return the results of the queries, one after the other, until one fails, and whether it did."""
    found: list[Result] = []
    try:
        async with asyncio.timeout(SEARCH_SECONDS):
            for query in asked:
                found += await asyncio.to_thread(_ask, query)
    except (TimeoutError, ConnectionError) as error:
        logger.info("Web search failed: %s", type(error).__name__)
        return found, True
    return found, False


def _ask(query: str) -> list[Result]:
    return ask(query, seconds=ENGINE_SECONDS, most=RESULTS)


def _candidate(result: Result, regions: Iterable[str]) -> Candidate | None:
    title, body = (one_line(result.get(name)) for name in ("title", "body"))
    website, domain = _site(result)
    if not domain or page_kinds.kind(domain, str(result["href"]), title, body) != "company":
        return None
    text = f"{title} {body}".casefold()
    return Candidate(
        key=f"domain:{domain}",
        name=name_in(title) or readable(domain),
        source="web",
        website=website,
        region=next((region for region in regions if region.casefold() in text), ""),
        about=body,
    )


def _site(result: Result) -> tuple[str, str]:
    """Return URL and domain of a result; empty if it is not a company's website."""
    link = str(result.get("href") or "")
    try:
        url, domain = httpx.URL(link), sites.domain(link)
    except (httpx.InvalidURL, ValueError):
        return "", ""
    if url.scheme not in ("http", "https") or domain in page_kinds.KNOWN:
        return "", ""
    return f"{url.scheme}://{url.netloc.decode()}", domain

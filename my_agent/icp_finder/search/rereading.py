"""Rereading: read the websites of a company and its customers again."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from my_agent.icp_finder.model import Company, Site
from my_agent.icp_finder.search import website
from my_agent.web.fetch import SiteError


@dataclass(frozen=True)
class Reread:
    """A company after its websites were read again.

    Attributes:
        company: the company; a site that could not be read is as before.
        read: domains that were read.
        unread: domains that could not be read.
    """

    company: Company
    read: Sequence[str]
    unread: Sequence[str]


async def reread(company: Company) -> Reread:
    """Read all websites of a company again, concurrently.

    Args:
        company: the stored company.
    """
    old = [company["site"], *company["customers"]]
    new = await asyncio.gather(*(_read(site) for site in old))
    site, *customers = [after or before for before, after in zip(old, new, strict=True)]
    domains = [(before["domain"], after) for before, after in zip(old, new, strict=True)]
    return Reread(
        {"site": site, "customers": customers},
        [domain for domain, after in domains if after is not None],
        [domain for domain, after in domains if after is None],
    )


async def _read(site: Site) -> Site | None:
    try:
        return await website.read_site(site["website"])
    except SiteError:
        return None

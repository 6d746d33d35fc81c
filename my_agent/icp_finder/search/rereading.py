"""Rereading: read the websites of a company and its customers again."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from my_agent.icp_finder.model import Company, Site
from my_agent.icp_finder.search import website
from my_agent.web.fetch import SiteError


@dataclass(frozen=True)
class Reread:
    """A company after its websites were read again."""

    company: Company  # a site that could not be read is as before
    read: Sequence[str]  # domains that were read
    unread: Sequence[str]  # domains that could not be read


async def reread(company: Company) -> Reread:
    """Read all websites of a company again, concurrently."""
    old = [company["site"], *company["customers"]]
    read_again = await asyncio.gather(*map(_read, old))
    new = {each["domain"]: found for each, found in zip(old, read_again, strict=True)}
    site, *customers = [new[each["domain"]] or each for each in old]
    read = [domain for domain, found in new.items() if found is not None]
    unread = [domain for domain, found in new.items() if found is None]
    return Reread({"site": site, "customers": customers}, read, unread)


async def _read(site: Site) -> Site | None:
    try:
        return await website.read_site(site["website"])
    except SiteError:
        return None

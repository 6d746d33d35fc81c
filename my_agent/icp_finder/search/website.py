"""Read companies' websites, within the time and the networks of the settings."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from my_agent.icp_finder.model import Company, Site
from my_agent.icp_finder.settings import IcpSettings
from my_agent.web import pages
from my_agent.web.fetch import SiteError
from my_agent.web.pages import Page
from my_agent.web.sites import domain


async def read_site(website: str) -> Site:
    """Read the first page of a company's website. Raises the same errors as `pages.read`."""
    page = await read_page(website)
    return {"website": website, "domain": domain(website), "name": page.name, "about": page.about}


async def read_page(website: str) -> Page:
    """Read a page. Raises the same errors as `pages.read`."""
    settings = IcpSettings.from_environment()
    return await pages.read(website, settings.icp_private_networks, settings.icp_site_seconds)


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
    with suppress(SiteError):
        return await read_site(site["website"])
    return None

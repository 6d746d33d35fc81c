"""Read companies' websites, within the time and the networks of the settings."""

from my_agent.icp_finder.model import Site
from my_agent.icp_finder.settings import IcpSettings
from my_agent.web import pages
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

"""Enriching: read details of one candidate from its website."""

import asyncio
from typing import Any

from my_agent.icp_finder.model import SIZES, Candidate
from my_agent.icp_finder.search import discovery, website
from my_agent.icp_finder.values import touches
from my_agent.web.contacts import contacts
from my_agent.web.fetch import SiteError, SiteUnreadable
from my_agent.web.pages import Page
from my_agent.web.staff import numbers

# Seconds between attempts to read a site that may answer later. In the background there is time.
PAUSES = (0.5, 1.0)
PATIENT_PAUSES = (1.0, 4.0, 10.0)
# While a user waits, a site that has taken this long is not asked again, in seconds.
IMPATIENCE = 5.0


async def enrich(candidate: Candidate, *, patient: bool = False) -> dict[str, Any]:
    """Read the details of a candidate from the web: its home page, contact page and about page.

    Nobody waits for a `patient` one: a site that does not answer is then tried for longer.

    Returns:
        `status`: `read`, `unreadable`, `no_website` or `not_searched` (the web could not be asked
            for its website); `note`: why nothing was read; and if known `website`, `pages` (the
            addresses that were read), `about`, `emails`, `phones` and `size`, one of `SIZES`.
    """
    try:
        site = candidate.site or await discovery.website_of(candidate.name, candidate.region)
    except discovery.WebUnreachable:
        note = "Its website is not known, and the web could not be asked for it."
        return {"status": "not_searched", "note": note}
    if site is None:
        return {"status": "no_website", "note": "No website of this company is known."}
    try:
        home = await _read(site, PATIENT_PAUSES if patient else PAUSES, patient=patient)
    except SiteError as error:
        return {"status": "unreadable", "note": str(error), "website": site}
    pages = [home, *filter(None, await asyncio.gather(*map(_further, home.further)))]
    text = " ".join(page.text for page in pages)
    found = {"about": home.about, **contacts(text), "size": size(text)}
    known = {name: value for name, value in found.items() if value}
    return {"status": "read", "website": site, "pages": [each.website for each in pages], **known}


async def _read(site: str, pauses: tuple[float, ...], *, patient: bool) -> Page:
    """Read a page, with pauses between attempts.

    Raises:
        SiteError: the last attempt failed, or another one would fail, too.
    """
    clock = asyncio.get_running_loop()
    start = clock.time()
    for pause in pauses:
        try:
            return await website.read_page(site)
        except SiteUnreadable as error:
            if not error.passing or (not patient and clock.time() - start > IMPATIENCE):
                raise
        await asyncio.sleep(pause)
    return await website.read_page(site)


async def _further(url: str) -> Page | None:
    """Read a further page; None if it cannot be read, because the home page suffices."""
    try:
        return await website.read_page(url)
    except SiteError:
        return None


def size(text: str) -> str | None:
    """Return the range of `SIZES` that contains a company's stated number of employees. Pure."""
    ranges = (each for people in numbers(text) for each in SIZES if touches(each, people, people))
    return next(ranges, None)

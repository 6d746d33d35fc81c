"""Enriching: read details of one candidate from its website."""

import re
from typing import Any

from my_agent.icp_finder import discovery, website
from my_agent.icp_finder.model import SIZES, Candidate
from my_agent.icp_finder.scoring import website_of
from my_agent.web.fetch import SiteError

MAX_CONTACTS = 5
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]+\.)+[a-zA-Z]{2,24}\b")
_PHONE = re.compile(r"(?<![\w+])\+\d(?:[ ()-]{0,2}\d){7,13}(?!\d)")
# File names of pictures, such as `logo@2x.png`, look like mail addresses.
_PICTURE = re.compile(r"\.(png|jpe?g|gif|svg|webp)$", re.IGNORECASE)
_EMPLOYEES = re.compile(
    r"(?:(?:team|staff|workforce) of (?:over |about |more than |some )?(\d[\d,]{0,6}))"
    r"|(?:(\d[\d,]{0,6})\+? (?:employees|staff|people|professionals|team members|colleagues))",
    re.IGNORECASE,
)


async def enrich(candidate: Candidate) -> dict[str, Any]:
    """Read the details of a candidate from the web.

    Args:
        candidate: the candidate to enrich.

    Returns:
        `status`: `read`, `unreadable` or `no_website`; `note`: why the website was not read; and if
            known `website`, `about`, `emails`, `phones` and `size`, one of `SIZES`.
    """
    site = website_of(candidate) or await discovery.website_of(candidate.name, candidate.region)
    if site is None:
        return {"status": "no_website", "note": "No website of this company is known."}
    try:
        page = await website.read_page(site)
    except SiteError as error:
        return {"status": "unreadable", "note": str(error), "website": site}
    found = {"about": page.about, **contacts(page.text), "size": size(page.text)}
    known = {name: value for name, value in found.items() if value}
    return {"status": "read", "website": site, **known}


def contacts(text: str) -> dict[str, list[str]]:
    """Extract mail addresses and telephone numbers from a text, each once. Pure."""
    mails = [each.rstrip(".").lower() for each in _EMAIL.findall(text)]
    phones = [" ".join(each.split()) for each in _PHONE.findall(text)]
    return {
        "emails": list(dict.fromkeys(m for m in mails if not _PICTURE.search(m)))[:MAX_CONTACTS],
        "phones": list(dict.fromkeys(phones))[:MAX_CONTACTS],
    }


def size(text: str) -> str | None:
    """Return the range of `SIZES` that contains a company's stated number of employees. Pure."""
    found = _EMPLOYEES.search(text)
    if found is None:
        return None
    people = int((found[1] or found[2]).replace(",", ""))
    for each in SIZES:
        low, _, high = each.rstrip("+").partition("-")
        if int(low) <= people and (not high or people <= int(high)):
            return each
    return None

"""Enriching: read details of one candidate from its website."""

import asyncio
import re
from typing import Any

from my_agent.icp_finder.model import SIZES, Candidate
from my_agent.icp_finder.search import discovery, website
from my_agent.icp_finder.search.website import Page
from my_agent.web.fetch import SiteError, SiteUnreadable

MAX_CONTACTS = 5
# Seconds between attempts to read a site that may answer later. In the background there is time.
PAUSES = (0.5, 1.0)
PATIENT_PAUSES = (1.0, 4.0, 10.0)
# While a user waits, a site that has taken this long is not asked again, in seconds.
IMPATIENCE = 5.0
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]+\.)+[a-zA-Z]{2,24}\b")
_INTERNATIONAL = re.compile(r"(?<![\w+])\+\d(?:[ ()-]{0,2}\d){7,13}(?!\d)")
# Numbers of Singapore, which have eight digits: in two groups, or behind a word such as `Tel`.
_GROUPED = re.compile(r"(?<![\d+-])(?<!\d[ .])[3689]\d{3}[ -]\d{4}(?![ -]?\d)")
_CALLED = re.compile(
    r"\b(?:tel|telephone|phone|call(?: us)?|mobile|hotline|whatsapp|fax|t|p|hp)\b[ .:]{1,3}"
    r"([3689]\d{7})(?!\d)",
    re.IGNORECASE,
)
# File names of pictures, such as `logo@2x.png`, look like mail addresses.
_PICTURE = re.compile(r"\.(png|jpe?g|gif|svg|webp)$", re.IGNORECASE)
_EMPLOYEES = re.compile(
    r"(?:(?:team|staff|workforce) of (?:over |about |more than |some )?(\d[\d,]{0,6}))"
    r"|(?:(\d[\d,]{0,6})\+? (?:employees|staff|people|professionals|team members|colleagues))",
    re.IGNORECASE,
)
# Words in front of a year, as in `Since 2019 employees enjoy`.
_BEFORE_YEAR = re.compile(
    r"(?:\b(?:since|in|from|until|till|by|of|year|est\.?|founded|established)|[\u00a9-])\s*$",
    re.IGNORECASE,
)
_YEARS = range(1800, 2101)


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


def contacts(text: str) -> dict[str, list[str]]:
    """Extract mail addresses and telephone numbers from a text, each once. Pure."""
    mails = [each.rstrip(".").lower() for each in _EMAIL.findall(text)]
    found = [
        (match.start(), match[match.re.groups])
        for pattern in (_INTERNATIONAL, _GROUPED, _CALLED)
        for match in pattern.finditer(text)
    ]
    phones: dict[str, str] = {}
    for _, number in sorted(found):
        # The same number with and without the country's code counts once.
        phones.setdefault(re.sub(r"\D", "", number)[-8:], " ".join(number.split()))
    return {
        "emails": list(dict.fromkeys(m for m in mails if not _PICTURE.search(m)))[:MAX_CONTACTS],
        "phones": list(phones.values())[:MAX_CONTACTS],
    }


def size(text: str) -> str | None:
    """Return the range of `SIZES` that contains a company's stated number of employees. Pure."""
    for found in _EMPLOYEES.finditer(text):
        number = found[1] or found[2]
        people = int(number.replace(",", ""))
        is_year = found[2] and number == str(people) and people in _YEARS
        if is_year and _BEFORE_YEAR.search(text[: found.start(2)]):
            continue
        for each in SIZES:
            low, _, high = each.rstrip("+").partition("-")
            if int(low) <= people and (not high or people <= int(high)):
                return each
    return None

"""Details that are extracted from a company's page, and how often it is asked for."""

from typing import Any

import pytest

from my_agent.icp_finder.enrichment import enriching
from my_agent.icp_finder.enrichment.enriching import enrich, size
from my_agent.icp_finder.model import Candidate
from my_agent.icp_finder.search import discovery, website
from my_agent.web.contacts import MAX_CONTACTS, contacts
from my_agent.web.fetch import SiteUnreadable
from my_agent.web.pages import Page

ACME = Candidate("domain:acme.com", "Acme", "web", website="https://acme.com")


class Web:
    """Pages by address, in place of websites; an exception is raised, once each.

    Attributes:
        asked: the addresses that were asked for.
    """

    def __init__(self, **pages: Any) -> None:
        self.pages = {f"https://acme.com/{name}".rstrip("/_"): page for name, page in pages.items()}
        self.asked: list[str] = []

    async def read_page(self, url: str) -> Page:
        self.asked.append(url)
        page = self.pages[url]
        if isinstance(page, list):
            page = page.pop(0) if len(page) > 1 else page[0]
        if isinstance(page, Exception):
            raise page
        assert isinstance(page, Page)
        return page


def page(text: str, *further: str, url: str = "https://acme.com") -> Page:
    return Page(url, "Acme", text, text, tuple(f"https://acme.com/{each}" for each in further))


def served(patch: pytest.MonkeyPatch, **pages: Any) -> Web:
    web = Web(**pages)
    patch.setattr(website, "read_page", web.read_page)
    patch.setattr(enriching, "PAUSES", (0, 0))
    patch.setattr(enriching, "PATIENT_PAUSES", (0, 0, 0))
    return web


async def test_contact_and_about_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    contact = page("Mail us: hi@acme.com", url="https://acme.com/contact")
    web = served(
        monkeypatch,
        _=page("We make widgets", "contact", "about"),
        contact=contact,
        about=SiteUnreadable("gone"),
    )
    found = await enrich(ACME)
    assert (found["status"], found["emails"]) == ("read", ["hi@acme.com"])
    assert found["pages"] == ["https://acme.com", "https://acme.com/contact"]
    assert web.asked == ["https://acme.com", "https://acme.com/contact", "https://acme.com/about"]


async def test_site_that_is_busy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = SiteUnreadable("acme.com answered with an error (503).", passing=True)
    web = served(monkeypatch, _=[busy, busy, page("We make widgets")])
    assert (await enrich(ACME))["status"] == "read"
    assert len(web.asked) == 3


@pytest.mark.parametrize(("patient", "attempts"), [(False, 3), (True, 4)])
async def test_attempts_are_limited(
    monkeypatch: pytest.MonkeyPatch, patient: bool, attempts: int
) -> None:
    web = served(monkeypatch, _=SiteUnreadable("It is down.", passing=True))
    found = await enrich(ACME, patient=patient)
    assert (found["status"], found["note"]) == ("unreadable", "It is down.")
    assert len(web.asked) == attempts
    web = served(monkeypatch, _=SiteUnreadable("No such page."))
    assert (await enrich(ACME, patient=patient))["note"] == "No such page."
    assert len(web.asked) == 1


async def test_unknown_website_is_told_from_unanswered_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unreachable(name: str, region: str) -> None:
        raise discovery.WebUnreachable

    nameless = Candidate("uen:1", "ACME PTE. LTD.", "register")
    with monkeypatch.context() as patch:
        patch.setattr(discovery, "website_of", unreachable)
        assert (await enrich(nameless))["status"] == "not_searched"
    monkeypatch.setenv("ICP_WEB_SEARCH", "false")
    assert (await enrich(nameless))["status"] == "no_website"


def test_contacts_are_found_once() -> None:
    text = (
        "Write to Sales@Acme.com or sales@acme.com. See logo@2x.png, a@b and info+sg@mail.acme.co.uk. "
        "Call +65 6123 4567, +65 6123 4567 or +49 (30) 123-4567; since 1990, 12345678."
    )
    assert contacts(text) == {
        "emails": ["sales@acme.com", "info+sg@mail.acme.co.uk"],
        "phones": ["+65 6123 4567", "+49 (30) 123-4567"],
    }
    assert contacts("nothing") == {"emails": [], "phones": []}


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("Call 6123 4567 now", ["6123 4567"]),
        ("Tel: 61234567", ["61234567"]),
        ("Hotline 8123-4567", ["8123-4567"]),
        ("+65 6123 4567, 6123 4567", ["+65 6123 4567"]),
        ("Reg. 12345678, UEN 61234567Z, 2019 2020, 4 6123 4567", []),
        ("Order 6123 4567 8901", []),
    ],
)
def test_local_numbers(text: str, phones: list[str]) -> None:
    assert contacts(text)["phones"] == phones


def test_number_of_contacts_is_limited() -> None:
    text = " ".join(f"person{number}@acme.com" for number in range(50))
    assert len(contacts(text)["emails"]) == MAX_CONTACTS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a team of 35 engineers", "11-50"),
        ("Our team of over 1,200 in Asia", "1001+"),
        ("We have 50 employees", "11-50"),
        ("51+ professionals", "51-200"),
        ("10 people", "1-10"),
        ("500 staff", "201-500"),
        ("501 colleagues", "501-1000"),
        ("0 employees", None),
        ("35 products", None),
        ("Since 2019 employees enjoy free lunch", None),
        ("Since 2019 employees enjoy lunch. We are a team of 35", "11-50"),
        ("In 2,019 employees we trust", "1001+"),
        ("We have 2000 employees", "1001+"),
        ("\u00a9 2018-2024 staff portal", None),
        ("", None),
    ],
)
def test_size(text: str, expected: str | None) -> None:
    assert size(text) == expected

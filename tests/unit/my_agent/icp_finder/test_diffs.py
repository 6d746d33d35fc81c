"""Hashes and differences of a discovery's basis, and the effect of messages on it."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from my_agent.icp_finder.model import SIZES, Basis, Company, Icp
from my_agent.icp_finder.nodes.changes import (
    changed_parts,
    difference,
    new_customers,
    next_session,
)
from my_agent.icp_finder.records.diffs import PARTS, basis, changed, icp_hash
from my_agent.icp_finder.state import State
from my_agent.threads.payloads import HASH_DIGITS
from tests.support.icp_state import heard

WORDS = st.lists(st.text("abc é", max_size=4), max_size=4)
DOMAINS = st.sampled_from([f"{letter}.com" for letter in "abcdefg"])


def site(domain: str) -> Any:
    return {"website": f"https://{domain}", "domain": domain, "name": domain, "about": ""}


@st.composite
def asked(draw: st.DrawFn) -> tuple[Company, Icp]:
    customers = draw(st.lists(DOMAINS, max_size=5))
    company: Company = {
        "site": site(draw(DOMAINS)),
        "customers": [site(domain) for domain in customers],
    }
    icp: Icp = {
        "industries": draw(WORDS),
        "sizes": draw(st.lists(st.sampled_from(SIZES), max_size=3)),
        "regions": draw(WORDS),
        "keywords": draw(WORDS),
    }
    return company, icp


@given(asked(), asked())
def test_hashes_are_equal_iff_nothing_differs(one: Any, two: Any) -> None:
    old, new = basis(*one), basis(*two)
    assert (icp_hash(old) == icp_hash(new)) == (changed(old, new) == ())
    assert changed(old, new) == changed(new, old)
    assert set(changed(old, new)) <= set(PARTS)


@given(asked(), st.randoms(use_true_random=False))
def test_basis_ignores_order_case_and_duplicates(one: Any, random: Any) -> None:
    company, icp = one

    def shuffled(words: list[str]) -> list[str]:
        again = [f" {word.upper()}  " if word.upper().lower() == word else word for word in words]
        again += words
        random.shuffle(again)
        return again

    other: Any = {name: shuffled(words) for name, words in icp.items()}
    customers = company["customers"] * 2
    random.shuffle(customers)
    same = basis({"site": company["site"], "customers": customers}, other)
    assert changed(basis(company, icp), same) == ()


@given(asked())
def test_hash_is_short_and_ignores_website_text(one: Any) -> None:
    company, icp = one
    of = basis(company, icp)
    site = {**company["site"], "name": "other", "about": "text"}
    renamed = cast("Company", {**company, "site": site})
    assert len(icp_hash(of)) == HASH_DIGITS
    assert icp_hash(basis(renamed, icp)) == icp_hash(of)


def test_change_of_each_part_is_detected() -> None:
    company: Company = {"site": site("a.com"), "customers": [site("b.com")]}
    icp: Icp = {"industries": ["x"], "sizes": [], "regions": [], "keywords": []}
    old = basis(company, icp)
    others: list[tuple[str, Basis]] = [
        ("website", basis({**company, "site": site("c.com")}, icp)),
        ("customers", basis({**company, "customers": [site("c.com")]}, icp)),
        ("industries", basis(company, {**icp, "industries": ["y"]})),
        ("sizes", basis(company, {**icp, "sizes": ["1-10"]})),
        ("regions", basis(company, {**icp, "regions": ["y"]})),
        ("keywords", basis(company, {**icp, "keywords": ["y"]})),
        ("exclusions", basis(company, {**icp, "exclusions": ["y"]})),
    ]
    assert [(name, changed(old, new)) for name, new in others] == [
        (name, (name,)) for name in PARTS
    ]


# --- changes by a message ----------------------------------------------------

STATE: State = {
    "messages": [],
    "thread_id": "t",
    "site": site("acme.com"),
    "customers": [site(f"c{n}.com") for n in range(5)],
    "icp": {"industries": ["Freight"], "sizes": [], "regions": [], "keywords": []},
}


MOVED = "https://acme.org"


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ({}, ()),
        ({"website": "https://acme.com/about"}, ()),
        # A customer that is called the company itself.
        ({"website": "https://c2.com"}, ("website", "customers")),
        ({"website": MOVED}, ("website",)),
        # The user is asked whose website this is.
        ({"stray": MOVED}, ()),
        ({"icp": {"industries": ["FREIGHT"]}}, ()),
        (
            {"icp": {"industries": ["steel"], "regions": ["Singapore"]}},
            ("industries", "regions"),
        ),
        ({"icp": {"industries": []}}, ("industries",)),
        ({"customers": ["https://d.com"]}, ("customers",)),
        ({"customers": ["https://c1.com/shop"]}, ()),
        ({"without": ["c1.com"]}, ("customers",)),
        ({"without": ["x.com"]}, ()),
        ({"website": MOVED, "without": ["c1.com"]}, ("website", "customers")),
    ],
)
def test_message_changes_only_the_parts_it_names(said: Any, parts: tuple[str, ...]) -> None:
    assert changed_parts(STATE, heard(**said)) == parts


def test_nothing_changes_before_the_company_is_known() -> None:
    assert changed_parts({"messages": []}, heard(website=MOVED)) == ()


def test_swapped_customer_takes_the_place_that_becomes_free() -> None:
    swapped = new_customers(STATE, heard(without=["c1.com"], customers=["https://d.com"]))
    assert swapped == [*(f"https://c{n}.com" for n in (0, 2, 3, 4)), "https://d.com"]


def test_customers_are_kept_once_and_at_most_ten() -> None:
    more = [f"https://d{n}.com" for n in range(20)]
    found = new_customers(STATE, heard(customers=["https://www.c0.com", *more]))
    assert found == [*(f"https://c{n}.com" for n in range(5)), *more[:5]]


def test_difference_says_from_what_to_what() -> None:
    said = heard(
        website=MOVED,
        without=["c1.com"],
        customers=["https://d.com"],
        icp={"industries": ["steel"], "exclusions": ["hotels"]},
    )
    assert difference(STATE, said).splitlines() == [
        "- website: acme.com → acme.org",
        "- customers: without c1.com, with d.com",
        "- industries: Freight → steel",
        "- never: nothing → hotels",
    ]


def test_new_website_requests_thread_resume() -> None:
    session = next_session(STATE, heard(website=MOVED, icp={"industries": ["steel"]}))
    assert session["website"] == "acme.org"
    assert session["request"] == {
        "method": "POST",
        "path": "/threads/t/resume",
        "body": {"website": MOVED, "payload": {"industries": ["steel"]}},
    }


def test_new_icp_requests_new_thread_of_same_company() -> None:
    said = heard(icp={"industries": ["steel"]}, without=["c0.com"], customers=["https://d.com"])
    session = next_session(STATE, said)
    assert session["website"] == "acme.com"
    assert session["request"] == {
        "method": "POST",
        "path": "/threads",
        "body": {
            "metadata": {
                "agent": "icp_finder",
                "website": "https://acme.com",
                # So that whoever resumes the closed thread comes to the new one.
                "resumed_from": "t",
                "payload": {
                    "industries": ["steel"],
                    "customers": [*(f"https://c{n}.com" for n in range(1, 5)), "https://d.com"],
                },
            }
        },
    }

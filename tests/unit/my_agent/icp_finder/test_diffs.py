"""Hashes and differences of a discovery's basis, and the effect of messages on it."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from my_agent.icp_finder.model import SIZES, Basis, Company, Icp
from my_agent.icp_finder.reading.changes import changed_parts, new_customers, next_session
from my_agent.icp_finder.reading.message_parser import NO_CONTENT, parse_text
from my_agent.icp_finder.records.diffs import PARTS, basis, changed, icp_hash
from my_agent.icp_finder.state import State
from my_agent.threads.payloads import HASH_DIGITS

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


def parts(text: str) -> tuple[str, ...]:
    return changed_parts(STATE, parse_text(text))


def test_message_changes_only_the_parts_it_names() -> None:
    assert parts("hello") == ()
    assert parts("our website is acme.com/about") == ()
    assert parts("c2.com") == ()
    assert parts("our website is now acme.org") == ("website",)
    # The user is asked whose website this is.
    assert parts("acme.org") == ()
    assert parts("industries: FREIGHT") == ()
    assert parts("industries: steel; regions: Singapore") == ("industries", "regions")
    assert parts("replace c1.com with d.com") == ("customers",)
    assert parts("replace x.com with d.com") == ()
    assert parts("customers: d.com e.com f.com g.com h.com") == ("customers",)
    assert changed_parts({"messages": []}, parse_text("acme.org")) == ()
    assert changed_parts(STATE, NO_CONTENT) == ()


def test_swapped_customer_keeps_its_position() -> None:
    customers = STATE.get("customers", [])
    assert new_customers(customers, parse_text("replace c1.com by d.com"))[1] == "https://d.com"
    assert len(new_customers(customers, parse_text("d.com"))) == 5


def test_new_website_requests_thread_resume() -> None:
    session = next_session(STATE, parse_text("our website is now acme.org; industries: steel"))
    assert session["request"] == {
        "method": "POST",
        "path": "/threads/t/resume",
        "body": {"website": "https://acme.org", "payload": {"industries": ["steel"]}},
    }


def test_new_icp_requests_new_thread_of_same_company() -> None:
    session = next_session(STATE, parse_text("industries: steel. Replace c0.com with d.com"))
    metadata = session["request"]["body"]["metadata"]
    assert session["request"]["path"] == "/threads"
    assert (metadata["agent"], metadata["website"]) == ("icp_finder", "https://acme.com")
    assert metadata["payload"]["industries"] == ["steel"]
    assert metadata["payload"]["customers"][0] == "https://d.com"

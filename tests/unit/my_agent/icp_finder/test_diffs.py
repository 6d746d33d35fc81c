"""Hashes and differences of what a discovery was done for."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from contexts.payloads import HASH_DIGITS
from my_agent.icp_finder.changes import changed_parts, new_customers, next_session
from my_agent.icp_finder.diffs import PARTS, basis, changed, icp_hash
from my_agent.icp_finder.heard import NOTHING, listen
from my_agent.icp_finder.model import SIZES, Basis, Company, Icp
from my_agent.icp_finder.state import State

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
def test_hashes_are_equal_exactly_where_nothing_differs(one: Any, two: Any) -> None:
    old, new = basis(*one), basis(*two)
    assert (icp_hash(old) == icp_hash(new)) == (changed(old, new) == ())
    assert changed(old, new) == changed(new, old)
    assert set(changed(old, new)) <= set(PARTS)


@given(asked(), st.randoms(use_true_random=False))
def test_order_case_and_repetition_do_not_matter(one: Any, random: Any) -> None:
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
def test_a_hash_is_short_and_does_not_depend_on_what_is_read(one: Any) -> None:
    company, icp = one
    of = basis(company, icp)
    site = {**company["site"], "name": "other", "about": "text"}
    renamed = cast("Company", {**company, "site": site})
    assert len(icp_hash(of)) == HASH_DIGITS
    assert icp_hash(basis(renamed, icp)) == icp_hash(of)


def test_each_part_is_seen() -> None:
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


# --- what a message would change ---------------------------------------------

STATE: State = {
    "messages": [],
    "thread_id": "t",
    "site": site("acme.com"),
    "customers": [site(f"c{n}.com") for n in range(5)],
    "icp": {"industries": ["Freight"], "sizes": [], "regions": [], "keywords": []},
}


def parts(text: str) -> tuple[str, ...]:
    return changed_parts(STATE, listen(text))


def test_a_message_changes_what_it_says_and_nothing_else() -> None:
    assert parts("hello") == ()
    assert parts("our website is acme.com/about") == ()
    assert parts("c2.com") == ()
    assert parts("our website is now acme.org") == ("website",)
    assert parts("acme.org") == ("website",)
    assert parts("industries: FREIGHT") == ()
    assert parts("industries: steel; regions: Singapore") == ("industries", "regions")
    assert parts("replace c1.com with d.com") == ("customers",)
    assert parts("replace x.com with d.com") == ()
    assert parts("customers: d.com e.com f.com g.com h.com") == ("customers",)
    assert changed_parts({"messages": []}, listen("acme.org")) == ()
    assert changed_parts(STATE, NOTHING) == ()


def test_customers_keep_their_places() -> None:
    customers = STATE.get("customers", [])
    assert new_customers(customers, listen("replace c1.com by d.com"))[1] == "https://d.com"
    assert len(new_customers(customers, listen("d.com"))) == 5


def test_another_website_takes_the_place_of_the_thread() -> None:
    session = next_session(STATE, listen("our website is now acme.org; industries: steel"))
    assert session["request"] == {
        "method": "POST",
        "path": "/threads/t/resume",
        "body": {"website": "https://acme.org", "payload": {"industries": ["steel"]}},
    }


def test_another_icp_is_a_new_thread_of_the_same_company() -> None:
    session = next_session(STATE, listen("industries: steel. Replace c0.com with d.com"))
    metadata = session["request"]["body"]["metadata"]
    assert session["request"]["path"] == "/threads"
    assert (metadata["agent"], metadata["website"]) == ("icp_finder", "https://acme.com")
    assert metadata["payload"]["industries"] == ["steel"]
    assert metadata["payload"]["customers"][0] == "https://d.com"

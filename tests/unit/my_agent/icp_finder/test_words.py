"""Parsing of free text: websites, ICP fields, requested actions, and answers to questions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from my_agent.icp_finder.reading import answers
from my_agent.icp_finder.reading.answers import OPTIONS, Kind, parse, question, reply_text
from my_agent.icp_finder.reading.message_parser import (
    clean,
    fields,
    has_content,
    parse_reply,
    parse_text,
)
from my_agent.icp_finder.sites import domain, mentions, websites
from my_agent.web.websites import readable


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acme.com", ["https://acme.com"]),
        ("It is www.Acme.com.", ["https://www.acme.com"]),
        ("(see http://acme.co.uk/about?x=1, please)", ["http://acme.co.uk/about?x=1"]),
        ("a.com,b.com;c.com\nd.com e.com", [f"https://{c}.com" for c in "abcde"]),
        ("a.com and www.a.com and shop.a.com", ["https://a.com"]),
        ("münchen.de", ["https://xn--mnchen-3ya.de"]),
        ("HTTPS://ACME.COM/", ["https://acme.com"]),
        ("http://127.0.0.1:8080/x", ["http://127.0.0.1:8080/x"]),
        ("localhost:3000", ["https://localhost:3000"]),
        ("http://[::1]/", ["http://[::1]"]),
        ("http://intranet", ["http://intranet"]),
        ("write to ann@acme.com, e.g. about Node.js 1.5 and version 2.0", []),
        ("acme", []),
        ("", []),
        ("https://", []),
        ("http://-bad-.com", []),
        ("a..com", []),
    ],
)
def test_websites_are_found_in_free_text(text: str, found: list[str]) -> None:
    assert websites(text) == found


@given(st.text(max_size=200))
def test_any_text_can_be_parsed(text: str) -> None:
    for mention in mentions(text):
        assert domain(mention.website)
        assert 0 <= mention.start < mention.end <= len(text)
    parse_text(text)
    for kind in OPTIONS:
        assert parse(kind, text) in (None, *OPTIONS[kind])


def test_long_text_is_parsed_quickly() -> None:
    for text in ("a-" * 50_000, "a." * 50_000, "http://" * 20_000, "our " * 30_000):
        parse_text(text)


@pytest.mark.parametrize(
    ("website", "found"),
    [
        ("https://www.shop.acme.co.uk/x", "acme.co.uk"),
        ("http://127.0.0.1:81", "127.0.0.1:81"),
        ("http://intranet:8/x", "intranet:8"),
        ("anna.github.io", "anna.github.io"),
    ],
)
def test_domain_identifies_company(website: str, found: str) -> None:
    assert domain(website) == found


@pytest.mark.parametrize("text", ["", "   ", "acme,", "a" * 3000 + ".com"])
def test_domain_of_non_website_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"example\.com"):
        domain(text)


def test_readable_domain_has_no_punycode() -> None:
    assert readable("xn--mnchen-3ya.de") == "münchen.de"
    assert readable("acme.com") == "acme.com"
    assert readable("xn--a.com") == "xn--a.com"


# --- message parser ----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "own", "others", "customers"),
    [
        ("acme.com", None, ["acme.com"], False),
        ("our website is acme.com", "acme.com", [], False),
        ("b.com is our new site", "b.com", [], False),
        ("We moved to b.com", "b.com", [], False),
        ("website: a.io customers: b.com c.com", "a.io", ["b.com", "c.com"], True),
        ("our site is a.com and our customers are b.com, c.com", "a.com", ["b.com", "c.com"], True),
        ("my customers are a.com and b.com", None, ["a.com", "b.com"], True),
        ("a.com is a customer of ours", None, ["a.com"], True),
        ("a.com is our client", None, ["a.com"], True),
    ],
)
def test_own_and_customers_websites_are_distinguished(
    text: str, own: str | None, others: list[str], customers: bool
) -> None:
    parsed = parse_text(text)
    assert parsed["website"] == (own and f"https://{own}")
    assert parsed["sites"] == [f"https://{each}" for each in others]
    assert parsed["customers"] is customers


@pytest.mark.parametrize(
    "text", ["replace a.com with b.com", "b.com instead of a.com", "please swap a.com for b.com"]
)
def test_customer_swap_is_parsed(text: str) -> None:
    parsed = parse_text(text)
    assert parsed["swaps"] == [["https://a.com", "https://b.com"]]
    assert parsed["sites"] == []


@pytest.mark.parametrize(
    ("text", "icp"),
    [
        ("industries: a1, b2 and c3", {"industries": ["a1", "b2", "c3"]}),
        (
            "Industry = steel; regions: Singapore",
            {"industries": ["steel"], "regions": ["Singapore"]},
        ),
        ("sizes: 11 to 200", {"sizes": ["11-50", "51-200"]}),
        ("employees: 1000+, 5", {"sizes": ["1-10", "1001+"]}),
        ("regions: any", {"regions": []}),
        ("keywords: cold chain, Cold Chain.", {"keywords": ["Cold Chain"]}),
        ("we sell to hospitals", {}),
    ],
)
def test_labelled_icp_fields_are_parsed(text: str, icp: dict[str, list[str]]) -> None:
    assert parse_text(text)["icp"] == icp


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("run enrichment", "enrich"),
        ("please enrich them", "enrich"),
        ("re-run discovery", "rerun"),
        ("search again", "rerun"),
        ("don't re-run it", None),
        ("what is enrichment?", None),
        ("How does one search again?", None),
        ("hello", None),
    ],
)
def test_requested_action_is_parsed(text: str, wish: str | None) -> None:
    assert parse_text(text)["wish"] == wish


def test_small_talk_has_no_content() -> None:
    assert not has_content(parse_text("Hello, how are you?"))
    assert not has_content(parse_text("what about customers?"))


def test_structured_reply_is_parsed_like_text() -> None:
    parsed = parse_reply(
        {"website": "a.com", "customers": ["b.com", "c.com"], "icp": {"regions": "Asia"}}
    )
    assert parsed["website"] == "https://a.com"
    assert parsed["sites"] == ["https://b.com", "https://c.com"]
    assert parsed["icp"] == {"regions": ["Asia"]}
    assert parse_reply({"industries": ["Steel"]})["icp"] == {"industries": ["Steel"]}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"website": 5},
        {"customers": [1]},
        {"icp": "x"},
        {"icp": {"sizes": {}}},
        {"other": "a.com"},
    ],
)
def test_reply_of_unknown_form_has_no_content(values: Any) -> None:
    assert not has_content(parse_reply(values))


def test_number_and_length_of_values_are_limited() -> None:
    assert len(clean("keywords", [f"word {n}" for n in range(100)])) == 12
    assert clean("keywords", ["x" * 81, "", "y"]) == []
    assert clean("sizes", ["9" * 5000]) == ["1001+"]


# --- answers -----------------------------------------------------------------

UNCLEAR: list[tuple[Kind, Any]] = [
    ("confirm_icp", "hmm"),
    ("confirm_icp", "industries: food"),
    ("confirm_icp", "maybe"),
    ("confirm_icp", None),
    ("confirm_icp", 3),
    ("confirm_icp", ["yes", "no"]),
    ("confirm_icp", {"other": "yes"}),
    ("context_change", "continue or new?"),
    ("context_change", "don't start a new one"),
    ("rerun", "why?"),
    ("rerun", "I don't know"),
    ("rerun", "we sell mostly to companies that search for their freight later in the year"),
    ("enrich", "re-run discovery"),
    ("enrich", "what is enrichment?"),
    ("enrich", ""),
]


@pytest.mark.parametrize(("kind", "reply"), UNCLEAR)
def test_reply_without_choice_is_unclear(kind: Kind, reply: Any) -> None:
    assert parse(kind, reply) is None


@pytest.mark.parametrize("kind", OPTIONS)
def test_option_can_be_chosen_by_value_label_or_number(kind: Kind) -> None:
    for number, (value, label) in enumerate(OPTIONS[kind].items(), 1):
        for reply in (value, label, label.upper(), f" {label}. ", number, str(number)):
            assert parse(kind, reply) == value
        for wrapped in ({"choice": value}, {"answer": label}, {"value": number}, [value]):
            assert parse(kind, wrapped) == value


@pytest.mark.parametrize(
    ("kind", "reply", "value"),
    [
        ("confirm_icp", "Yes, please", "confirm"),
        ("confirm_icp", "looks good", "confirm"),
        ("confirm_icp", "not right", "change"),
        ("confirm_icp", False, "change"),
        ("context_change", "continue here", "continue"),
        ("context_change", "a new session please", "new"),
        ("context_change", "keep the old one", "keep"),
        ("rerun", "no, don't rerun", "keep"),
        ("rerun", "yes, search again", "rerun"),
        ("rerun", "No thanks, the ones that we have found so far are quite good enough", "keep"),
        ("rerun", "don\N{RIGHT SINGLE QUOTATION MARK}t", "keep"),
        ("enrich", "not now", "later"),
        ("enrich", "run enrichment", "enrich"),
        ("enrich", "sure, go ahead", "enrich"),
    ],
)
def test_free_text_chooses_option(kind: Kind, reply: Any, value: str) -> None:
    assert parse(kind, reply) == value


def test_question_contains_its_options() -> None:
    asking = question("rerun", "Again?", reason="it is old")
    assert [option["value"] for option in asking["options"]] == ["rerun", "keep"]
    assert asking["details"] == {"reason": "it is old"}


def test_reply_is_converted_to_text() -> None:
    assert reply_text("Yes") == "Yes"
    assert reply_text({"choice": "rerun"}) == "rerun"
    assert reply_text([True]) == "Yes"
    assert reply_text(False) == "No"
    assert reply_text({"icp": {"regions": ["São Paulo"]}}) == '{"icp": {"regions": ["São Paulo"]}}'
    assert answers.reply_text(None) == "null"


def test_a_value_in_quotes_is_taken_whole() -> None:
    text = 'Industries: "Mfg. of food, drinks and tobacco", logistics and freight; regions: any'
    assert fields(text) == {
        "industries": ["Mfg. of food, drinks and tobacco", "logistics", "freight"],
        "regions": [],
    }

"""Names of industries, and the codes of the SSIC."""

import pytest

from bench.icp import industries
from my_agent.companies import ssic

SECTIONS = "ABCDEFGHIJKLMNOPQRSTU"


def test_table_has_every_section_and_division() -> None:
    held = {entry.code for entry in ssic.industries()}
    divisions = {prefix for section in SECTIONS for prefix in ssic.prefixes(section)}
    assert set(SECTIONS) <= held
    # ISIC Rev. 4 has 88 divisions, each in exactly one section.
    assert len(divisions) == 88
    assert divisions == {code for code in held if code.isdigit() and len(code) == 2}
    assert all(len(ssic.lineage(code)) >= 2 for code in held if code.isdigit())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("software", "62"),
        ("Software companies", "62"),
        ("IT", "62"),
        ("F&B", "I"),
        ("Restaurants", "56"),
        ("SaaS", "582"),
        ("fintech", "K"),
        ("freight forwarders", "5229"),
        ("precision engineering", "25"),
        ("Law firms", "691"),
        ("e-commerce", "479"),
        ("dental clinics", "862"),
        ("62011", "62011"),
        ("j", "J"),
    ],
)
def test_best_match_of_a_text(text: str, code: str) -> None:
    assert ssic.find(text)[0].code == code


@pytest.mark.parametrize(
    ("text", "division"),
    [
        # The trade counts more than the goods, and the goods more than the customers.
        ("Refrigerated road transport", "49"),
        ("Distributors of industrial machinery", "46"),
        ("Makers of industrial machinery", "28"),
        ("Software for hospitals", "62"),
        ("Steel fabricators", "25"),
    ],
)
def test_trade_of_a_phrase_decides(text: str, division: str) -> None:
    assert ssic.find(text)[0].code.startswith(division)


def test_phrases_are_mapped_to_their_industries() -> None:
    for path in (industries.PHRASES, industries.UNSEEN):
        assert industries.share(industries.answers(path)) >= industries.OWED


@pytest.mark.parametrize("text", ["", "zebra", "make it better", "00", "0", "²²", "W", "123456"])
def test_text_without_known_words_matches_nothing(text: str) -> None:
    assert ssic.find(text) == []
    assert ssic.codes([text]) == []


def test_match_names_its_phrase() -> None:
    [saas, food] = ssic.find("SaaS for restaurants", limit=2)
    assert (saas.code, saas.because) == ("582", "saas")
    assert (food.code, food.because) == ("56", "restaurants")
    assert saas.title == "Software publishing"
    assert ssic.MINIMUM <= saas.score < ssic.WHOLE


def test_titles_match_themselves() -> None:
    wrong = [
        entry.code
        for entry in ssic.industries()
        if entry.title not in {match.title for match in ssic.find(entry.title)}
    ]
    assert wrong == []


def test_codes_are_unique_and_best_first() -> None:
    codes = ssic.codes(["Software", "Hotels and software", "software"])
    assert codes[0] == "62"
    assert "55" in codes
    # What stands behind `for` are the customers.
    assert "55" not in ssic.codes(["B2B software for hotels"])
    assert len(codes) == len(set(codes))
    assert ssic.codes(["software", "hotels", "banks"], limit=2) == ["62", "55"]


def test_code_covers_codes_that_begin_with_it() -> None:
    assert ssic.covers("62", ["62011"])
    assert ssic.covers("J", ["46900", "62011"])
    assert not ssic.covers("63", ["62011"])
    assert not ssic.covers("K", ["62011"])
    assert not ssic.covers("62", [])
    assert [entry.code for entry in ssic.lineage("62011")] == ["J", "62", "6201"]
    assert ssic.title("62011") == "Software development"
    assert ssic.title("nonsense") == ""


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("62011", "62011"),
        (" 62011 ", "62011"),
        ("62011.0", "62011"),
        ("1111", "01111"),
        ("", ""),
        ("na", ""),
        ("00000", ""),
        ("6201", "06201"),
        ("620110", ""),
        ("٦٢٠١١", ""),
    ],
)
def test_register_codes_are_padded_to_five_digits(written: str, code: str) -> None:
    assert ssic.normal(written) == code


def test_industries_in_text_are_those_whose_words_it_contains() -> None:
    text = (
        "We are a freight forwarder. Our logistics services include warehousing, cold storage and "
        "customs. Customers trust our freight forwarding, and so do restaurants."
    )
    assert ssic.industries_in(text)[0] == "Storage and services to transport"
    assert ssic.industries_in("Welcome. We love our customers, and they love our team.") == []
    assert ssic.industries_in("") == []
    assert (
        len(ssic.industries_in(text + " banks bank hotel hotels clinic dental clinic", limit=1))
        == 1
    )

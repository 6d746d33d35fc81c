"""What the acts of a message do: code checks their words, and decides."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from my_agent.icp_finder import prompts
from my_agent.icp_finder.model import Icp
from my_agent.icp_finder.reading import commands
from my_agent.icp_finder.reading.applying import Applied, apply
from my_agent.icp_finder.reading.heard import has_data, nothing, order
from my_agent.icp_finder.reading.questions import AGREED, OPTIONS, REFUSED, Kind, question
from my_agent.icp_finder.reading.situation import Situation
from my_agent.understanding import words
from my_agent.understanding.acts import Reading
from my_agent.understanding.names import Listed

LISTED = [
    Listed("nova", "Nova GmbH", 1, "nova.de"),
    Listed("novabit", "Novabit", 2, "novabit.com"),
    Listed("acme", "Acme Corp", 3, "acme.com"),
    Listed("evil", "Evil Corp", 4),
    Listed("partner", "Vogel & Partner", 5),
    Listed("logistik", "Vogel Logistik", 6),
    Listed("gone", "Gone Ltd"),
]
SHOWN = [each.key for each in LISTED if each.number]
ICP: Icp = {
    "industries": ["Food distribution", "Hotels"],
    "sizes": ["11-50"],
    "regions": ["Germany", "France"],
    "keywords": [],
}
ENRICH = question("enrich", "?", keys=["nova"])


def applied(message: str, *acts: dict[str, Any], language: str = "en", **known: Any) -> Applied:
    base: dict[str, Any] = {
        "listed": LISTED,
        "icp": ICP,
        "website": "own.com",
        "customers": ["c1.com", "c2.com"],
        "confirmed": True,
    }
    reading = Reading.model_validate({"language": language, "acts": list(acts)})
    return apply(Situation(**{**base, **known}), message, reading, "model")


def does(quote: str, name: str, targets: Any = None, **more: Any) -> dict[str, Any]:
    return {"kind": "Command", "quote": quote, "name": name, "targets": targets, **more}


def agrees(quote: str, *, yes: bool = True, to: str = "") -> dict[str, Any]:
    return {"kind": "Consent", "quote": quote, "yes": yes, "to": to}


def gives(quote: str, name: str, *value: str, kind: str = "Answer", **more: Any) -> dict[str, Any]:
    of = "what" if kind in ("Include", "Exclude") else "field"
    return {"kind": kind, "quote": quote, of: name, "value": list(value), **more}


# --- quotes --------------------------------------------------------------------


def test_act_whose_quote_is_not_in_the_message_does_nothing() -> None:
    found = applied("hm, well", gives("steel please", "industries", "steel"))
    assert found.heard == {**nothing(), "by": "model", "unheard": ["hm, well"]}


def test_value_that_the_message_does_not_say_is_dropped() -> None:
    found = applied("we sell to hotels", gives("we sell to hotels", "industries", "steel"))
    assert (found.heard["icp"], found.heard["unheard"]) == ({}, ["we sell to hotels"])


def test_only_the_values_that_are_said_are_kept() -> None:
    found = applied("steel and so on", gives("steel", "industries", "steel", "casinos"))
    assert found.heard["icp"] == {"industries": [*ICP["industries"], "steel"]}


def test_website_that_is_not_spelled_is_dropped() -> None:
    found = applied("our site is w.com", gives("our site is w.com", "website", "evil.com"))
    assert (found.heard["website"], found.heard["unheard"]) == (None, ["our site is w.com"])


@pytest.mark.parametrize("quote", ["walter dot com", "walter.com", "WALTER punkt com"])
def test_website_may_be_spelled_in_words(quote: str) -> None:
    found = applied(f"we are {quote}", gives(quote, "website", "walter.com"), website="")
    assert found.heard["website"] == "https://walter.com"


def test_unknown_command_is_unheard() -> None:
    found = applied("make it fly", does("make it fly", "fly"))
    assert (found.heard["orders"], found.heard["unheard"]) == ([], ["make it fly"])


# --- values ----------------------------------------------------------------------


def test_what_is_not_wanted_becomes_an_exclusion_and_no_industry() -> None:
    found = applied(
        "not hospitals",
        gives("hospitals", "industries", "hospitals"),
        gives("not hospitals", "industries", "hospitals", kind="Exclude"),
    )
    assert found.heard["icp"] == {"exclusions": ["hospitals"]}


@pytest.mark.parametrize(
    ("message", "language"),
    [("no hospitals", "en"), ("keine hospitals", "de"), ("sem hospitals", "pt")],
)
def test_denied_value_is_never_given(message: str, language: str) -> None:
    found = applied(message, gives("hospitals", "industries", "hospitals"), language=language)
    assert (found.heard["icp"], found.heard["unheard"]) == ({}, ["hospitals"])


def test_denial_is_about_its_own_clause() -> None:
    message = "steel, but no hospitals"
    found = applied(message, gives(message, "industries", "steel", "hospitals"))
    assert found.heard["icp"] == {"industries": [*ICP["industries"], "steel"]}


def test_stored_value_of_the_same_spelling_is_taken_out_alone() -> None:
    icp = {**ICP, "industries": ["Food manufacturing", "Snack food manufacturing"]}
    act = gives("drop snacks", "industries", "Snack food manufacturing", kind="Exclude")
    assert applied("drop snacks", act, icp=icp).heard["icp"] == {
        "industries": ["Food manufacturing"]
    }


def test_stored_value_that_the_words_may_mean_is_taken_out_by_a_button_only() -> None:
    icp = {**ICP, "industries": ["Hotels", "Beverages"]}
    act = gives("sem bebidas", "industries", "Beverages", kind="Exclude")
    found = applied("sem bebidas", act, icp=icp, language="pt").heard
    assert found["icp"] == {}
    assert [(each["name"], each["keys"]) for each in found["orders"]] == [
        ("exclude", ["Beverages"])
    ]


def test_value_that_is_wanted_again_is_excluded_no_more() -> None:
    icp = {**ICP, "exclusions": ["hospitals", "gas"]}
    found = applied(
        "add hospitals", gives("add hospitals", "industries", "hospitals", kind="Include"), icp=icp
    )
    assert found.heard["icp"]["exclusions"] == ["gas"]


@pytest.mark.parametrize(
    ("said", "stored"), [("Singapur", "Singapore"), ("singapor", "Singapore"), ("Bayern", "Bayern")]
)
def test_countries_are_stored_by_their_english_names(said: str, stored: str) -> None:
    found = applied(said, gives(said, "regions", said), icp={**ICP, "regions": []})
    assert found.heard["icp"]["regions"] == [stored]


def test_a_first_message_can_say_that_there_are_no_more_customers() -> None:
    act = agrees("only these", yes=False, to="customers")
    assert applied("only these", act, asked="website").heard["enough"]


def test_exclusion_needs_a_word_that_takes_away() -> None:
    found = applied("hotels", gives("hotels", "industries", "hotels", kind="Exclude"))
    assert (found.heard["icp"], found.heard["unheard"]) == ({}, ["hotels"])


def test_website_is_not_denied_with_another_that_begins_like_it() -> None:
    said = "não é acme.com, é acme.com.br"
    known: dict[str, Any] = {"asked": "website", "website": "", "language": "pt"}
    found = applied(said, gives(said, "website", "acme.com.br", kind="Correct"), **known)
    assert found.heard["website"] == "https://acme.com.br"
    denied = applied(said, gives(said, "website", "acme.com", kind="Correct"), **known)
    assert denied.heard["website"] is None


def test_exclusion_of_a_region_is_kept_though_no_region_is_wanted() -> None:
    found = applied(
        "food, 10-50 people, anywhere but Sabah",
        gives("food", "industries", "food"),
        gives("anywhere but Sabah", "regions", "Sabah", kind="Exclude"),
        icp=None,
        asked="industries",
    )
    assert found.heard["icp"] == {"industries": ["food"], "exclusions": ["Sabah"]}


@pytest.mark.parametrize(
    "said", ["open a new session", "öffne eine neue Sitzung", "abre uma sessão nova"]
)
def test_to_open_is_no_more_than_a_new_session(said: str) -> None:
    found = applied(said, does(said, "new_session"), asking=question("context_change", "?"))
    assert found.choice == "new"


def test_stored_value_is_taken_out_of_the_field_that_has_it() -> None:
    found = applied("drop France", gives("drop France", "industries", "France", kind="Exclude"))
    assert found.heard["icp"] == {"regions": ["Germany"]}


@pytest.mark.parametrize(
    ("message", "value", "old", "after"),
    [
        ("no, I meant Austria", "Austria", ["Germany"], ["Austria", "France"]),
        ("no, I meant Austria", "Austria", [], ["Austria"]),
        ("nein, ich meinte Österreich", "Österreich", ["Germany"], ["Austria", "France"]),
        ("nein, ich meinte Österreich", "Österreich", [], ["Austria"]),
    ],
)
def test_correction_replaces(message: str, value: str, old: list[str], after: list[str]) -> None:
    act = gives(message, "regions", value, kind="Correct", instead_of=old)
    assert applied(message, act).heard["icp"] == {"regions": after}


def test_answer_adds_unless_its_field_was_asked_for() -> None:
    steel = gives("steel", "industries", "steel")
    assert applied("steel", steel).heard["icp"] == {"industries": [*ICP["industries"], "steel"]}
    assert applied("steel", steel, asked="industries").heard["icp"] == {"industries": ["steel"]}


def test_field_is_emptied_only_by_words_that_mean_any() -> None:
    any_ = gives("any region", "regions", kind="Correct")
    assert applied("any region", any_).heard["icp"] == {"regions": []}
    assert applied("hello", gives("hello", "regions", kind="Correct")).heard["icp"] == {}


def test_five_facts_of_one_sentence_are_kept() -> None:
    message = "We are walter.com, sell to hotels in Malaysia with 50-200 people, keyword halal"
    found = applied(
        message,
        gives("We are walter.com", "website", "walter.com"),
        gives("hotels", "industries", "hotels"),
        gives("Malaysia", "regions", "Malaysia"),
        gives("50-200 people", "sizes", "50-200"),
        gives("keyword halal", "keywords", "halal"),
        website="",
        icp=None,
    )
    assert found.heard["website"] == "https://walter.com"
    assert found.heard["icp"] == {
        "industries": ["hotels"],
        "regions": ["Malaysia"],
        "sizes": ["51-200"],
        "keywords": ["halal"],
    }
    assert found.heard["unheard"] == []


def test_corrections_and_exclusions_come_before_answers() -> None:
    message = "add Malaysia, drop France, Austria instead of Germany"
    found = applied(
        message,
        gives("add Malaysia", "regions", "Malaysia", kind="Include"),
        gives("drop France", "regions", "France", kind="Exclude"),
        gives(
            "Austria instead of Germany",
            "regions",
            "Austria",
            kind="Correct",
            instead_of=["Germany"],
        ),
    )
    assert found.heard["icp"] == {"regions": ["Austria", "Malaysia"]}


# --- websites and customers --------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    ["rival.com is our competitor", "unser Konkurrent ist rival.com", "we saw it at rival.com"],
)
@pytest.mark.parametrize("website", ["", "own.com"])
def test_website_of_others_never_becomes_the_own(message: str, website: str) -> None:
    found = applied(message, gives("rival.com", "website", "rival.com"), website=website)
    assert (found.heard["website"], found.heard["stray"]) == (None, "https://rival.com")


def test_denied_website_is_dropped() -> None:
    found = applied("we are not rival.com", gives("rival.com", "website", "rival.com"))
    assert (found.heard["website"], found.heard["unheard"]) == (None, ["rival.com"])


def test_customers_without_websites_are_asked_for_them() -> None:
    found = applied(
        "Walter and b.com buy", gives("Walter and b.com", "customers", "Walter", "b.com")
    )
    assert found.heard["customers"] == ["https://b.com"]
    assert found.heard["notes"] == [prompts.NEEDS_WEBSITES.format("Walter")]


def test_website_without_a_public_suffix_is_no_bare_name() -> None:
    message = "http://localhost:80"
    found = applied(message, gives(message, "website", message), website="")
    assert (found.heard["website"], found.heard["notes"]) == (message, [])


def test_customer_is_taken_out_before_another_is_added() -> None:
    found = applied(
        "drop c1.com, add d.com",
        gives("add d.com", "customers", "d.com", kind="Include"),
        gives("drop c1.com", "customers", "c1.com", kind="Exclude"),
    )
    assert (found.heard["without"], found.heard["customers"]) == (["c1.com"], ["https://d.com"])


# --- commands -----------------------------------------------------------------------


def test_command_about_a_number_is_sure() -> None:
    found = applied("enrich 3 and 1", does("enrich 3 and 1", "enrich", [3, 1]))
    assert found.heard["wish"] == order("enrich", ["acme", "nova"])


def test_exceptions_are_computed() -> None:
    message = "enrich everything except Evil Corp"
    found = applied(message, does(message, "enrich", "all", **{"except": ["Evil Corp"]}))
    assert found.heard["wish"] == order("enrich", [key for key in SHOWN if key != "evil"])


@pytest.mark.parametrize("but", ["Vogel", "Nobody", 99])
def test_exception_that_is_not_resolved_does_nothing(but: int | str) -> None:
    message = f"enrich everything except {but}"
    found = applied(message, does(message, "enrich", "all", **{"except": [but]}))
    assert found.heard["wish"] is None
    assert len(found.heard["notes"]) == 1


@pytest.mark.parametrize(
    ("message", "quote", "named"),
    [
        ("enrich all except Acme Corp and Evil Corp", None, ["Evil Corp"]),
        ("enrich all except Evil Corp and Acme Corp", "enrich all except Evil Corp", ["Evil Corp"]),
        ("enrich all except 3 and 4", None, [4]),
        ("enrich all but not Acme, not Evil", None, ["Evil"]),
        ("reject all except Acme Corp and Evil Corp", None, ["Evil Corp"]),
    ],
)
def test_exception_that_a_reader_leaves_out_makes_it_unsure(
    message: str, quote: str | None, named: list[Any]
) -> None:
    name = message.partition(" ")[0]
    found = applied(message, does(quote or message, name, "all", **{"except": named})).heard
    assert [each["sure"] for each in [*found["orders"], found["wish"]] if each] == [False]


@pytest.mark.parametrize(
    ("message", "targets"),
    [
        ("enrich 3", [4]),
        ("enrich 3", "all"),
        ("enrich 3", None),
        ("enrich", [1, 2]),
        ("enrich Nova", ["Novabit"]),
        ("enrich Novabit", ["Nova"]),
        ("enrich Vogel", ["Vogel Logistik"]),
        ("enrich all except 4", "all"),
    ],
)
def test_other_targets_than_the_words_name_are_not_sure(message: str, targets: Any) -> None:
    wish = applied(message, does(message, "enrich", targets)).heard["wish"]
    assert wish is None or not wish["sure"]


def test_one_of_two_candidates_is_asked_for() -> None:
    found = applied("enrich Vogel", does("enrich Vogel", "enrich", ["Vogel"]))
    assert found.heard["wish"] is None
    assert found.heard["notes"] == [
        prompts.WHICH.format("Vogel", "Vogel & Partner or Vogel Logistik")
    ]


def test_unknown_target_stops_what_costs_only() -> None:
    message = "enrich 1 and 99"
    found = applied(message, does(message, "enrich", [1, 99]))
    assert (found.heard["wish"], len(found.heard["notes"])) == (None, 1)
    message = "reject 1 and 99"
    found = applied(message, does(message, "reject", [1, 99]))
    assert found.heard["orders"] == [order("reject", ["nova"])]


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("because it is too small", "it is too small"),
        ("because: it is not relevant", "it is not relevant"),
        ("weil es zu klein ist", "es zu klein ist"),
        ("porque é pequena", "é pequena"),
    ],
)
def test_feedback_keeps_its_reason_and_is_sure(why: str, reason: str) -> None:
    message = f"reject 3 {why}"
    found = applied(message, does(message, "reject", [3], reason=reason))
    assert found.heard["orders"] == [order("reject", ["acme"], reason)]


def test_all_are_rejected_only_by_words_that_mean_all() -> None:
    [made] = applied("reject", does("reject", "reject", "all")).heard["orders"]
    assert not made["sure"]
    [made] = applied("reject them all", does("reject them all", "reject", "all")).heard["orders"]
    assert (made["keys"], made["sure"]) == (SHOWN, True)


def test_candidate_that_no_word_names_is_hidden_by_a_button_only() -> None:
    act = gives("drop it", "companies", "Acme Corp", kind="Exclude")
    offered = {**order("reject", ["acme"], sure=False), "names": ["Acme Corp"]}
    assert applied("drop it", act).heard["orders"] == [offered]


def test_of_two_costly_orders_the_one_that_is_asked_about_first_stays() -> None:
    message = "start over and enrich 3"
    found = applied(message, does("start over", "start_over"), does("enrich 3", "enrich", [3]))
    assert found.heard["wish"] is not None
    assert found.heard["wish"]["name"] == "start_over"


# --- consent ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", AGREED)
@pytest.mark.parametrize("quote", ["yes", "ja", "sim", "no problem"])
def test_agreement_chooses(kind: Kind, quote: str) -> None:
    found = applied(quote, agrees(quote, to=kind), asking=question(kind, "?"))
    assert (found.choice, found.unsure) == (AGREED[kind], False)


@pytest.mark.parametrize("kind", REFUSED)
def test_refusal_chooses(kind: Kind) -> None:
    found = applied("nein", agrees("nein", yes=False), asking=question(kind, "?"))
    assert found.choice == REFUSED[kind]


DOUBTFUL = [
    *("yes if it is free", "maybe yes", "ja, wenn es nichts kostet", "sim, talvez"),
    *("my boss said yes", "she says yes", "er sagte ja", "disse sim"),
    *("yes?", "yes, but what does it cost?", '"yes"', "would yes be right"),
    *("yes, but not now", "yes no", "ja, aber noch nicht", "sim, mas não agora"),
    *("yes purple", "yes, and also paint my house", "yes tomorrow", "ja, aber erst morgen"),
]


@pytest.mark.parametrize("message", DOUBTFUL)
@pytest.mark.parametrize("kind", ["rerun", "enrich", "start_over"])
def test_doubt_condition_report_question_or_unknown_words_make_no_choice(
    message: str, kind: Kind
) -> None:
    said = next(each for each in ("yes", "ja", "sim") if each in message)
    found = applied(message, agrees(said), asking=question(kind, "?"))
    assert (found.choice, found.unsure) == (None, True)


@pytest.mark.parametrize("kind", ["confirm_icp", "rerun", "enrich"])
def test_agreement_with_a_change_makes_no_choice(kind: Kind) -> None:
    found = applied(
        "yes, and add Malaysia",
        agrees("yes"),
        gives("add Malaysia", "regions", "Malaysia", kind="Include"),
        asking=question(kind, "?"),
    )
    assert found.choice is None
    assert found.heard["icp"] == {"regions": ["Germany", "France", "Malaysia"]}


def test_agreement_with_words_that_were_not_understood_makes_no_choice() -> None:
    found = applied(
        "yes, reject 99", agrees("yes"), does("reject 99", "reject", [99]), asking=ENRICH
    )
    assert (found.choice, found.unsure) == (None, True)


def test_agreement_beside_feedback_chooses_both() -> None:
    found = applied("yes, reject 3", agrees("yes"), does("reject 3", "reject", [3]), asking=ENRICH)
    assert found.choice == "enrich"
    assert found.heard["orders"] == [order("reject", ["acme"])]


@pytest.mark.parametrize("targets", [None, "all", []])
def test_yes_is_about_what_was_asked_and_no_more(targets: Any) -> None:
    found = applied("yes", does("yes", "enrich", targets), asking=ENRICH)
    # `ingest` takes the candidates of the question.
    assert (found.choice, found.heard["wish"]) == ("enrich", None)


def test_yes_with_an_exception_names_the_others() -> None:
    message = "yes but not 4"
    found = applied(
        message, agrees("yes"), does(message, "enrich", "all", **{"except": [4]}), asking=ENRICH
    )
    assert found.heard["wish"] == order("enrich", [key for key in SHOWN if key != "evil"])


def test_words_that_answer_no_yes_or_no_question_are_not_called_unsure() -> None:
    found = applied("hm, well", asking=question("domain", "?", website="https://w.com"))
    assert (found.choice, found.unsure, found.heard["unheard"]) == (None, False, ["hm, well"])


@pytest.mark.parametrize("name", ["stop", "undo"])
def test_stop_and_undo_refuse_a_change_that_waits(name: str) -> None:
    asking = question("context_change", "?")
    found = applied(name, does(name, name), asking=asking)
    assert (found.choice, found.heard["orders"]) == ("keep", [])


# --- hostile readings -----------------------------------------------------------------


def spends(found: Applied, kind: str) -> bool:
    wish = found.heard["wish"]
    return bool(wish and wish["sure"]) or found.choice == AGREED.get(kind)  # type: ignore[call-overload]


@pytest.mark.parametrize("message", ["is it raining", "my cat walked over the keyboard"])
@pytest.mark.parametrize("kind", AGREED)
@pytest.mark.parametrize("name", commands.COSTLY)
def test_hostile_consent_to_chatter_spends_nothing(message: str, kind: Kind, name: str) -> None:
    hostile = [agrees(message, to=kind), does(message, name, "all"), does(message, name, [1, 2])]
    found = applied(message, *hostile, asking=question(kind, "?"))
    assert not spends(found, kind)
    assert not has_data(found.heard)


@pytest.mark.parametrize(
    ("message", "quote", "hidden"),
    [
        ("enrich 3 only if my boss agrees", "enrich 3", "only if my boss agrees"),
        ("enrich 3, but not before Friday", "enrich 3", "but not before Friday"),
        ("enrich 3? why would I", "enrich 3", "? why would I"),
        ("enrich 3. why, my boss said no", "enrich 3", "why, my boss said no"),
        ("yes. why would I? show me first", "yes", "why would I? show me first"),
        ("yes, but do not show that to anyone", "yes", "but do not show that to anyone"),
    ],
)
def test_words_that_a_reader_explains_away_still_count(
    message: str, quote: str, hidden: str
) -> None:
    for acts in (
        [does(quote, "enrich", [3], reason=hidden), agrees(quote)],
        [does(quote, "enrich", [3]), agrees(quote), does(hidden, "explain")],
        [does(quote, "enrich", [3]), agrees(quote), does(hidden, "show")],
    ):
        assert not spends(applied(message, *acts, asking=ENRICH), "enrich")


def test_language_that_a_reader_claims_hides_no_negation() -> None:
    for message in ("no enrich 3", "no, enrich 3 no"):
        found = applied(message, does("enrich 3", "enrich", [3]), language="pt")
        assert not spends(found, "enrich")


# --- any message, any acts ---------------------------------------------------------------

PIECES = [
    *("yes", "ok", "no", "not", "enrich", "search", "start over", "new session", "reject", "keep"),
    *("all", "them", "except", "1", "2-4", "1,000", "99", "Nova", "Vogel", "Evil Corp", "acme.com"),
    *("hotels", "Germany", "50-200", "if", "because", "my boss said", "maybe", "purple", "?", "."),
    *(
        ",",
        "\n",
        "“",
        '"',
        "ja",
        "nicht",
        "sim",
        "não",
        "undo",
        "stop",
        "http://",
        "食品",
        "ß",
        "İ",
    ),
]
MESSAGES = st.one_of(
    st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join)
)
QUOTES = st.one_of(MESSAGES, st.sampled_from(PIECES))
VALUES = st.lists(QUOTES, max_size=3)
FIELDS = st.sampled_from(
    ["website", "customers", "companies", "industries", "sizes", "regions", "exclusions", "", "x"]
)
TARGETS = st.one_of(
    st.none(), st.just("all"), st.lists(st.one_of(st.integers(-1, 9), QUOTES), max_size=3)
)


@st.composite
def turns(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    """Draw a message, any acts, whose quotes are often parts of it, and a situation."""
    message = draw(MESSAGES)

    def quote() -> str:
        if draw(st.booleans()):
            return draw(QUOTES)
        ends = sorted(draw(st.tuples(*[st.integers(0, len(message))] * 2)))
        return message[slice(*ends)]

    kinds = st.sampled_from(
        [
            "Answer",
            "Correct",
            "Include",
            "Exclude",
            "Command",
            "Consent",
            "Ask",
            "Dispute",
            "Unclear",
        ]
    )
    acts = []
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(kinds)
        act: dict[str, Any] = {"quote": quote()}
        if kind in ("Answer", "Correct", "Include", "Exclude"):
            of = "what" if kind in ("Include", "Exclude") else "field"
            act |= {of: draw(FIELDS), "value": draw(VALUES)}
            act |= {"instead_of": draw(VALUES)} if kind == "Correct" else {}
        elif kind == "Command":
            act |= {"name": draw(st.sampled_from([*commands.COMMANDS, "fly"]))}
            act |= {"targets": draw(TARGETS), "reason": quote()[:500]}
            act |= {"except": draw(st.one_of(st.none(), VALUES))}
        elif kind == "Consent":
            act |= {"yes": draw(st.booleans()), "to": draw(st.sampled_from(["", *OPTIONS]))}
        acts.append({"kind": kind, **act})
    asking = draw(st.one_of(st.none(), st.sampled_from(list(OPTIONS))))
    known = {"asking": question(asking, "?", website="https://w.com")} if asking else {}
    asked = draw(st.sampled_from([None, "website", "customers", "industries", "icp"]))
    language = draw(st.sampled_from(["en", "de", "pt", "", "zz"]))
    return message, acts, {**known, "asked": asked, "language": language}


@given(turns())
def test_nothing_is_spent_without_a_word_that_asks_for_it(turn: Any) -> None:
    message, acts, known = turn
    found = applied(message, *acts, **known)
    asking = known.get("asking")
    agreed = asking is not None and found.choice == AGREED.get(asking["kind"], "-")
    wish = found.heard["wish"]
    if agreed or (wish is not None and wish["sure"]):
        names = [wish["name"]] if wish else [*commands.COMMANDS]
        named = any(commands.is_evidence(name, message) for name in names)
        assert named or words.has_agreement(message)


@given(turns(), st.sampled_from(["if", "maybe", "my boss said", "tomorrow", "wenn", "talvez"]))
def test_nothing_is_spent_in_doubt(turn: Any, doubt: str) -> None:
    message, acts, known = turn
    found = applied(f"{message} {doubt}", *acts, **known)
    asking = known.get("asking")
    assert found.heard["wish"] is None or not found.heard["wish"]["sure"]
    assert asking is None or found.choice != AGREED.get(asking["kind"], "-")


# --- what is as sure as it sounds ------------------------------------------------

SAME_NAME = [
    Listed("p1", "Papaya Cloud Pte. Ltd.", 1, about="rejected"),
    Listed("p2", "Papaya Foods", 2),
    Listed("uen:T99X0054E", "Lotus Systems", about="rejected"),
]
OFFERED = [{**order("restore", ["p1"], sure=False), "names": ["Papaya Cloud Pte. Ltd."]}]
OFFERED_TWO = [
    {**order("restore", ["p1", "uen:T99X0054E"], sure=False), "names": ["Papaya Cloud", "Lotus"]}
]


@pytest.mark.parametrize(
    ("message", "quote", "left_out"),
    [
        ("enrich all but 2 and 4", "enrich all but 2 and 4", [2, 4]),
        ("hello? are you still there? enrich all but 2", "enrich all but 2", [2]),
        ("alle außer 2 bis 4 anreichern", "alle außer 2 bis 4 anreichern", [2, 3, 4]),
    ],
)
def test_all_but_some_are_enriched_at_once(message: str, quote: str, left_out: list[int]) -> None:
    greets = {"kind": "SmallTalk", "quote": message.removesuffix(quote).strip() or message}
    command = does(quote, "enrich", "all", exceptions=left_out)
    wish = applied(message, greets, command, asking=question("enrich", "?")).heard["wish"]
    rest = [each.key for each in LISTED if each.number and each.number not in left_out]
    assert wish == order("enrich", rest)


@pytest.mark.parametrize(
    ("message", "quote", "reason"),
    [
        ("reject 5, data analytics is not food", "reject 5", "data analytics is not food"),
        ("5 raus, das sind keine Lebensmittel", "5 raus", "das sind keine Lebensmittel"),
        ("rejeita a 5, não vende comida", "rejeita a 5", "não vende comida"),
        ("reject 5, that one isn't in food", "reject 5", "that one isn't in food"),
    ],
)
def test_negation_in_a_reason_is_none_of_the_order(message: str, quote: str, reason: str) -> None:
    found = applied(message, does(quote, "reject", [5], reason=reason))
    assert found.heard["orders"] == [order("reject", ["partner"], reason)]


@pytest.mark.parametrize(
    "reason",
    ["do not", "that is not what I want", "Nova GmbH is not", "not really", "is that not so?"],
)
def test_negation_that_may_be_of_the_order_is_asked_about(reason: str) -> None:
    found = applied(f"reject 5, {reason}", does("reject 5", "reject", [5], reason=reason))
    assert not [each for each in found.heard["orders"] if each["sure"]]


def test_order_for_feedback_is_sure_beside_one_that_costs() -> None:
    message = "Lösch 5 und 6, das sind IT-Buden, und reicher den Rest an"
    rejects = does("Lösch 5 und 6", "reject", [5, 6], reason="das sind IT-Buden")
    enriches = does("reicher den Rest an", "enrich", "all", exceptions=[5, 6])
    found = applied(message, rejects, enriches, language="de").heard
    assert found["orders"] == [order("reject", ["partner", "logistik"], "das sind IT-Buden")]
    assert found["wish"] is not None
    assert found["wish"]["keys"] == ["nova", "novabit", "acme", "evil"]


@pytest.mark.parametrize("said", ["bring Papaya back", "actually put Papaya back in the list"])
def test_only_rejected_candidate_of_a_name_is_restored(said: str) -> None:
    found = applied(said, does(said, "restore", ["Papaya"]), listed=SAME_NAME)
    assert found.heard["orders"] == [order("restore", ["p1"])]


@pytest.mark.parametrize("act", ["consent", "command"])
def test_yes_that_names_what_is_offered_is_a_yes(act: str) -> None:
    said, asking = "yes, restore Papaya Cloud", question("offer", "?", orders=OFFERED)
    does_it = does(said, "restore", ["Papaya Cloud"])
    found = applied(
        said, agrees(said) if act == "consent" else does_it, listed=SAME_NAME, asking=asking
    )
    assert (found.choice, found.heard["orders"]) == ("do", [])


def test_yes_to_a_part_of_what_is_offered_is_none_to_all() -> None:
    asking, said = question("offer", "?", orders=OFFERED_TWO), "yes, restore Papaya"
    found = applied(said, agrees(said), listed=SAME_NAME, asking=asking)
    assert (found.choice, found.unsure) == (None, True)


def test_registration_number_names_its_candidate() -> None:
    said = "what is T99X0054E?"
    found = applied(said, does(said, "tell", ["T99X0054E"]), listed=SAME_NAME)
    assert found.heard["orders"] == [order("tell", ["uen:T99X0054E"])]


# --- what is so already ------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "name", "value"),
    [
        ("keywords: any", "keywords", []),
        ("regions: Germany, France", "regions", ["Germany", "France"]),
    ],
)
def test_restated_value_does_not_stand_in_the_way_of_a_yes(
    stated: str, name: str, value: list[str]
) -> None:
    yes, asking = "yes, search please", question("confirm_icp", "?")
    acts = (gives(stated, name, *value, kind="Correct"), agrees(yes, to="confirm_icp"))
    found = applied(f"{stated}. and {yes}", *acts, asking=asking)
    assert (found.choice, found.heard["icp"]) == ("confirm", {})
    other = applied(f"{stated}. and {yes}", *acts, asking=asking, icp={**ICP, name: ["Peru"]})
    assert (other.choice, other.heard["icp"]) == (None, {name: value})


def test_answer_that_anything_will_do_empties_a_field() -> None:
    act = gives("regions: any", "regions")
    assert applied("regions: any", act).heard["icp"] == {"regions": []}


def test_stored_value_in_other_words_replaces_the_others_if_only_it_is_wanted() -> None:
    icp = {**ICP, "industries": ["Cold storage warehousing", "Food wholesale"]}
    said = "nur die mit kühllager"
    act = gives(said, "industries", "Cold storage warehousing", kind="Correct")
    found = applied(said, act, icp=icp, language="de").heard
    assert (found["icp"], found["unheard"]) == ({"industries": ["Cold storage warehousing"]}, [])
    vague = applied("die mit kühllager", {**act, "quote": "die mit kühllager"}, icp=icp)
    assert vague.heard["icp"] == {}


# --- why -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "quote", "about"),
    [
        ("I never said you should enrich. Why did you?", "Why did you?", "why_enrich"),
        ("mas porque não enriqueceu nenhuma?", "porque não enriqueceu nenhuma?", "why_enrich"),
        ("warum fragst du nochmal?", "warum fragst du nochmal?", "why_ask"),
        ("why hotels?", "why hotels?", "why"),
    ],
)
def test_why_is_about_what_was_done_or_asked(message: str, quote: str, about: str) -> None:
    found = applied(message, {"kind": "Ask", "quote": quote, "about": "why"})
    assert found.heard["orders"] == [order("ask", words=about)]

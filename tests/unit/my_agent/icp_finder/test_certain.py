"""The reader without a model: it takes what is certain, and does nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from my_agent.icp_finder.model import Icp
from my_agent.icp_finder.reading import certain
from my_agent.icp_finder.reading.applying import Applied, apply
from my_agent.icp_finder.reading.heard import nothing, order
from my_agent.icp_finder.reading.questions import AGREED, REFUSED, Kind, question
from my_agent.icp_finder.reading.situation import Situation
from my_agent.understanding.names import Listed

LISTED = [
    Listed("nova", "Nova GmbH", 1, "nova.de"),
    Listed("novabit", "Novabit", 2, "novabit.com"),
    Listed("acme", "Acme Corp", 3, "acme.com"),
    Listed("evil", "Evil Corp", 4),
    Listed("studio", "Studio 54", 5),
    Listed("three", "3M", 6),
    Listed("gone", "Gone Ltd"),
]
SHOWN = [each.key for each in LISTED if each.number]
ICP: Icp = {
    "industries": ["Food distribution", "Hotels"],
    "sizes": ["11-50"],
    "regions": ["Germany"],
    "keywords": [],
}


def read(message: str, **known: Any) -> Applied:
    base: dict[str, Any] = {
        "listed": LISTED,
        "icp": ICP,
        "website": "own.com",
        "customers": ["c1.com", "c2.com"],
        "confirmed": True,
    }
    situation = Situation(**{**base, **known})
    return apply(situation, message, certain.read(message, situation), "code")


def does_nothing(found: Applied) -> bool:
    unheard = found.heard["unheard"]
    return (
        found.choice is None and found.heard == {**nothing(), "unheard": unheard} and bool(unheard)
    )


# --- questions ------------------------------------------------------------------


@pytest.mark.parametrize("kind", AGREED)
@pytest.mark.parametrize("said", ["yes", "Ja, bitte!", "sim", "no problem", "kein Problem", "👍"])
def test_yes_answers_the_open_question(kind: Kind, said: str) -> None:
    assert read(said, asking=question(kind, "?")).choice == AGREED[kind]


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize(
    "said", ["no", "Nein, danke!", "não", "not now", "nicht jetzt", "agora não"]
)
def test_no_answers_the_open_question(kind: Kind, said: str) -> None:
    assert read(said, asking=question(kind, "?")).choice == REFUSED[kind]


@pytest.mark.parametrize("said", ["yes", "no", "ja", "3", "ok"])
def test_without_a_question_yes_no_and_numbers_do_nothing(said: str) -> None:
    assert does_nothing(read(said))


def test_yes_to_the_question_for_a_website_chooses_nothing() -> None:
    asking = question("domain", "?", website="https://w.com")
    assert read("yes", asking=asking).choice is None


@pytest.mark.parametrize("said", ["ok thanks", "danke, ok", "obrigada, ok"])
def test_thanks_are_no_agreement(said: str) -> None:
    found = read(said, asking=question("enrich", "?"))
    assert (found.choice, found.heard["orders"]) == (None, [order("talk", words="thanks")])


@pytest.mark.parametrize(
    "said",
    [
        *("no", "no more", "that's all", "that is all", "I have no more", "none"),
        *("keine mehr", "das war's", "das sind alle", "mehr habe ich nicht"),
        *("não tenho mais", "mais nenhum", "é só isso", "só esses"),
    ],
)
def test_there_are_no_more_customers(said: str) -> None:
    found = read(said, asked="customers")
    assert (found.heard["enough"], found.heard["unheard"]) == (True, [])


@pytest.mark.parametrize("said", ["no more hotels", "no more than 50", "that's all wrong"])
def test_other_sentences_with_no_more_are_not_the_end_of_the_customers(said: str) -> None:
    assert not read(said, asked="customers").heard["enough"]


# --- websites and fields -----------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "known", "website", "customers", "stray"),
    [
        ("walter.com", {"asked": "website", "website": ""}, "walter.com", [], None),
        ("we are walter.com", {"website": ""}, "walter.com", [], None),
        ("a.com b.com", {"asked": "website", "website": ""}, "a.com", ["b.com"], None),
        ("a.com, b.com", {"asked": "customers"}, None, ["a.com", "b.com"], None),
        ("Kunden: a.com und b.com", {}, None, ["a.com", "b.com"], None),
        ("nosso site é walter.com", {"asked": "customers"}, "walter.com", [], None),
        ("walter.com", {}, None, [], "walter.com"),
    ],
)
def test_websites(
    said: str, known: Any, website: str | None, customers: list[str], stray: str | None
) -> None:
    heard = read(said, **known).heard
    assert heard["website"] == (website and f"https://{website}")
    assert heard["customers"] == [f"https://{each}" for each in customers]
    assert heard["stray"] == (stray and f"https://{stray}")


def test_whole_list_of_customers_replaces_a_whole_list() -> None:
    five = [f"c{n}.com" for n in range(5)]
    found = read("customers: a.com b.com d.com e.com f.com", customers=five)
    assert (found.heard["without"], len(found.heard["customers"])) == (five, 5)


@pytest.mark.parametrize("said", ["rival.com is our competitor", "is a.com any good", "not a.com"])
def test_websites_in_other_sentences_do_nothing(said: str) -> None:
    assert does_nothing(read(said))


@pytest.mark.parametrize(
    ("said", "icp"),
    [
        (
            "industries: steel; regions: Malaysia",
            {"industries": ["steel"], "regions": ["Malaysia"]},
        ),
        ("Branchen: Stahl\nGröße: 50-200", {"industries": ["Stahl"], "sizes": ["51-200"]}),
        ("regions: any", {"regions": []}),
        ("exclude: hotels", {"exclusions": ["hotels"]}),
        ("add Malaysia", {"regions": ["Germany", "Malaysia"]}),
        ("drop hotels", {"industries": ["Food distribution"]}),
        ("not hospitals", {"exclusions": ["hospitals"]}),
        ("anywhere but Sabah", {"exclusions": ["Sabah"]}),
        ("no, I meant Austria", {"regions": ["Austria"]}),
        ("make it Austria", {"regions": ["Austria"]}),
    ],
)
def test_fields_and_known_values(said: str, icp: Any) -> None:
    assert read(said).heard["icp"] == icp


@pytest.mark.parametrize("asked", ["industries", "icp"])
def test_known_values_answer_the_question_for_them(asked: str) -> None:
    found = read("steel and food, Malaysia", asked=asked)
    assert found.heard["icp"] == {"industries": ["steel", "food"], "regions": ["Malaysia"]}


@pytest.mark.parametrize("said", ["everything except steel", "steel. No, rather food"])
def test_more_than_values_is_no_answer_to_the_question_for_them(said: str) -> None:
    assert does_nothing(read(said, asked="industries", icp=None))


def test_customer_is_dropped_by_its_website() -> None:
    assert read("drop c1.com").heard["without"] == ["c1.com"]


# --- commands --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "keys"),
    [
        ("reject 3", ["acme"]),
        ("reject 1,3", ["nova", "acme"]),
        ("reject 2-4", ["novabit", "acme", "evil"]),
        ("reject the first two", ["nova", "novabit"]),
        ("reject the second", ["novabit"]),
        ("reject Nova", ["nova"]),
        ("reject Novabit", ["novabit"]),
        ("reject Acme and 1", ["acme", "nova"]),
        ("reject Studio 54", ["studio"]),
        ("reject 3M", ["three"]),
        ("could you please reject 2?", ["novabit"]),
        ("lehne 3 ab", ["acme"]),
        ("rejeita 3 e 4", ["acme", "evil"]),
        ("reject everything", SHOWN),
    ],
)
def test_listed_numbers_and_names(said: str, keys: list[str]) -> None:
    assert read(said).heard["orders"] == [order("reject", keys)]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("reject 3 because: it is too small", "it is too small"),
        ("reject 3 because it is not 1 of ours", "it is not 1 of ours"),
        ("reject 3, weil es zu klein ist", "es zu klein ist"),
        ("rejeita 3 porque é pequena", "é pequena"),
    ],
)
def test_feedback_has_its_reason(said: str, reason: str) -> None:
    assert read(said).heard["orders"] == [order("reject", ["acme"], reason)]


@pytest.mark.parametrize("but", ["Evil Corp", "4", "number 4"])
def test_exceptions_are_left_out(but: str) -> None:
    found = read(f"enrich everything except {but}")
    assert found.heard["wish"] == order("enrich", [key for key in SHOWN if key != "evil"])


@pytest.mark.parametrize(
    ("said", "name"),
    [
        *(("show", "show"), ("more", "more"), ("help", "help"), ("what's new?", "whats_new")),
        *(("undo", "undo"), ("stop", "stop"), ("export", "export"), ("profile", "profile")),
    ],
)
def test_command_that_stands_alone(said: str, name: str) -> None:
    assert read(said).heard["orders"] == [order(name)]


@pytest.mark.parametrize("said", ["enrich", "search again", "start over", "new session"])
def test_costly_command_in_its_own_words(said: str) -> None:
    wish = read(said).heard["wish"]
    assert wish is not None
    assert (wish["keys"], wish["sure"]) == (None, True)


def test_first_behind_a_number_names_nobody() -> None:
    assert read("why is 3 first?").heard["orders"] == [order("explain", ["acme"])]


@pytest.mark.parametrize(
    "said",
    [
        *("hm, well", "purple monkeys", "is it raining?", "enrich 3?", "don't enrich 3"),
        *("enrich 3 if it is free", "enrich 3 tomorrow", "maybe enrich 3", "enrich 1,000"),
        *("reject", "reject 3 and keep 4", "reject the nice ones", "reject 3 - too small"),
        *("enrich everything except the nice ones", "start over with hotels", "search me a hat"),
        *("only those in Germany", "nobody said enrich", "why would you enrich that?"),
        # A list with more in it than values.
        *("drop hotels, sizes 50 to 200", "drop hotels and add steel", "add steel. Or rather food"),
        "x" * 1_999,
        "enrich " * 1_000,
    ],
)
def test_what_is_uncertain_does_nothing(said: str) -> None:
    assert does_nothing(read(said))


@pytest.mark.parametrize(
    "said",
    [
        f"reject 3 because {'it is too small ' * 100}",
        " ".join(f"a{n}.com" for n in range(200)),
        "customers: " + " ".join(f"a{n}.com" for n in range(200)),
        "drop " + ", ".join(["hotels", "Malaysia"] * 60),
        "add " + ", ".join(f"{n}0 employees" for n in range(1, 100)),
        "exclude hospitals, " * 60,
        f"reject{' ' * 9_000}3",
        "reject 1," + ",".join(map(str, range(400))),
        "reject 1-999",
        "industries: " + ", ".join(f"steel {n}" for n in range(150)),
        " " * 3_000,
        "",
    ],
    ids=lambda said: said[:12],
)
@pytest.mark.parametrize("asked", [None, "website", "customers", "industries"])
def test_long_message_never_fails(said: str, asked: str | None) -> None:
    read(said, asked=asked)


def test_many_websites_are_read_as_far_as_acts_hold_them() -> None:
    found = read(" ".join(f"a{n}.com" for n in range(100)), asked="customers")
    assert found.heard["customers"][:2] == ["https://a0.com", "https://a1.com"]


def test_long_reason_is_cut() -> None:
    [made] = read(f"reject 3 because {'it is too small ' * 100}").heard["orders"]
    assert (made["keys"], made["words"][:15]) == (["acme"], "it is too small")


@given(st.text(max_size=200), st.sampled_from([None, *AGREED]))
def test_any_message_is_read(said: str, kind: Any) -> None:
    found = read(said, asking=question(kind, "?") if kind else None)
    assert found.heard["by"] == "code"

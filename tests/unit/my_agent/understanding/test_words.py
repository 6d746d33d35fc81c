"""Words of agreement, refusal and doubt in English, German and Portuguese."""

import pytest

from my_agent.understanding import words

AGREEMENT = [
    *("yes", "Yes!", "ok", "sure", "go ahead", "do it", "looks good", "sounds right", "of course"),
    *("sure, why not", "that's right", "not bad", "yes please", "👍"),
    *("ja", "ja, bitte", "klar", "genau", "mach das", "leg los", "auf jeden Fall", "passt so"),
    *("sim", "sim, por favor", "pode ser", "vai em frente", "isso mesmo", "tá bom", "com certeza"),
]
REFUSAL = [
    *("no", "No!", "nope", "no thanks", "not now", "don't", "please don't", "cancel", "later"),
    *("no need", "no no no", "👎"),
    *("nein", "nein danke", "nicht jetzt", "lieber nicht", "nö", "nicht nötig"),
    *("não", "não, obrigado", "agora não", "nunca", "cancela"),
]
NEITHER = [
    *("ok thanks", "great, thanks", "danke, ok", "obrigada, ok", "thanks", "perfect, thank you"),
    *("yes?", "ok?", "no?", "maybe", "hm", "ok let me think", "I don't know", "yes purple"),
    *("vielleicht", "talvez", "", "   ", "?", "purple", "don't do it now or ever purple"),
]


@pytest.mark.parametrize("text", AGREEMENT)
def test_agreement_is_agreement(text: str) -> None:
    assert (words.agrees(text), words.refuses(text)) == (True, False)
    assert words.has_agreement(text)


@pytest.mark.parametrize("text", ["no problem", "no worries", "kein Problem", "sem problema"])
def test_no_within_a_phrase_agrees(text: str) -> None:
    assert (words.agrees(text), words.refuses(text)) == (True, False)


@pytest.mark.parametrize("text", REFUSAL)
def test_refusal_is_refusal(text: str) -> None:
    assert (words.agrees(text), words.refuses(text)) == (False, True)


@pytest.mark.parametrize("text", NEITHER)
def test_neither_agreement_nor_refusal(text: str) -> None:
    assert (words.agrees(text), words.refuses(text)) == (False, False)


@pytest.mark.parametrize("text", ["yes thanks", "ja, danke", "sim, obrigado"])
def test_thanks_do_not_weaken_a_strong_yes(text: str) -> None:
    assert words.agrees(text)


@pytest.mark.parametrize("text", ["yesterday", "book", "cargo", "jahr", "simples"])
def test_part_of_a_word_is_no_agreement(text: str) -> None:
    assert not words.has_agreement(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("hello there", "greeting"),
        ("Guten Morgen", "greeting"),
        ("bom dia", "greeting"),
        ("thanks a lot", "thanks"),
        ("vielen Dank", "thanks"),
        ("obrigada", "thanks"),
        ("tschüss", "bye"),
        ("até logo", "bye"),
        ("hello, reject 3", None),
        ("", None),
    ],
)
def test_small_talk_is_a_message_that_is_nothing_else(text: str, kind: str | None) -> None:
    assert words.small_talk(text) == kind


@pytest.mark.parametrize(
    ("text", "language", "negates"),
    [
        ("não no Brasil", "pt", True),
        ("no Brasil", "pt-BR", False),
        ("no Brazil", "en", True),
        ("no Brazil", "", True),
        ("I can't", "en", True),
        ("keinesfalls", "de", True),
        ("nothing", "pt", True),
        ("note the knot", "en", False),
        ("不要", "zh", True),
    ],
)
def test_negation(text: str, language: str, negates: bool) -> None:
    assert words.negates(text, language) is negates


@pytest.mark.parametrize(
    "text",
    [
        *("if it is free", "maybe", "once my boss agrees", "he said yes", "tomorrow", "first"),
        *("wenn es geht", "vielleicht", "erst morgen", "sagte er", "würde ich"),
        *("talvez", "quando puder", "amanhã", "disse que sim", "antes"),
    ],
)
def test_doubt_condition_report_and_another_time(text: str) -> None:
    assert words.DOUBT.search(text)


@pytest.mark.parametrize("text", ["first two", "the first 3", "erste", "gift", "after-shave"[6:]])
def test_no_doubt(text: str) -> None:
    assert not words.DOUBT.search(text)

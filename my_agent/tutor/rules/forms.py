"""Verb forms: what follows an auxiliary, a preposition or another verb."""

from collections.abc import Iterator

from my_agent.tutor.corrections import Issue, IssueType
from my_agent.tutor.rules import lexicon
from my_agent.tutor.rules.clauses import (
    ADVERBS,
    DETERMINERS,
    MODALS,
    MODALS_NOT,
    OWN,
    PREPOSITIONS,
    PRONOUNS,
)
from my_agent.tutor.rules.sentences import Sentence
from my_agent.tutor.rules.wordlists import words

_DO = words("do does did don't doesn't didn't")
_OBJECTS = words("me you him her us them it")
_BE = words("am is are was were i'm he's she's we're they're you're isn't aren't")
_WITH_GERUND = words(
    "enjoy enjoys enjoyed finish finishes finished avoid avoids avoided mind suggest suggests "
    "suggested dislike miss"
)
_WITH_TO = words(
    "want wants wanted need needs decide decides decided hope hopes like plan plans planned "
    "learn learned learnt refuse refused manage managed agreed forgot"
)
# "like" takes "to" only after "would".
_WOULD = words("would i'd we'd he'd she'd they'd you'd")
_BEFORE_GERUND = words("of about before after without at in on by from instead")
_SOME = DETERMINERS | _OBJECTS | words("something anything more some any out up")
_THANKS = words("thank thanks you sorry good responsible famous used much lot known bad perfect")
_NOUN_PHRASES = frozenset(
    ["at last", "in love", "in need", "on leave", "by hand", "in use", "of use"]
)
_BEFORE_BASE = "The base form follows {}."
_PERFECT_ADVERBS = ADVERBS | {"not"}


def check(sentence: Sentence) -> Iterator[Issue]:
    """Yield verbs whose form does not fit the words before them."""
    for index in range(len(sentence.words)):
        for rule in (_modal, _do, _be, _have, _preposition, _verb, _make, _used, _adjective):
            issue = rule(sentence, index)
            if issue is not None:
                yield issue
                break
    yield from _first(sentence)


def _base_of(word: str) -> str | None:
    """Return the verb of a form that is not a base form."""
    if lexicon.is_base(word):
        return None
    return lexicon.of_third(word) or lexicon.of_past(word) or lexicon.of_participle(word)


def _after(sentence: Sentence, index: int) -> int:
    """Return the index after the adverbs and "not" that follow a word."""
    index += 1
    while sentence.low(index) in _PERFECT_ADVERBS:
        index += 1
    return index


def _modal(sentence: Sentence, index: int) -> Issue | None:
    low = sentence.low(index)
    if low not in MODALS | MODALS_NOT or sentence.low(index - 1) in DETERMINERS:
        return None
    place = _after(sentence, index)
    if (
        sentence.is_question
        and sentence.low(place) in {*PRONOUNS}
        and sentence.low(index - 1)
        in {
            "",
            "how",
            "where",
            "when",
            "what",
            "why",
            ".",
            ",",
            "!",
        }
    ):
        place = _after(sentence, place)
    verb, message = sentence.low(place), _BEFORE_BASE.format(f"“{low}”")
    if low in {"will", "won't"} and verb == "can":
        return sentence.issue("verb_form", place, place, "be able to", message)
    if verb == "to" and lexicon.is_base(sentence.low(place + 1)):
        remedy = sentence.at(place + 1).text
        return sentence.issue("verb_form", place, place + 1, remedy, message)
    lemma = _base_of(verb) or lexicon.of_gerund(verb)
    if (
        lemma is None
        or verb in {"being"}
        or (low in {"may", "might", "will"} and (verb in {"is", "was"}))
    ):
        return None
    return sentence.issue("verb_form", place, place, lemma, message)


def _do(sentence: Sentence, index: int) -> Issue | None:
    low = sentence.low(index)
    if low not in _DO:
        return None
    place = _after(sentence, index)
    asked = False
    if not low.endswith("n't") and sentence.low(place - 1) != "not":
        if sentence.low(place) in OWN | {"the"}:
            place += 2
            asked = True
        elif sentence.low(place) in PRONOUNS:
            place = _after(sentence, place)
            asked = True
        if not asked or not sentence.is_question:
            return None
        if index and sentence.low(index - 1) not in {
            *("what", "where", "when", "why", "how", "who", "time", "much", "often", "long"),
            *(",", "but", "and", "so"),
        }:
            return None
    elif sentence.low(place) in PRONOUNS and sentence.is_question:
        place = _after(sentence, place)
    verb = sentence.low(place)
    lemma = _base_of(verb)
    if verb == "to" and lexicon.is_base(sentence.low(place + 1)) and low.endswith("n't"):
        remedy = sentence.at(place + 1).text
        return sentence.issue("verb_form", place, place + 1, remedy, _BEFORE_BASE.format(low))
    if lemma is None or verb == "lives" or lexicon.of_gerund(verb):
        return None
    kind: IssueType = "tense" if low.startswith("did") and lexicon.of_past(verb) else "verb_form"
    message = _BEFORE_BASE.format(f"“{low}”")
    return sentence.issue(kind, place, place, lemma, message)


def _be(sentence: Sentence, index: int) -> Issue | None:
    low = sentence.low(index)
    if low not in _BE:
        return None
    place = _after(sentence, index)
    verb, subject = sentence.low(place), sentence.low(index - 1)
    if low in {"am", "is", "are", "i'm"} and verb in {"agree", "disagree"}:
        if low == "i'm":
            return sentence.issue(
                "verb_form", index, place, f"I {verb}", "“Agree” is a verb: I agree."
            )
        return sentence.issue("verb_form", index, place, verb, "“Agree” is a verb: I agree.")
    is_person = subject in {"i", "he", "she", "we", "they", "you"} or "'" in low
    if sentence.is_question and index == 0 and verb in {"i", "he", "she", "we", "they", "you"}:
        is_person, place = True, place + 1
        verb = sentence.low(place)
    if not is_person or not lexicon.is_base(verb) or verb in lexicon.AFTER_BE:
        return None
    after = sentence.low(place + 1)
    if verb in lexicon.MIXED and after not in _SOME | PREPOSITIONS:
        return None
    return sentence.issue(
        "verb_form", place, place, lexicon.gerund(verb), "After “be” the verb ends in -ing."
    )


_PERFECT = "After “have” stands the participle."


def _have(sentence: Sentence, index: int) -> Issue | None:
    low = sentence.low(index)
    if low not in {"have", "has", "i've", "we've", "they've", "haven't", "hasn't", "had"}:
        return None
    place = _after(sentence, index)
    verb = sentence.low(place)
    if place == index + 1 and sentence.low(index - 1) in {"to", "will", "would", "'ll"}:
        return None
    is_perfect = place > index + 1 or "'" in low
    if low == "had" and not is_perfect:
        return None
    lemma = verb if lexicon.is_base(verb) else lexicon.of_past(verb)
    if (
        lemma
        and not lexicon.of_participle(verb)
        and (
            is_perfect
            or (lemma in lexicon.PURE and sentence.low(place + 1) in _SOME | PREPOSITIONS)
        )
    ):
        if not is_perfect and lexicon.is_base(verb) and lemma in lexicon.MIXED:
            return None
        return sentence.issue("verb_form", place, place, lexicon.participle(lemma), _PERFECT)
    if (low == "has" and verb == "born") or (low == "have" and verb == "born"):
        return sentence.issue("tense", index, index, "was", "People “were born”.")
    working = {"working", "living", "studying", "waiting", "learning", "teaching", "playing"}
    if verb in working and low in {"has", "have"}:
        return sentence.issue(
            "verb_form", place, place, f"been {verb}", "“Has been working” is the whole form."
        )
    return None


def _preposition(sentence: Sentence, index: int) -> Issue | None:
    low, verb, after = sentence.low(index), sentence.low(index + 1), sentence.low(index + 2)
    if sentence.at(index + 1).is_capital:
        return None
    if not lexicon.is_base(verb) or f"{low} {verb}" in _NOUN_PHRASES:
        return None
    skilled = low == "at" and sentence.low(index - 1) in {"good", "bad", "better"}
    if (
        not skilled
        and verb in lexicon.MIXED
        and (after not in _SOME or after in {"a", "the", "up", "out"})
    ):
        return None
    if verb in {"travel", "study", "sleep", "rise", "set", "cook", "draw", "play", "fall"} and (
        not after.isalpha() or after in PREPOSITIONS | {"and", "is", "was", "or", "but"}
    ):
        return None
    gerund = lexicon.gerund(verb)
    message = "After a preposition the verb ends in -ing."
    if low in _BEFORE_GERUND and sentence.low(index - 1) not in {"not", "all"}:
        before = sentence.low(index - 1)
        if low in {"in", "at", "by", "on", "from"} and before not in {
            "good",
            "bad",
            "better",
            "interested",
            "think",
            "thinking",
            "prevent",
            "prevented",
            "begin",
            "succeeded",
        }:
            return None
        return sentence.issue("verb_form", index + 1, index + 1, gerund, message)
    if low == "to" and sentence.low(index - 1) == "forward":
        return sentence.issue("verb_form", index + 1, index + 1, gerund, message)
    if low == "for":
        if sentence.low(index - 1) in _THANKS | _OBJECTS:
            return sentence.issue("verb_form", index + 1, index + 1, gerund, message)
        purpose = "A purpose is told by “to” and the verb."
        return sentence.issue("verb_form", index, index + 1, f"to {verb}", purpose)
    return None


def _verb(sentence: Sentence, index: int) -> Issue | None:
    low, second, third = (sentence.low(index + step) for step in range(3))
    if low in _WITH_GERUND and second == "to" and lexicon.is_base(third):
        if low in {"mind", "miss"} and sentence.low(index - 1) in DETERMINERS:
            return None
        return sentence.issue(
            "verb_form",
            index + 1,
            index + 2,
            lexicon.gerund(third),
            f"After “{low}” the verb ends in -ing.",
        )
    if low in {"want", "wants", "wanted"} and second == "that":
        objects = {"i": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
        verb = sentence.low(index + 3)
        lemma = verb if lexicon.is_base(verb) else lexicon.of_third(verb)
        if third in PRONOUNS and lemma:
            remedy = f"{objects.get(third, third)} to {lemma}"
            return sentence.issue(
                "verb_form", index + 1, index + 3, remedy, "We want somebody to do something."
            )
    if third == "that" and second in lexicon.MIXED:
        return None
    if low not in _WITH_TO or not lexicon.is_base(second) or second == low:
        return None
    if low == "like" and sentence.low(index - 1) not in _WOULD:
        return None
    if sentence.low(index - 1) in DETERMINERS or (low.startswith("learn") and second != "speak"):
        return None
    if second in lexicon.MIXED and third not in _SOME:
        return None
    return sentence.issue(
        "verb_form", index + 1, index + 1, f"to {second}", f"After “{low}” stands “to”."
    )


def _make(sentence: Sentence, index: int) -> Issue | None:
    if sentence.low(index) not in {"let", "lets", "make", "makes", "made"}:
        return None
    if sentence.low(index + 1) not in _OBJECTS or sentence.low(index + 2) != "to":
        return None
    verb = sentence.at(index + 3)
    if not lexicon.is_base(verb.low) or sentence.low(index + 1) == "it":
        return None
    return sentence.issue(
        "verb_form", index + 2, index + 3, verb.text, "After “let” and “make” there is no “to”."
    )


def _used(sentence: Sentence, index: int) -> Issue | None:
    if sentence.low(index) != "used" or sentence.low(index + 1) != "to":
        return None
    if sentence.low(index - 1) not in PRONOUNS:
        return None
    lemma = lexicon.of_gerund(sentence.low(index + 2))
    if lemma is None:
        return None
    return sentence.issue(
        "verb_form", index + 2, index + 2, lemma, "“Used to” and the verb tell of a past habit."
    )


_HARD = words("difficult easy hard important necessary possible impossible better good nice great")


def _adjective(sentence: Sentence, index: int) -> Issue | None:
    if sentence.low(index) not in _HARD or sentence.low(index + 1) in {"", "to"}:
        return None
    has_it = sentence.low(index - 1) in {"is", "it's", "was", "very", "so"}
    verb, after = sentence.low(index + 1), sentence.low(index + 2)
    if not has_it or verb not in lexicon.PURE or after not in _SOME | {"english"}:
        return None
    if "it" not in {w.low for w in sentence.words[:index]} and not sentence.low(0).startswith("it"):
        return None
    return sentence.issue(
        "verb_form", index + 1, index + 1, f"to {verb}", "After “it is easy” stands “to”."
    )


_SUBJECTS = words(
    "learn speak study travel read play live work eat drink drive cook swim run write listen"
)


def _first(sentence: Sentence) -> Iterator[Issue]:
    """Yield "learn" of "Learn English is important"."""
    if sentence.low(0) not in _SUBJECTS:
        return
    for index in range(2, 5):
        if sentence.low(index) == "is":
            middle = [sentence.low(place) for place in range(1, index)]
            if not any(word in PRONOUNS or word in {",", "what", "how"} for word in middle):
                yield sentence.issue(
                    "verb_form",
                    0,
                    0,
                    lexicon.gerund(sentence.low(0)),
                    "As a subject the verb ends in -ing.",
                )
            return

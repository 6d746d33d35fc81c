"""Clauses: find the subjects of a sentence and the verbs that follow them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from my_agent.tutor.rules import lexicon
from my_agent.tutor.rules.sentences import Sentence
from my_agent.tutor.rules.wordlists import words

Number = Literal["first", "you", "singular", "plural"]

PRONOUNS: dict[str, Number] = {
    "i": "first",
    "you": "you",
    "he": "singular",
    "she": "singular",
    "it": "singular",
    "we": "plural",
    "they": "plural",
    **dict.fromkeys(
        ["everybody", "everyone", "somebody", "someone", "nobody", "everything", "something"],
        "singular",
    ),
}
OWN = words("my your his her our their")
DETERMINERS = OWN | words("the a an this that these those each every some")
MODALS = words("can could will would shall should may might must")
MODALS_NOT = words("can't couldn't won't wouldn't shouldn't mustn't cannot")
DO = words("do does did don't doesn't didn't")
AUXILIARIES = MODALS | MODALS_NOT | DO
ADVERBS = words(
    "always never usually often sometimes really also still just already only rarely ever"
)
# A clause begins after one of these.
OPENERS = words("""
    because when if that but so where while after before than think say says said know hope why
    since although until believe who how what
    """)
SIGNS = words(", ; : -")
# After these, "he go" is right: "I suggest that he go".
WISHES = words("""
    suggest suggests suggested insist insists insisted recommend recommends recommended demand
    demands demanded propose proposed request requested essential important vital necessary
    crucial better wish wishes lest rather
    """)
PREPOSITIONS = words("""
    in on at to for with from by about of near without after before until during into under over
    since between
    """)
# What may follow a verb, and rarely a noun that modifies another.
FOLLOWERS = (
    PREPOSITIONS
    | DETERMINERS
    | words("""
        me him us them it you very a lot too many much late early there here home well every more
        english portuguese spanish french up out away not together three two four
        """)
)


@dataclass(frozen=True)
class Clause:
    """A subject and the word after it.

    Attributes:
        subject: index of the subject's first word.
        verb: index of the word that follows the subject and its adverbs.
        number: what the subject asks of its verb.
        is_pronoun: whether the subject is a pronoun.
    """

    subject: int
    verb: int
    number: Number
    is_pronoun: bool


def clauses(sentence: Sentence) -> Iterator[Clause]:
    """Yield the clauses whose subject can be told from an object."""
    for index in range(len(sentence.words)):
        if (found := _clause(sentence, index)) is not None:
            yield found


def _clause(sentence: Sentence, index: int) -> Clause | None:
    low = sentence.low(index)
    if low in PRONOUNS and _may_be_subject(sentence, index):
        return _with_verb(sentence, index, index + 1, PRONOUNS[low], is_pronoun=True)
    if low == "who" and lexicon.is_singular(sentence.low(index - 1)):
        return _with_verb(sentence, index, index + 1, "singular")
    if not opens(sentence, index):
        return None
    if low in DETERMINERS:
        return _noun_clause(sentence, index)
    if low == "people" or (low.endswith("s") and index == 0 and lexicon.is_plural(low)):
        return _with_verb(sentence, index, index + 1, "plural")
    word = sentence.at(index)
    may_be_name = word.is_capital and word.text.isalpha() and low not in _NOT_NAMES
    if may_be_name and not (sentence.is_question or lexicon.is_known(low) or low.endswith("s")):
        return _with_verb(sentence, index, index + 1, "singular")
    return None


_NOT_NAMES = (
    frozenset(PRONOUNS)
    | DETERMINERS
    | OPENERS
    | AUXILIARIES
    | PREPOSITIONS
    | words(
        "wanna gonna gotta lemme dunno yeah hmm and or here there let's please yes no hi hello both all most"
    )
)


def _noun_clause(sentence: Sentence, index: int) -> Clause | None:
    """Return the clause of a subject such as "my best friend" or "one of my friends"."""
    place = index + 1
    while place - index < 3 and _is_before_noun(sentence, place):
        place += 1
    noun = sentence.low(place)
    if lexicon.is_plural(noun):
        if sentence.low(index) in {"a", "an", "each", "every"}:
            return None
        return _with_verb(sentence, index, place + 1, "plural")
    if lexicon.is_singular(noun) and sentence.low(index) not in {"these", "those"}:
        return _with_verb(sentence, index, place + 1, "singular")
    return None


def _is_before_noun(sentence: Sentence, place: int) -> bool:
    """Return whether the word is an adjective or noun before the subject's noun."""
    low, after = sentence.low(place), sentence.low(place + 1)
    is_noun = lexicon.is_singular(after) or lexicon.is_plural(after)
    if not is_noun or lexicon.is_base(after) or lexicon.of_third(after):
        return False
    return (
        after not in ADVERBS
        and after not in {"is", "are", "was", "has", "have", "do"}
        and (lexicon.is_adjective(low) or lexicon.is_singular(low))
    )


def _with_verb(
    sentence: Sentence, subject: int, verb: int, number: Number, *, is_pronoun: bool = False
) -> Clause | None:
    while sentence.low(verb) in ADVERBS:
        verb += 1
    return Clause(subject, verb, number, is_pronoun) if verb < len(sentence.words) else None


def opens(sentence: Sentence, index: int) -> bool:
    """Return whether a clause begins at this word."""
    before = sentence.low(index - 1)
    if index == 0 or before in SIGNS or before in OPENERS:
        return True
    if before == "and":
        # "there and my cousin" begins a clause, "my father and my mother" does not.
        return sentence.low(index - 2) in {"there", "here", "it", "me", "work", "home"}
    return is_time(sentence, index - 1)


_TIMES = words("yesterday today tomorrow now ago usually")
_UNITS = words(
    "night week month year weekend summer winter monday tuesday wednesday thursday friday "
    "saturday sunday morning afternoon evening day"
)


def is_time(sentence: Sentence, index: int) -> bool:
    """Return whether a time such as "yesterday" or "last week" ends at this word."""
    low, before = sentence.low(index), sentence.low(index - 1)
    return (
        low in _TIMES
        or (low in _UNITS and before in {"last", "this", "every", "on", "next"})
        or (low.isdigit() and len(low) == 4 and before == "in")
    )


def _may_be_subject(sentence: Sentence, index: int) -> bool:
    """Return whether a pronoun is a subject, and no auxiliary stands before it."""
    low, before = sentence.low(index), sentence.low(index - 1)
    if before in AUXILIARIES or (
        before in {"and", "or", "nor"}
        and sentence.low(index - 2)
        in {"you", "me", "him", "she", "he", "i", "friend", "wife", "husband", "brother", "sister"}
    ):
        return False
    if low in {"he", "she", "i", "we", "they"}:
        return True
    if before in {"before", "after", "than", "like"}:
        return False
    return opens(sentence, index) or (before in {"and", "or"} and low != "it")

"""Ranking: order the candidates of both searches, and drop what does not answer the question.

A score adds what a passage means to which words of the question it has. Identifiers, numbers and
names count more than other words, rare words more than common ones.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from my_agent.chat.documents.chunking import Passage
from my_agent.chat.documents.words import FUNCTION_WORDS, fold, stem

# Standard deviations above the usual nearness: a passage as near as any other, and a near one.
_FAR, _NEAR = 0.0, 5.0
# How much the words count, next to the meaning.
WORDS = 1.0
# Weight of a term by its kind.
_NAME, _IDENTIFIER = 2.0, 4.0
# A term that earlier passages have counts less, so that each side of a comparison has its place.
_AGAIN = 0.6
# What each earlier passage with the same document, or with the same text, takes from a score.
_SAME_DOCUMENT, _SAME_TEXT = 0.08, 0.25
FLOOR = 0.15
"""Score below which no passage is relevant: all answers in view are above it."""
SURE = 1.05
"""Score above which a passage surely answers: 97 % of the questions in view without an answer are below.

Both are chosen on `bench/corpus` and `bench/held_out`, and measured by `python -m bench.retrieval`.
"""
# The same if there is no vector, so that only words count.
_SURE_BY_WORDS = 0.7
# A passage only distracts if its score is below this share of the best, and its nearness this much
# below the nearest.
_TAIL, _FARTHER = 0.2, 2.0

# A code that says which thing is meant: of at least three characters, with a digit.
_CODE = re.compile(r"(?=\D*+\d)[\w/.-]{3,}")
_TOKEN = re.compile(r"\w+(?:[-/._]\w+)*")
_PART = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True)
class Terms:
    """The words of a question that a passage may have, folded and stemmed.

    Attributes:
        names: words with a capital letter within a sentence.
        identifiers: words with a digit.
        others: all other words that mean something.
    """

    names: frozenset[str]
    identifiers: frozenset[str]
    others: frozenset[str]

    @property
    def exact(self) -> frozenset[str]:
        """Return the terms that a passage has or has not: no other word means the same."""
        return self.names | self.identifiers

    @property
    def all(self) -> frozenset[str]:
        """Return all terms."""
        return self.exact | self.others


@dataclass(frozen=True)
class Ranked:
    """The result of a search.

    Attributes:
        ids: the passages that may answer, best first.
        sure: whether they surely do.
        words: whether any of them has a word of the question.
    """

    ids: list[int]
    sure: bool
    words: bool = False


def terms(question: str) -> Terms:
    """Find the terms of a question."""
    names, identifiers, others = set[str](), set[str](), set[str]()
    text = unicodedata.normalize("NFC", question)
    for found in _TOKEN.finditer(text):
        word = found[0]
        if any(letter.isdigit() for letter in word):
            identifiers |= _stems(word)
        elif fold(word) in FUNCTION_WORDS:
            continue
        elif word[0].isupper() and not _begins_sentence(text, found.start()):
            names |= _stems(word)
        else:
            others |= _stems(word)
    return Terms(
        frozenset(names - identifiers),
        frozenset(identifiers),
        frozenset(others - names - identifiers),
    )


def exact_words(question: str) -> str:
    """Return the names and identifiers of a question, for a search of their own."""
    wanted = terms(question).exact
    return " ".join(word for word in re.findall(r"\w+", question) if stem(fold(word)) in wanted)


def rank(
    question: str, candidates: Mapping[int, Passage], nearness: Mapping[int, float], most: int
) -> Ranked:
    """Return the passages that may answer a question; empty if none does.

    Args:
        question: the question.
        candidates: passages by id.
        nearness: of question and passage by id (`background.nearness`); a missing one counts as far.
        most: maximum number of ids.
    """
    asked = terms(question)
    held = {each: _stems(passage.in_context) for each, passage in candidates.items()}
    weights = _weights(asked, held)
    meaning = {
        each: max(0.0, (nearness.get(each, _FAR) - _FAR) / (_NEAR - _FAR)) for each in candidates
    }
    score = {each: meaning[each] + WORDS * _share(weights, held[each]) for each in candidates}
    best = max(score.values(), default=0.0)
    named = _named(question, held, candidates.values())
    if best < FLOOR or named is None:
        return Ranked([], sure=False)
    least = max(nearness.values(), default=math.inf) - _FARTHER
    relevant = [
        each
        for each in candidates
        if score[each] >= _TAIL * best or nearness.get(each, -math.inf) >= least
    ]
    sure = named and best >= (SURE if nearness else _SURE_BY_WORDS)
    chosen = _diverse(relevant, candidates, held, weights, meaning, most)
    if not sure:
        # The words did not decide, so the nearest passages have every other place.
        nearest = sorted(relevant, key=lambda each: (-meaning[each], each))
        pairs = zip_longest(chosen, nearest[:most])
        mixed = dict.fromkeys(each for pair in pairs for each in pair if each is not None)
        chosen = list(mixed)[:most]
    return Ranked(chosen, sure, any(asked.all & held[each] for each in chosen))


def _named(
    question: str, held: Mapping[int, frozenset[str]], candidates: Iterable[Passage]
) -> bool | None:
    """Return whether the candidates have all codes of the question, or one of its names.

    Returns:
        None if they have nothing of what the question names.
    """
    names, first, codes = set[str](), set[str](), set[str]()
    text = unicodedata.normalize("NFC", question)
    for found in _TOKEN.finditer(text):
        word = found[0]
        if _CODE.fullmatch(word):
            codes.add(_parts(word))
        elif word.istitle() and not word.isdigit() and fold(word) not in FUNCTION_WORDS:
            # The first word of a sentence may be a name. It has a capital letter in any case.
            (first if _begins_sentence(text, found.start()) else names).update(_stems(word))
    named = any((names | first) & each for each in held.values())
    contents = [_parts(each.in_context) for each in candidates]
    missing = {code for code in codes if not any(code in parts for parts in contents)}
    if codes and missing == codes and not named:
        return None
    return not missing and (named or not names or bool(codes))


def _parts(text: str) -> str:
    """Return the runs of letters and of digits, so that `E-04`, `e 04` and `E04` are equal.

    A code is in a text if its parts are there in the same order: `E-99` is not in a text that has
    `E-04` and `99`.
    """
    return f" {' '.join(_PART.findall(fold(text)))} "


def _diverse(
    ids: Sequence[int],
    candidates: Mapping[int, Passage],
    held: Mapping[int, frozenset[str]],
    weights: Mapping[str, float],
    meaning: Mapping[int, float],
    most: int,
) -> list[int]:
    """Choose passages one by one; what repeats earlier ones counts less."""
    left, chosen = list(ids), list[int]()
    current = dict(weights)
    whole = sum(weights.values()) or 1.0
    documents, texts = Counter[str](), Counter[str]()

    def worth(each: int) -> float:
        passage = candidates[each]
        named = sum(weight for term, weight in current.items() if term in held[each]) / whole
        return (
            meaning[each]
            + WORDS * named
            - _SAME_DOCUMENT * documents[passage.document_id]
            - _SAME_TEXT * texts[passage.text]
        )

    while left and len(chosen) < most:
        best = max(left, key=lambda each: (worth(each), -each))
        left.remove(best)
        chosen.append(best)
        documents[candidates[best].document_id] += 1
        texts[candidates[best].text] += 1
        for term in held[best] & current.keys():
            current[term] *= _AGAIN
    return chosen


def _weights(asked: Terms, held: Mapping[int, frozenset[str]]) -> dict[str, float]:
    """Weigh each term: by its kind, and the fewer candidates have it, the higher."""
    count = len(held)

    def weight(term: str) -> float:
        kind = _IDENTIFIER if term in asked.identifiers else _NAME if term in asked.names else 1.0
        having = sum(term in each for each in held.values())
        # A word that no candidate has is probably said in other words.
        rarity = math.log1p(count / having) if having else 1.0
        return kind * rarity

    return {term: weight(term) for term in sorted(asked.all)}


def _share(weights: Mapping[str, float], held: frozenset[str]) -> float:
    whole = sum(weights.values())
    return sum(weights[term] for term in weights if term in held) / whole if whole else 0.0


def _begins_sentence(text: str, at: int) -> bool:
    before = text[:at].rstrip(" \t\"'“\u2018(¿¡")
    return not before or before[-1] in ".?!:\n"


def _stems(text: str) -> frozenset[str]:
    return frozenset(
        stem(fold(word)) for word in re.findall(r"\w+", unicodedata.normalize("NFC", text))
    )

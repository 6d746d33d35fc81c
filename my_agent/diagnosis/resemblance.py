"""Resemblance: whether a passage is about what an incident shows, by the words that both have.

Runbooks quote the messages of faults. So a passage is about an incident if both have a run of words
that say something, and other such words, too. Single words, such as the name of a service, are not
enough. There is no embedding: in its terms every passage about a database is near to every incident of one.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from my_agent.chat.documents.words import FUNCTION_WORDS, WORD, fold, listed, stem

RUN, ALL = 7.0, 10.0
"""Least weight of the words of the best run, and of all words in common, of a passage that is quoted.

Chosen on `bench/runbooks`, and measured by `python -m bench.runbooks`.
"""
# Words of an incident that are compared.
MOST_WORDS = 400
# As if there were this many other passages, of which so many have an ordinary word.
_OTHERS, _ORDINARY = 200, 40
_NO_WORD = FUNCTION_WORDS | listed("cannot")
_COMMON = listed(
    """
    access alert allowed answer api app application available bad broken call cause change check
    client close cluster code command config configuration connect connection container could count
    cpu customer data database db default delete denied deploy deployment detected disk down error
    event exception exist exit expired fail failure fatal file find first found full get group
    healthy high host http https image info internal invalid job key kubectl last left level limit
    line list load local lock log long low max maximum memory message metric minute ms name
    namespace network new node now number old open order pod port process queue rate reach read
    reason refused release replica request resource response restart retry return run second server
    service set show since size slow space spec start state status stop system ten thread time
    timeout trace transaction unavailable unknown up update use user value version volume wait warn
    warning write yet
    """
)
"""English words that most incidents and runbooks have."""
# A name in a program: OOMKilled, ImagePullBackOff, pg_wal, NXDOMAIN.
_NAME = re.compile(r"(?=[a-zA-Z]*[a-z][A-Z]|[A-Z]{2,}[a-z]|\w*[a-z]_[a-z]|[A-Z]{5,}\Z)\w+")
_BREAK = re.compile(r"[.!?]\s+|\n\s*\n|\n(?=[ \t]*[-*#|])")


@dataclass(frozen=True)
class Text:
    """The words of a text, folded and stemmed, with the ends of its sentences.

    Attributes:
        words: in their order; None ends a sentence.
        spans: place of each in the text.
        content: those that say something.
        names: those that look like names in a program.
    """

    words: Sequence[str | None]
    spans: Sequence[tuple[int, int]]
    content: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True)
class Match:
    """What an incident and a passage have in common.

    Attributes:
        run: weight of the best run of words.
        all: weight of all words.
        start: place of the run in the text of the incident.
        end: place behind it.
    """

    run: float
    all: float
    start: int
    end: int

    @property
    def is_clear(self) -> bool:
        """Return whether the passage is clearly about the incident."""
        return self.run >= RUN and self.all >= ALL


def read(text: str, most: int | None = None) -> Text:
    """Return the words of a text, `most` at most."""
    words: list[str | None] = []
    spans: list[tuple[int, int]] = []
    names = set[str]()
    end = 0
    for found in WORD.finditer(text):
        if len(words) == most:
            break
        if _BREAK.search(text, end, found.start()):
            words.append(None)
            spans.append((end, end))
        word = _stemmed(found[0])
        words.append(word)
        spans.append(found.span())
        if _NAME.fullmatch(found[0]):
            names.add(word)
        end = found.end()
    content = frozenset(each for each in words if each is not None and _says_something(each))
    return Text(words, spans, content, frozenset(names))


def weights(passages: Sequence[Text]) -> dict[str, float]:
    """Weigh each word of some passages: the fewer have it, the more it says."""
    having: dict[str, int] = {}
    for each in passages:
        for word in each.content:
            having[word] = having.get(word, 0) + 1
    whole = len(passages) + _OTHERS
    return {
        word: math.log(whole / (count + (_ORDINARY if word in _STEMMED else 1)))
        for word, count in having.items()
    }


def match(incident: Text, passage: Text, weight: Mapping[str, float]) -> Match:
    """Compare an incident with a passage.

    Args:
        incident: its words.
        passage: those of the passage.
        weight: of each word of the passage, as `weights` returns them.
    """
    shared = incident.content & passage.content
    whole = sum(weight[word] for word in shared)
    if whole < ALL:
        return Match(0.0, whole, 0, 0)
    run, begin, end = _best_run(incident, passage, shared, weight)
    # A name in a program says as much as a run of words.
    named = (incident.names & shared).difference(incident.words[begin:end])
    weighs = run + sum(weight[word] for word in named)
    if begin == end:
        return Match(weighs, whole, 0, 0)
    return Match(weighs, whole, incident.spans[begin][0], incident.spans[end - 1][1])


def _best_run(
    incident: Text, passage: Text, shared: frozenset[str], weight: Mapping[str, float]
) -> tuple[float, int, int]:
    """Return weight, begin and end of the run that says most; one word is none."""
    best = (0.0, 0, 0)
    for begin, end in _runs(incident.words, passage.words):
        within = shared.intersection(incident.words[begin:end])
        weighs = sum(weight[word] for word in within) if len(within) > 1 else 0.0
        if weighs > best[0]:
            best = (weighs, begin, end)
    return best


def _runs(first: Sequence[str | None], other: Sequence[str | None]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each run of words of `first` that `other` has, too."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(other):
        if word is not None:
            places.setdefault(word, []).append(place)
    # Length of the run that ends at each place of `other`.
    before: dict[int, int] = {}
    for at, word in enumerate([*first, None]):
        now = {place: before.get(place - 1, 0) + 1 for place in places.get(word or "", ())}
        for place, length in before.items():
            if place + 1 not in now:
                yield at - length, at
        before = now


def _says_something(word: str) -> bool:
    return len(word) > 1 and not word.isdigit() and word not in _NOTHING


@lru_cache(maxsize=20_000)
def _stemmed(word: str) -> str:
    return stem(fold(word[:100]))


_STEMMED = frozenset(map(_stemmed, _COMMON))
_NOTHING = frozenset(map(_stemmed, _NO_WORD))

"""References: replace "it", "ele" or "the previous one" by the topic of an earlier question.

Used when no model is configured. It matches word lists and parses no grammar, which is enough for
the search.
"""

import re
from collections.abc import Sequence

from my_agent.chat.documents.words import FUNCTION_WORDS, WORD, fold, listed

# Pronouns and demonstratives, folded: they refer to something that was named before.
POINTERS = listed(
    """
    it they them he she him this that these those there
    la ali ai
    ele ela eles elas dele dela deles delas nele nela neles nelas esse essa esses essas este esta
    estes estas isso isto disso disto nisso nisto desse dessa desses dessas deste desta destes
    destas nesse nessa neste nesta aquele aquela aqueles aquelas daquele daquela naquele naquela
    """
)
# Possessives may also refer to something that the same question names.
OWNERS = listed("its their his her seu sua seus suas lhe lhes")
BACKWARDS = listed("previous former earlier anterior anteriores primeiro primeira")
ORDINALS = {
    **dict.fromkeys(("first", "primeiro", "primeira"), 1),
    **dict.fromkeys(("second", "segundo", "segunda"), 2),
    **dict.fromkeys(("third", "terceiro", "terceira"), 3),
    **dict.fromkeys(("last", "ultimo", "ultima"), -1),
}
"""Words that refer to a topic by its place in the conversation."""
_PLACES = listed("one ones of the two three both um uma o a os as de dos das")
# Words that often stand next to a topic but are not part of one.
ASKING = listed(
    """
    many much long tall high big old far often compare describe explain list show name give kind
    mean happen happens happened work works compara compare comparar descreva explique liste mostre
    diga fale conte cite significa acontece aconteceu funciona altura tamanho
    """
)

LONGEST = 2_000
"""Characters of a question that are read. A longer one is returned as it is."""
EARLIER = 50
"""Number of earlier questions that are read, the latest ones."""

# Possessive quantifiers (`++`) do not backtrack, so that a match takes linear time.
_ELLIPTIC = re.compile(
    r"(?:and what about|what about|how about|and|e quanto a|e sobre|mas e|e)\b[\s,]++"
    r"(?:(?:the|of|in|for|o|a|os|as|ao|aos|do|da|dos|das|no|na|de|em|para)\s++)*+"
    r"(?P<rest>[^?.!]++)[?.!]*+",
    re.IGNORECASE,
)
_EMPTY_IT = re.compile(r"\bis it (?:true|possible|necessary|allowed|safe|worth)\b(?: that\b)?")
_JOINTS = listed("de do da dos das of e del")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def resolve(question: str, earlier: Sequence[str]) -> str:
    """Return the question with the topics that it refers to, or unchanged if it refers to nothing.

    The time is linear in the length of the conversation, of which `LONGEST` and `EARLIER` bound
    what is read.

    Args:
        question: the question as the user wrote it.
        earlier: the questions before it, oldest first.
    """
    if len(question) > LONGEST:
        return question
    topics, last = _history([each[:LONGEST] for each in earlier[-EARLIER:]])
    if not topics:
        return question
    if (place := _ordinal(question)) is not None:
        return _about_place(question, last, topics, place)
    if other := _names_only(question):
        if _is_attribute(other, topics[-1]):
            return f"{question} ({topics[-1]})"
        return _about(last, topics[-1], other)
    if not _refers(question):
        return question
    wanted = topics[-2:] if BACKWARDS & _folded(question) else topics[-1:]
    missing = [each for each in wanted if fold(each) not in fold(question)]
    return f"{question} ({', '.join(missing)})" if missing else question


def topic(question: str) -> str:
    """Return the topic of a question in its own words: the last name, else the longest phrase."""
    phrases = _phrases(question)
    named = [phrase for phrase, is_name in phrases if is_name]
    if named:
        return named[-1]
    return max((phrase for phrase, _ in phrases), key=lambda each: each.count(" "), default="")


def _history(earlier: Sequence[str]) -> tuple[list[str], str]:
    """Return the topics of the earlier questions, latest last, and the last complete question."""
    # A dict, because it removes a topic from its place at once.
    topics: dict[str, None] = {}
    last = latest = ""
    for asked in earlier:
        if topics and (other := _names_only(asked)) and not _is_attribute(other, latest):
            last, about = _about(last, latest, other), other
        elif topics and _names_only(asked):
            about = ""
        elif topics and _refers(asked):
            about = topic(asked) if _names(asked) else ""
        else:
            last, about = asked, topic(asked)
        if about:
            topics.pop(about, None)
            topics[about] = None
            latest = about
    return list(topics), last


def _is_attribute(words: str, topic: str) -> bool:
    """Return whether words such as "budget" ask for something of a named topic, and name none."""
    return words == words.lower() and topic != topic.lower()


def _ordinal(question: str) -> int | None:
    """Return the place that a question such as "What about the second one?" refers to, or None."""
    found = _ELLIPTIC.fullmatch(question.strip())
    words = WORD.findall(fold(found["rest"])) if found else []
    places = [ORDINALS[word] for word in words if word in ORDINALS]
    others = [word for word in words if word not in ORDINALS and word not in _PLACES]
    return places[0] if len(places) == 1 and not others else None


def _about_place(question: str, last: str, topics: Sequence[str], place: int) -> str:
    """Return the last question about the topic at a place, counted from 1 or from the end.

    If the conversation has no such place, the question keeps its latest topic.
    """
    if place > len(topics):
        return f"{question} ({topics[-1]})"
    topic = topics[place - 1 if place > 0 else place]
    latest = next((each for each in reversed(topics) if each in last), "")
    return _about(last, latest, topic) if latest else f"{question} ({topic})"


def _about(question: str, topic: str, other: str) -> str:
    """Return the question about another topic.

    It is cut: each question may double a topic in the one before it.
    """
    return question.replace(topic, other)[:LONGEST]


def _refers(question: str) -> bool:
    """Return whether the question cannot be understood without the conversation before it."""
    found = _folded(_EMPTY_IT.sub("", fold(question)))
    points = found & (POINTERS | BACKWARDS) or (found & OWNERS and not _names(question))
    return bool(points) or not _phrases(question)


def _names_only(question: str) -> str:
    """Return the new topic of an elliptic question such as "And the Brennick light?", or ""."""
    found = _ELLIPTIC.fullmatch(question.strip())
    rest = found["rest"].strip() if found else ""
    return rest if not _refers(question) and topic(rest) == rest else ""


def _names(question: str) -> list[str]:
    return [phrase for phrase, is_name in _phrases(question) if is_name]


def _folded(text: str) -> set[str]:
    return set(WORD.findall(fold(text)))


def _phrases(question: str) -> list[tuple[str, bool]]:
    """Split a question into phrases that name something. The flag says whether a phrase is a name.

    A name contains a capital letter other than at the beginning of a sentence.
    """
    found: list[tuple[list[str], bool]] = []
    tokens = _TOKEN.findall(question)
    together = False
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        if together and fold(token) in _JOINTS and following[:1].isupper():
            found[-1][0].append(token)
        elif _means_something(token):
            # The first word of a sentence is capitalized in any case.
            is_name = token[0].isupper() and place > 0 and tokens[place - 1] not in ".?!"
            if together:
                words, was_name = found[-1]
                words.append(token)
                found[-1] = (words, was_name or is_name)
            else:
                found.append(([token], is_name))
            together = True
        else:
            together = False
    return [(_trimmed(words), is_name) for words, is_name in found]


def _trimmed(words: list[str]) -> str:
    """Cut the words after the last capitalized one: "Skarra Light burn" becomes "Skarra Light"."""
    capitals = [place for place, word in enumerate(words, 1) if word[0].isupper()]
    return " ".join(words[: capitals[-1]] if len(capitals) > 1 else words)


def _means_something(token: str) -> bool:
    word = fold(token)
    return bool(WORD.fullmatch(token)) and not (
        word in FUNCTION_WORDS or word in POINTERS | OWNERS | BACKWARDS | ASKING
    )

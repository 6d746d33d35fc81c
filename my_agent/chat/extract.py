"""Extracts: an answer without a model, in the words of the passages."""

from collections.abc import Mapping, Sequence

from langchain_core.messages import BaseMessage

from my_agent.chat.documents.chunking import Passage, sentences
from my_agent.chat.documents.words import content_words, fold, stem
from my_agent.offline import OfflineChatModel

# Quotations, each from another passage, and the characters of one.
QUOTED = 3
LONGEST = 300
# What the first place among the passages is worth, where a word that only one has is worth 1.
RANK = 0.5

PREFACE = "I am offline: no language model is configured, so these are only quotations."
ADVICE = "Set OPENAI_API_KEY, or OPENAI_BASE_URL for any OpenAI-compatible endpoint, for answers."


class ExtractModel(OfflineChatModel):
    """Streams `extract` of what it is made with, in place of an answer.

    Args:
        question: that stands by itself.
        passages: the best first; each is cited by its place among them.
    """

    question: str
    passages: Sequence[Passage]

    def answer(self, messages: list[BaseMessage]) -> str:
        return extract(self.question, self.passages)


def extract(question: str, passages: Sequence[Passage]) -> str:
    """What passages say about a question in the fewest words, each with its number."""
    worth = _worth(question, passages)
    rated = []
    for number, passage in enumerate(passages, 1):
        above = _stems(f"{passage.title} {passage.section}")
        told = sentences(passage.text)
        best = max(range(len(told)), key=lambda each: _rate(worth, _stems(told[each]), set()))
        # The search has read more into them than words.
        rating = _rate(worth, _stems(told[best]), above) + RANK / number
        rated.append((rating, -number, _quote(told, best)))
    chosen = sorted(rated, reverse=True)[:QUOTED]
    quotes = [f"“{text}” [{-number}]" for _, number, text in chosen]
    return "\n\n".join([PREFACE, *quotes, ADVICE])


def _quote(told: Sequence[str], best: int) -> str:
    """A sentence with those behind it, and then those before it, as long as it stays short."""
    first, last = best, best + 1
    while last < len(told) and len(" ".join(told[first : last + 1])) <= LONGEST:
        last += 1
    while first > 0 and len(" ".join(told[first - 1 : last])) <= LONGEST:
        first -= 1
    text = " ".join(told[first:last])
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0]} …"


def _worth(question: str, passages: Sequence[Passage]) -> dict[str, float]:
    """The words of a question; one is worth the more, the fewer passages have it."""
    told = [_stems(passage.in_context) for passage in passages]
    return {word: 1 / max(1, sum(word in each for each in told)) for word in _stems(question)}


def _rate(worth: Mapping[str, float], said: set[str], above: set[str]) -> float:
    """What a sentence's words are worth; those only above it count half."""
    return sum(
        value * (1.0 if word in said else 0.5 if word in above else 0.0)
        for word, value in worth.items()
    )


def _stems(text: str) -> set[str]:
    return {stem(fold(word)) for word in content_words(text)}

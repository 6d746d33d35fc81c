"""Extracts: an answer without a model, in the words of the passages."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from my_agent.chat.documents.chunking import Passage, sentences
from my_agent.chat.documents.words import content_words, fold, stem
from my_agent.offline import OfflineChatModel

# Sentences that are quoted, from as many passages.
QUOTED = 3
LONGEST = 400

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
    """The sentences that say most about a question, with the number of the passage of each."""
    wanted = {stem(fold(word)) for word in content_words(question)}
    rated = [
        (_overlap(wanted, passage, sentence), -number, sentence)
        for number, passage in enumerate(passages, 1)
        for sentence in [_best(wanted, passage)]
    ]
    # Without a word in common there is still what the search by meaning thought best.
    chosen = sorted((each for each in rated if each[0]), reverse=True)[:QUOTED] or rated[:1]
    quotes = [f"“{sentence}” [{-number}]" for _, number, sentence in chosen]
    return "\n\n".join([PREFACE, *quotes, ADVICE])


def _best(wanted: set[str], passage: Passage) -> str:
    """The sentence of a passage with most of the words; the first of several."""
    found = max(sentences(passage.text), key=lambda each: _overlap(wanted, None, each))
    return found if len(found) <= LONGEST else f"{found[:LONGEST].rsplit(' ', 1)[0]} …"


def _overlap(wanted: set[str], passage: Passage | None, sentence: str) -> float:
    """How many of the words a sentence has; those only above it count half."""
    said = _stems(sentence)
    above = _stems(f"{passage.title} {passage.section}") - said if passage else set()
    return len(wanted & said) + len(wanted & above) / 2


def _stems(text: str) -> set[str]:
    return {stem(fold(word)) for word in content_words(text)}

"""Extracts: answer by quoting passages when no language model is configured."""

from collections.abc import Mapping, Sequence

from langchain_core.messages import BaseMessage

from my_agent.chat.documents.chunking import Passage, sentences
from my_agent.chat.documents.words import content_words, fold, stem
from my_agent.offline import OfflineChatModel

# Number of quotations, each from a different passage, and the length of one in characters.
QUOTED = 3
LONGEST = 300
# Bonus for the first passage of the search result. A word that occurs in only one passage scores 1.
RANK = 0.5

PREFACE = "I am offline: no language model is configured, so these are only quotations."
NOTHING = "I am offline, and the documents hold nothing about this question."
ADVICE = "Set OPENAI_API_KEY, or OPENAI_BASE_URL for any OpenAI-compatible endpoint, for answers."


class ExtractModel(OfflineChatModel):
    """Stream the result of `extract` instead of a model's answer.

    Args:
        question: the question in a form that needs no earlier messages.
        passages: the best passage first; the quotations cite them by position, from 1.
    """

    question: str
    passages: Sequence[Passage]

    def answer(self, messages: list[BaseMessage]) -> str:
        return extract(self.question, self.passages)


def extract(question: str, passages: Sequence[Passage]) -> str:
    """Quote the sentences of `passages` that match the question best, each with its number."""
    if not passages:
        return f"{NOTHING}\n\n{ADVICE}"
    worth = _worth(question, passages)
    rated = []
    for number, passage in enumerate(passages, 1):
        headings = _stems(f"{passage.title} {passage.section}")
        texts = sentences(passage.text)
        best = max(range(len(texts)), key=lambda each: _rate(worth, _stems(texts[each]), set()))
        # The search also ranks by meaning, so its order counts besides the matching words.
        rating = _rate(worth, _stems(texts[best]), headings) + RANK / number
        rated.append((rating, -number, _quote(texts, best)))
    chosen = sorted(rated, reverse=True)[:QUOTED]
    quotes = [f"“{text}” [{-number}]" for _, number, text in chosen]
    return "\n\n".join([PREFACE, *quotes, ADVICE])


def _quote(texts: Sequence[str], best: int) -> str:
    """Return the best sentence with as many neighbours as fit into `LONGEST` characters.

    Following sentences are added before preceding ones.
    """
    first, last = best, best + 1
    while last < len(texts) and len(" ".join(texts[first : last + 1])) <= LONGEST:
        last += 1
    while first > 0 and len(" ".join(texts[first - 1 : last])) <= LONGEST:
        first -= 1
    text = " ".join(texts[first:last])
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0]} …"


def _worth(question: str, passages: Sequence[Passage]) -> dict[str, float]:
    """Weight each word of the question: the fewer passages contain it, the higher its weight."""
    texts = [_stems(passage.in_context) for passage in passages]
    return {word: 1 / max(1, sum(word in each for each in texts)) for word in _stems(question)}


def _rate(worth: Mapping[str, float], sentence: set[str], headings: set[str]) -> float:
    """Sum the weights of the words in a sentence. Words found only in its headings count half."""
    return sum(
        value * (1.0 if word in sentence else 0.5 if word in headings else 0.0)
        for word, value in worth.items()
    )


def _stems(text: str) -> set[str]:
    return {stem(fold(word)) for word in content_words(text)}

"""Extraction without a model: the sentences of pages that answer a question, and their kind."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from my_agent.research.model import CrawledPage
from my_agent.research.planning import is_about, subject_forms
from my_agent.research.text import Sentence, content, sentences, stem, tokens

KINDS = (
    *("competitors", "weaknesses", "threats", "opportunities", "strengths", "features"),
    "facts",
)
_SHORTEST, _LONGEST, _FEWEST_WORDS = 20, 400, 3
PER_PAGE = 14
MOST = 80

# fmt: off
_CUES = {kind: frozenset(stem(word) for word in words.split()) for kind, words in {
    "competitors":
        "competitor competitors rival rivals alternative alternatives versus vs compared unlike "
        "competes competing outsells undercuts competition",
    "weaknesses":
        "slow lacks lack missing expensive complaint complaints complain limited outage outages "
        "weakness weaknesses cannot fail fails failed bug bugs crash crashes criticised criticized "
        "poor difficult confusing drawback drawbacks excludes without unreliable disappointing",
    "threats":
        "threat threats lawsuit regulation regulations ban decline declining shrinking risk risks "
        "recall breach fine fined shortage sanction tariff tariffs bankruptcy",
    "opportunities":
        "opportunity opportunities growing growth grow grows expand expands expansion announced "
        "demand upcoming roadmap forecast expected subsidy subsidies emerging",
    "strengths":
        "award awards awarded leading leader fast fastest reliable easy popular largest praised "
        "praise best strong strength strengths secure durable excellent won wins certified loved "
        "cheapest efficient",
    "features":
        "feature features supports support includes include offers offer provides provide "
        "integrates integrate allows allow enables enable works syncs sync exports imports "
        "encrypts stores version battery storage api app apps plugin plugins weighs",
}.items()}
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|all|your|"
    r"instructions?|rules?|prompt)\b"
    r"|\b(?:system|developer|assistant)\s*(?:prompt|message|:)"
    r"|\byou (?:are|must|should|will|shall)\b.{0,60}\b(?:ai|assistant|model|agent|report|summary|"
    r"answer|output|write|respond|say|state|include|visit|fetch)\b"
    r"|\b(?:as an? (?:ai|assistant|language model)|language model|llm|jailbreak|prompt injection)\b"
    r"|\b(?:ai|llm)s?\b.{0,30}\b(?:reading|summari[sz]ing|processing|must|should)\b"
    r"|\b(?:visit|fetch|open|browse|click|go to|download|send|post|curl|wget)\b.{0,60}"
    r"(?:https?:|www\.|\.(?:com|net|org|example|test)\b)"
    r"|\b(?:state|write|say|report|claim|mention|include|add|tell)\b.{0,20}"
    r"\bthat\b.{0,80}\b(?:in your|in the (?:report|summary|answer)|to the user)\b"
    r"|</?(?:system|user|assistant|instructions?|script|style|tool)\b|\bBEGIN\b.*\bINSTRUCTIONS?\b",
    re.IGNORECASE | re.DOTALL,
)
_BOILERPLATE = re.compile(
    r"\b(?:cookies?|subscribe|newsletter|sign up|log in|login|all rights reserved|privacy policy|"
    r"terms of (?:use|service)|click here|read more|share this|javascript|advertisement|©|"
    r"copyright|table of contents|back to top|skip to content)\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://|www\.|[^\s@]@[^\s@]*\.\w", re.IGNORECASE)
# fmt: on


@dataclass(frozen=True)
class Statement:
    """A sentence of a page that says something about the question.

    Attributes:
        page: the page.
        start: its first character in the page's text.
        end: the character after it.
        text: the words.
        kind: one of `KINDS`.
        score: how much it says about the question.
    """

    page: CrawledPage
    start: int
    end: int
    text: str
    kind: str
    score: float


def relevant(question: str, pages: Sequence[CrawledPage]) -> list[CrawledPage]:
    """Return the pages that speak about the question's subject."""
    wanted = subject_forms(question)
    return [
        page
        for page in pages
        if is_about(page.text, wanted, set(content(f"{page.title}\n{page.text}")))
    ]


def statements(question: str, pages: Sequence[CrawledPage]) -> list[Statement]:
    """Return the sentences that say the most about a question, the best first.

    Args:
        question: the question.
        pages: pages that speak about it, as `relevant` returns them.
    """
    wanted = subject_forms(question) | set(content(question))
    named = subject_forms(question)
    rarity = _rarity(pages)
    found: list[Statement] = []
    for page in pages:
        title = set(content(page.title))
        about = len(named & title) / len(named) if named else 0.0
        best = [
            statement
            for sentence in sentences(page.text)
            if (statement := _statement(page, sentence, wanted, named, about, rarity)) is not None
        ]
        best.sort(key=lambda each: -each.score)
        found += best[:PER_PAGE]
    found.sort(key=lambda each: (-each.score, each.page.url, each.start))
    return found[:MOST]


def is_usable(text: str) -> bool:
    """Return whether a text is a statement: no order to a reader, no menu, no address."""
    return not (
        text.endswith("?")
        or _ORDERS.search(text)
        or _BOILERPLATE.search(text)
        or _ADDRESS.search(text)
    )


def kind_of(text: str) -> str:
    """Return the kind of a statement, from its words."""
    forms = {stem(token.raw.lower()) for token in tokens(text)}
    return next((kind for kind in KINDS[:-1] if forms & _CUES[kind]), "facts")


def _statement(
    page: CrawledPage,
    sentence: Sentence,
    wanted: set[str],
    named: set[str],
    about: float,
    rarity: dict[str, float],
) -> Statement | None:
    text = sentence.text
    if not _SHORTEST <= len(text) <= _LONGEST or not is_usable(text):
        return None
    found = tokens(text)
    forms = {each.form for each in found if each.kind in ("name", "word", "number")}
    if len(forms) < _FEWEST_WORDS or not _is_whole(text) or text == page.title:
        return None
    here = forms & named
    kind = kind_of(text)
    # A page about the subject that does not name it in its title may name its competitors.
    if not here and about == 0 and kind != "competitors":
        return None
    says = kind != "facts" or any(each.kind == "number" for each in found)
    if not (here or says or forms & (wanted - named)):
        return None
    # A page that names the subject in its title speaks about it in most of its sentences.
    score = 3.0 * len(here) / max(1, len(named)) + 1.5 * about
    score += sum(rarity.get(each, 0.0) for each in forms & wanted) / 3
    score += 1.0 * any(each.kind == "number" for each in found)
    score += 0.5 * (kind != "facts")
    return Statement(page, sentence.start, sentence.end, text, kind, round(score, 3))


def _is_whole(text: str) -> bool:
    """Return whether a text is a sentence, or a line of a list that names what it is about."""
    return text[-1] in ".!。\uff01" or ":" in text or any(each.isdigit() for each in text)


def _rarity(pages: Sequence[CrawledPage]) -> dict[str, float]:
    counted = Counter(form for page in pages for form in set(content(page.text)))
    return {form: log((1 + len(pages)) / number) for form, number in counted.items()}

"""Harper: find mistakes with a local grammar checker, without a model and without a network."""

import calendar
import re
from difflib import SequenceMatcher
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from my_agent.tutor.corrections import Issue, IssueType, merge

if TYPE_CHECKING:
    from harper import Lint, Linter

# Issue types by Harper's kinds. Missing kinds are about style: their findings are not mistakes.
KINDS: dict[str, IssueType] = {
    "Agreement": "agreement",
    "BoundaryError": "spelling",
    "Capitalization": "capitalization",
    "Eggcorn": "word_choice",
    "Formatting": "punctuation",
    "Grammar": "grammar",
    "Malapropism": "word_choice",
    "Miscellaneous": "grammar",
    "Nonstandard": "word_choice",
    "Punctuation": "punctuation",
    "Redundancy": "grammar",
    "Repetition": "repetition",
    "Spelling": "spelling",
    "Typo": "spelling",
    "Usage": "word_choice",
    "WordChoice": "word_choice",
    "WordOrder": "word_order",
}
# Rules that are more specific than their kind.
RULES: dict[str, IssueType] = {
    "AnA": "article",
    "MassNouns": "grammar",
    "SinceDuration": "preposition",
}
# Suggests the forms of an irregular verb in any order.
IRREGULAR = "RegularIrregulars"
# Rules that flag correct English, or that guess badly.
UNWANTED = re.compile(
    r"Redundant\w+|Expand\w+|\w*Dash(es)?|\w*Ellipsis\w*|CompoundNouns|DisjointPrefixes|"
    r"InMyHumbleOpinion|OkToOkay|OxfordComma|SplitWords|TheProperNounPossessive|ToDoHyphen|"
    r"WrongNegative|ItsPossessive|WereWhere"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Informal words that no dictionary contains.
INFORMAL = _words("ok lol omg btw haha hahaha hehe uni wow yay hmm hm")
# Capitalized words that learners misspell. Any other unknown capitalized word inside a sentence is
# taken for a name.
CAPITALS = frozenset([*calendar.day_name, *calendar.month_name[1:]]) | _words(
    "English American British Portuguese Spanish French German Italian Christmas"
)
CONTRACTED = _words("it that what who where there here how he she let")
# Frequent words of languages that learners write in. None of them is English.
FOREIGN = _words(
    """
    ich und nicht ist wie auf ein eine mit für wir bist heute
    je tu est les une et pas vous nous avec bonjour merci dans qui au
    el los las una y es está hola gracias cómo qué muy por para del
    os um uma em não você eu é muito tudo bem olá obrigado obrigada se diz como vai
    il lo gli di che sono ciao grazie
    """
)

# Minimum similarity, from 0 to 1, between a word and its correction. Below it the suggestion is a
# different word.
ALIKE = 0.8
# Characters around a suggestion that are checked together with it.
CONTEXT = 60

WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
BEGINNING = re.compile(r"(?:^|[.!?:]\s+|\n\s*)[\"'\u201c\u2018(]*$")
# Words that a participle follows.
PERFECT = re.compile(
    r"\b(?:have|has|had|having|be|been|being|am|is|are|was|were|n't|'ve|not|never|ever|just)\s+$",
    re.IGNORECASE,
)


def check(text: str) -> list[Issue] | None:
    """Return the mistakes in an English text; None for other languages. Blocks for milliseconds.

    The first call in a process loads a dictionary, which takes almost a second.
    """
    with _lock:
        american, british = _linters()
        lints = _lints(american, text)
        # Only what is wrong in both American and British English counts as a mistake.
        others = _lints(british, text) if lints else {}
        lints = {key: lint for key, lint in lints.items() if key in others}
        if _is_foreign(text, [lint.problem_text for lint in lints.values() if _is_unknown(lint)]):
            return None
        issues = [_issue(american, text, rule, lint) for (rule, *_), lint in lints.items()]
    return merge(issue for issue in issues if issue is not None)


# A linter must not be used by two threads at once.
_lock = Lock()


@cache
def _linters() -> "tuple[Linter, Linter]":
    from harper import Dialect, Linter, get_default_lint_config

    default = get_default_lint_config()
    config = {rule: on and not UNWANTED.fullmatch(rule) for rule, on in default.items()}
    american, british = Linter(Dialect.AMERICAN), Linter(Dialect.BRITISH)
    for linter in (american, british):
        linter.set_lint_config({**config})
        linter.import_words(sorted(INFORMAL))
    return american, british


def _lints(linter: "Linter", text: str) -> "dict[tuple[str, int, int], Lint]":
    """Return the findings of a linter by rule and position."""
    return {
        (rule, lint.span.start, lint.span.end): lint
        for rule, lints in linter.organized_lints(text).items()
        for lint in lints
    }


def _is_unknown(lint: "Lint") -> bool:
    return lint.lint_kind == "Spelling"


def _issue(linter: "Linter", text: str, rule: str, lint: "Lint") -> Issue | None:
    """Turn a lint into an issue; None if it is not a mistake or has no correction."""
    original, kind = lint.problem_text, RULES.get(rule) or KINDS.get(lint.lint_kind)
    if kind is None or original.lower() in INFORMAL:
        return None
    remedy = _spelling(text, lint) if _is_unknown(lint) else _remedy(linter, text, rule, lint)
    if remedy is None:
        return None
    if remedy.lower() == original.lower():
        kind = "capitalization"
    return Issue(
        type=kind,
        start=lint.span.start,
        end=lint.span.end,
        original=original,
        replacement=remedy,
        message=lint.message,
        sources=["harper"],
    )


def _spelling(text: str, lint: "Lint") -> str | None:
    """Return the correct spelling of a word; None for names and foreign words."""
    word = lint.problem_text
    # English words are ASCII; a capital letter inside a word suggests a product name.
    if not word.isascii() or word[1:] != word[1:].lower() or word.lower() in FOREIGN:
        return None
    is_name = word[:1].isupper() and not BEGINNING.search(text[: lint.span.start])
    for suggestion in lint.suggestions:
        remedy = suggestion.replacement_text
        if not _are_alike(word.lower(), remedy.lower()):
            continue
        # The suggestion for a wrong plural must not be a possessive.
        if remedy.endswith("'s") and remedy[:-2].lower() not in CONTRACTED:
            continue
        return None if is_name and remedy not in CAPITALS else remedy
    return None


def _are_alike(word: str, other: str) -> bool:
    # Swapped letters are a single typing error, however short the word is.
    return sorted(word) == sorted(other) or SequenceMatcher(None, word, other).ratio() >= ALIKE


def _remedy(linter: "Linter", text: str, rule: str, lint: "Lint") -> str | None:
    """Return the replacement for a mistake: the first suggestion that is not itself a mistake."""
    start, end = lint.span.start, lint.span.end
    remedies = []
    for suggestion in lint.suggestions:
        remedied = linter.apply_suggestion(text, lint, suggestion)
        remedies.append(remedied[start : len(remedied) - (len(text) - end)])
    if len(remedies) < 2:
        return remedies[0] if remedies else None
    before, after = text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]
    if rule == IRREGULAR:
        remedies = _in_tense(linter, before, remedies)
    for remedy in remedies:
        left, right = len(before), len(before) + len(remedy)
        found = linter.lint(before + remedy + after)
        if not any(each.span.start < right and left < each.span.end for each in found):
            return remedy
    return None


def _in_tense(linter: "Linter", before: str, forms: list[str]) -> list[str]:
    """Sort the forms of an irregular verb: those that fit after `before` first."""
    perfect = PERFECT.search(before) is not None

    def belongs(form: str) -> bool:
        # Harper flags the past tense after "have", so the unflagged forms are participles.
        return perfect == (not linter.lint(f"I have {form} there."))

    return sorted(forms, key=lambda form: (not belongs(form), form))


def _is_foreign(text: str, unknown: list[str]) -> bool:
    """Return whether a text is in another language, by its words and those unknown to Harper."""
    # Capitalized words with non-ASCII letters may be names, which occur in any language.
    words = [word.lower() for word in WORD.findall(text) if word.isascii() or word.islower()]
    unknown = [word for word in unknown if word.isascii() or word.islower()]
    foreign = sum(word in FOREIGN or not word.isascii() for word in words)
    return len(unknown) > max(2, len(words) / 2) or foreign > max(1, len(words) / 4)

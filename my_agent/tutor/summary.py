"""Summary: statistics of a learner's corrections, computed from the corrections alone."""

from collections import Counter
from collections.abc import Sequence

from typing_extensions import TypedDict

from my_agent.tutor.corrections import Correction, Issue, IssueType

EXAMPLES = 3

ADVICE: dict[IssueType, str] = {
    "agreement": "Make the verb agree with its subject: he goes, they go.",
    "article": "Ask of each noun whether it can be counted and which one is meant: a, an, the, "
    "or none.",
    "capitalization": "Begin sentences, names, languages, days and “I” with a capital letter.",
    "grammar": "Read the corrected sentences aloud and write one more of each kind.",
    "preposition": "Learn verbs and times together with their prepositions: depend on, for two "
    "years.",
    "punctuation": "Put no space before a comma or full stop and one after it; mind the "
    "apostrophe in it's and don't.",
    "repetition": "Read the message once more before sending it: some words stand there twice.",
    "spelling": "Keep a list of the words you misspelt and write each of them three times.",
    "tense": "Look for the word that says when: yesterday asks for the past, since for the present "
    "perfect.",
    "verb_form": "Learn verbs together with what follows them: want to go, enjoy going, can go.",
    "word_choice": "Look up words that sound alike or look like one of your language before you "
    "use them.",
    "word_order": "Keep to subject, verb, object; questions begin with their auxiliary verb.",
}
NOTHING = "There is nothing to correct so far. Go on writing."


class Example(TypedDict):
    """One mistake and the message that contains it."""

    message_id: str
    original: str
    replacement: str
    message: str


class TypeSummary(TypedDict):
    """All mistakes of one type."""

    type: IssueType
    count: int
    examples: list[Example]
    advice: str


class Summary(TypedDict):
    """The summary of a thread's corrections, the most frequent type first."""

    corrections: int
    issues: int
    by_type: list[TypeSummary]
    advice: str


def summarize(corrections: Sequence[Correction]) -> Summary:
    """Count the mistakes by type, with the latest examples and an advice for each type."""
    found = [(each["message_id"], issue) for each in corrections for issue in each["issues"]]
    counts = Counter(issue["type"] for _, issue in found)
    by_type: list[TypeSummary] = [
        {
            "type": kind,
            "count": count,
            "examples": _examples([pair for pair in found if pair[1]["type"] == kind]),
            "advice": ADVICE[kind],
        }
        # Equally frequent types are sorted by name, so that the order is stable.
        for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return {
        "corrections": len(corrections),
        "issues": len(found),
        "by_type": by_type,
        "advice": by_type[0]["advice"] if by_type else NOTHING,
    }


def _examples(found: list[tuple[str, Issue]]) -> list[Example]:
    """Return the latest examples, each mistake once."""
    latest: dict[tuple[str, str], Example] = {}
    for message_id, issue in reversed(found):
        example: Example = {
            "message_id": message_id,
            "original": issue["original"],
            "replacement": issue["replacement"],
            "message": issue["message"],
        }
        latest.setdefault((issue["original"].lower(), issue["replacement"].lower()), example)
    return list(latest.values())[:EXAMPLES]

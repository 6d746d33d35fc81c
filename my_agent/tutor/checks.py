"""Checks without a model: the rules, and Harper where both leave names and quotes alone."""

import re
from collections.abc import Iterator

from my_agent.tutor import grammar, rules
from my_agent.tutor.corrections import Issue, merge
from my_agent.tutor.rules.clauses import WISHES

# Quoted words are somebody else's.
_QUOTED = re.compile(
    r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|«[^»\n]{1,400}»|\u2018[^\u2019\n]{1,400}\u2019"
)
# Between apostrophes, which are also inside words.
_SINGLE = re.compile(r"(?<![\w'])'(?=\w)(?:[^'\n]|(?<=\w)'(?=\w)){1,80}'(?!\w)")
_CODE = re.compile(r"`[^`\n]{1,400}`|\b\w+\([^()\n]{0,80}\)|\bfor \w in \w+")
_PATH = re.compile(r"(?<!\S)(?:~|\.{1,2}|[A-Za-z]:)?[/\\]\S+|\S+[/\\]\S+[/\\]\S+")
# "Every one of them" is right in two words.
_EVERY_ONE = re.compile(r"\b(?:every|any) one(?= of\b)", re.IGNORECASE)
_ADDRESS = re.compile(r"\S+@\S+|(?:https?://|www\.)\S+")
# Particles of names: Praça da Sé, Leonardo da Vinci, Ludwig van Beethoven.
_PARTICLE = r"(?:d[aeo]s?|del|della|di|e|el|la|las|los|van|von|y)"
_NAME = re.compile(rf"\b[A-ZÀ-Þ][\w'\u2019-]*(?: {_PARTICLE})+(?: {_PARTICLE})* [\w'\u2019-]+")
_CHAIN = re.compile(
    r"\b[A-ZÀ-Þ](?=[\w'\u2019-]*[^\x00-\x7f])[\w'\u2019-]*+(?: [a-z]{1,3})? [a-z]\w+"
)


def check(text: str) -> list[Issue]:
    """Return the mistakes in an English text; none for other languages. Blocks for milliseconds."""
    return judge(text) or []


def judge(text: str) -> list[Issue] | None:
    """Return the mistakes in an English text; None: it is in another language, and unchecked."""
    harper = grammar.check(text)
    if harper is None:
        return None
    kept = list(protected(text))
    ruled = rules.check(text)
    # A rule corrects a pronoun, Harper the word beside it: "He name" must not become "His names".
    pronouns = [each for each in ruled if each["type"] == "grammar"]
    beside = [(each["start"] - 2, each["end"] + 2) for each in pronouns]
    harper = [issue for issue in harper if not _touches(issue, beside) or _is_same(issue, ruled)]
    harper = [issue for issue in harper if not _is_wished(text, issue)]
    return [issue for issue in merge(ruled, harper) if not _touches(issue, kept)]


def protected(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans that no check may change: quotes, addresses, names with particles."""
    for pattern in (_CODE, _PATH, _QUOTED, _SINGLE, _ADDRESS, _NAME, _CHAIN, _EVERY_ONE):
        for found in pattern.finditer(text):
            yield found.span()


def _is_wished(text: str, issue: Issue) -> bool:
    """Return whether an issue is about "he go" in "I suggest he go", which is right."""
    if issue["type"] != "agreement":
        return False
    before = re.split(r"[.!?\n]", text[: issue["start"]])[-1]
    return not WISHES.isdisjoint(before.lower().split())


def _is_same(issue: Issue, others: list[Issue]) -> bool:
    return any((o["start"], o["end"]) == (issue["start"], issue["end"]) for o in others)


def _touches(issue: Issue, spans: list[tuple[int, int]]) -> bool:
    start, end = issue["start"], max(issue["end"], issue["start"] + 1)
    return any(start < last and first < end for first, last in spans)

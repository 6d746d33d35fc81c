"""Runbooks: Markdown documents of a tenant that are quoted if they are clearly about an incident.

They are documents of the chat, whose file or folder has a name that begins with `runbook`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from my_agent.chat.documents import chunking, named
from my_agent.diagnosis import resemblance
from my_agent.diagnosis.resemblance import Match, Text
from my_agent.tables import tables
from my_agent.turns import TenantThreads

MOST = 3
"""Runbooks that are quoted for one incident."""
# Paths in lower case, as the index has them.
FORM = "%/runbook%.md"
# Passages that are compared: 2 MB, which takes about a second.
MOST_COMPARED = 2_000
# A heading above what should be done.
_TODO = re.compile(
    r"(?i)(?:mitigat|fix|resol|remed|recover|renew|restor|repair|rollback|roll back|workaround|"
    r"what to do|action|steps|procedure|response)"
)
# Comparing takes the processor: tenants take turns.
_turns = TenantThreads("runbooks")


@dataclass(frozen=True)
class Place:
    """Where a quote stands.

    Attributes:
        document_id: the document, as in `GET /api/passages/{document_id}`.
        number: position of the passage in the document, from 1.
        start: offset of its first character in the document's text.
        end: offset behind its last character.
    """

    document_id: str
    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Passage:
    """A section of a runbook.

    Attributes:
        document: name of the runbook's file.
        section: title and headings above the quote.
        quote: the section, word for word: what to do if the runbook has a heading for it, otherwise
            what resembles the incident.
        place: where it stands.
        because: the words of the incident that the runbook has, too; may be empty.
    """

    document: str
    section: str
    quote: str
    place: Place
    because: str


async def find(tenant: str, words: str) -> list[Passage]:
    """Return sections of runbooks that are clearly about an incident, best first; mostly none.

    Args:
        tenant: whose runbooks are searched, besides the shared ones.
        words: what the incident shows: messages of the leading anomalies and the words of a
            hypothesis, separated by ends of lines.
    """
    if not words.strip():
        return []
    held = await tables.run(
        lambda connection: named.passages_of(connection, tenant, FORM, MOST_COMPARED), tenant
    )
    return await _turns.run(tenant, lambda: best(words, held)) if held else []


def best(words: str, held: Sequence[chunking.Passage]) -> list[Passage]:
    """Return what `find` does, of these passages. Pure.

    Args:
        words: what the incident shows.
        held: all passages of some runbooks, in their order.
    """
    incident = resemblance.read(words, resemblance.MOST_WORDS)
    texts: list[Text] = [resemblance.read(each.in_context) for each in held]
    weights = resemblance.weights(texts)
    found: dict[str, tuple[Match, int]] = {}
    for at, text in enumerate(texts):
        match = resemblance.match(incident, text, weights)
        document = held[at].document_id
        if match.is_clear and (document not in found or match.run > found[document][0].run):
            found[document] = (match, at)
    ranked = sorted(found.values(), key=lambda each: (-each[0].run, each[1]))[:MOST]
    return [_quoted(words, held, match, at) for match, at in ranked]


def _quoted(words: str, held: Sequence[chunking.Passage], match: Match, at: int) -> Passage:
    similar = held[at]
    following = [each for each in held[at:] if each.document_id == similar.document_id]
    todo = (each for each in following if _TODO.match(each.section.rpartition(" > ")[2]))
    chosen = next(todo, similar)
    return Passage(
        document=chosen.path,
        section=" > ".join(filter(None, (chosen.title, chosen.section))),
        quote=chosen.text,
        place=Place(chosen.document_id, chosen.number, chosen.start, chosen.end),
        because=words[match.start : match.end],
    )

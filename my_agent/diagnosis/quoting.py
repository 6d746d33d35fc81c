"""Quoting: find the words of a proposal in the sources, and what the line that has them says."""

import re

from my_agent.diagnosis.analysis.checks import Searched, Seen
from my_agent.diagnosis.analysis.kinds import kind_of
from my_agent.diagnosis.analysis.proposal import Proposal, Quote, Role
from my_agent.diagnosis.reading.digest import QUOTE, Digest, Group
from my_agent.diagnosis.record.fold import State
from my_agent.diagnosis.record.texts import Found
from my_agent.diagnosis.session import Session

# Words of a quote that are searched, and lines with them that are compared.
SEARCHED, COMPARED = 6, 200
# A shorter quote stands everywhere.
SHORTEST = 4
_BAD = ("error", "warning")
_CUT = re.compile(r"(?:\.\.\.|\N{HORIZONTAL ELLIPSIS})$")


class Quoting:
    """Finds quotes in the sources of a session.

    Args:
        session: the session.
        state: its state.
        digests: what its sources say.
    """

    def __init__(self, session: Session, state: State, digests: dict[str, Digest]) -> None:
        self._session, self._state, self._digests = session, state, digests

    async def seen(self, proposal: Proposal) -> tuple[list[Seen], int]:
        """Return the lines that a proposal quotes, and how many of its quotes stand nowhere."""
        found: dict[str, Seen] = {}
        unfound = 0
        for quote in proposal.quotes:
            line = await self._find(quote)
            if line is None:
                unfound += 1
                continue
            seen = await self._seen(line, quote.role)
            # A line counts once, in the first role that it is given.
            found.setdefault(seen.id, seen)
        return list(found.values()), unfound

    async def searched(self, proposal: Proposal, seen: list[Seen]) -> Searched | None:
        """Return what the search found that could refute a proposal, beside the lines it quotes."""
        wanted = proposal.refutation
        if wanted is None:
            return None
        lines = await self._session.search(wanted.words, None, COMPARED)
        known = {each.id for each in seen}
        for line in lines:
            one = await self._seen(line, "against" if wanted.expect == "absent" else "effect")
            if one.id not in known:
                return Searched(wanted.words, wanted.expect, one)
        return Searched(wanted.words, wanted.expect, None)

    async def _find(self, quote: Quote) -> Found | None:
        if quote.place is not None:
            start, end, number = quote.place.start, quote.place.end, quote.place.line
            [text] = await self._session.parts([(quote.source, start, end)])
            return Found(quote.source, number, start, end, text)
        wanted = _wanted(quote.text)
        if len(wanted) < SHORTEST:
            return None
        words = sorted(set(wanted.split()), key=len, reverse=True)[:SEARCHED]
        source = quote.source if quote.source in self._state["sources"] else None
        for place in [source, None] if source else [None]:
            for line in await self._session.search(words, place, COMPARED):
                if wanted in _squeezed(line.text):
                    return line
        return None

    async def _seen(self, line: Found, role: Role) -> Seen:
        group = self._group(line) or await self._alone(line)
        start, end = line.start, min(line.end, line.start + QUOTE)
        return Seen(
            f"{line.source}:{start}-{end}"[:80],
            role,
            line.source,
            start,
            end,
            line.text[: end - start],
            kind_of(group, self._state["sources"][line.source]["format"]),
            group.component,
            group.level,
            # A warning that ends well is still a warning.
            "neutral" if group.stance == "fine" and group.level in _BAD else group.stance,
            group.when if group.count == 1 or _is_first(group, line) else await self._when(line),
        )

    def _group(self, line: Found) -> Group | None:
        """Return what a source's digest says about a line, if it has its place."""
        for group in self._digests[line.source].groups:
            if any(each.start <= line.start < each.end for each in group.places):
                return group
        return None

    async def _alone(self, line: Found) -> Group:
        """Return what a line says that is one of many like it, or that was left out."""
        about = self._state["sources"][line.source]
        read = await self._session.read(line.text, about)
        if read.groups:
            return read.groups[0]
        return Group("text", about["name"], "", "neutral", line.text, line.text, 1, [])

    async def _when(self, line: Found) -> int | None:
        return (await self._alone(line)).when


def _is_first(group: Group, line: Found) -> bool:
    return bool(group.places) and group.places[0].start <= line.start < group.places[0].end


def _wanted(text: str) -> str:
    """Return the first line of a quote, without the dots of one that is cut."""
    lines = text.strip().splitlines()
    return _squeezed(_CUT.sub("", lines[0])) if lines else ""


def _squeezed(text: str) -> str:
    return " ".join(text.split())

"""Turn: a message while its acts are applied."""

from dataclasses import dataclass, field

from my_agent.icp_finder import prompts, values
from my_agent.icp_finder.reading.heard import Heard
from my_agent.icp_finder.reading.situation import Situation
from my_agent.understanding import acts as of
from my_agent.understanding import names, quotes


@dataclass
class Turn:
    """A message while its acts are applied.

    Attributes:
        situation: what it is read against.
        message: the message.
        heard: what it says so far.
        language: code of its language; empty if it is not known.
        placed: the acts that count, with the places of their quotes.
        dropped: quotes of acts that do not count.
        choice: the option of the waiting question that it chooses.
        unsure: whether it agreed in words that are not sure.
    """

    situation: Situation
    message: str
    heard: Heard
    language: str = ""
    placed: list[tuple[of.Act, quotes.Span]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    choice: str | None = None
    unsure: bool = False

    def values(self, name: str) -> list[str]:
        """Return a field of the profile, with the changes so far."""
        changed = self.heard["icp"].get(name)
        return list(changed) if changed is not None else values.of(self.situation.icp, name)

    def drop(self, act: of.Act) -> None:
        """Count an act as not understood."""
        self.placed = [each for each in self.placed if each[0] is not act]
        self.dropped.append(" ".join(act.quote.split())[:200])

    def span(self, act: of.Act) -> quotes.Span:
        """Return where the quote of an act stands."""
        known = (span for each, span in self.placed if each is act)
        return next(known, None) or quotes.find(act.quote, self.message) or (0, len(self.message))

    def asks(self, *kinds: str) -> bool:
        """Return whether a question of one of these kinds waits."""
        asking = self.situation.asking
        return asking is not None and asking["kind"] in kinds

    def note(self, found: names.Resolved) -> None:
        """Tell which targets name nothing, or several items."""
        heard, count = self.heard, sum(each.number > 0 for each in self.situation.listed)
        heard["notes"] += [
            prompts.numbers_unknown(count) if each.isdigit() else prompts.not_listed(each)
            for each in found.unknown
        ]
        heard["notes"] += [prompts.which(said, meant) for said, meant in found.unclear.items()]

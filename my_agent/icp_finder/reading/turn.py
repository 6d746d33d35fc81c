"""Turn: a message while its acts are applied."""

from dataclasses import dataclass, field

from my_agent.icp_finder import prompts, values
from my_agent.icp_finder.reading.heard import Heard
from my_agent.icp_finder.reading.situation import Situation
from my_agent.understanding import acts as of
from my_agent.understanding import names, quotes
from my_agent.web.websites import readable


@dataclass
class Turn:
    """A message while its acts are applied."""

    situation: Situation  # what it is read against
    message: str  # the message
    heard: Heard  # what it says so far
    language: str = ""  # code of its language; empty if it is not known
    # The acts that count, with the places of their quotes.
    placed: list[tuple[of.Act, quotes.Span]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)  # quotes of acts that do not count
    choice: str | None = None  # the option of the waiting question that it chooses
    unsure: bool = False  # whether it agreed in words that are not sure

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
        for each in found.unknown:
            text = prompts.NUMBERS_UNKNOWN.format(count) if each.isdigit() else ""
            heard["notes"].append(text or prompts.NOT_LISTED.format(readable(each)))
        for said, meant in found.unclear.items():
            heard["notes"].append(prompts.WHICH.format(said, " or ".join(meant[:5])))

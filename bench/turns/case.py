"""Case: a turn that was played, and what can become of its acts."""

from dataclasses import dataclass
from typing import Literal

from bench.turns import Act, Turn
from bench.turns.answers import is_misunderstood
from bench.turns.effects import Effects
from bench.turns.situations import key
from bench.turns.world import World

Outcome = Literal["applied", "offered", "missed"]
# Questions that enrich if they are answered with yes.
ENRICHES = ("enrich", "offer")


@dataclass(frozen=True)
class Case:
    """A turn that was played.

    Attributes:
        turn: the turn.
        before: the world before its message.
        after: the world after it.
        effects: the difference.
    """

    turn: Turn
    before: World
    after: World
    effects: Effects

    def understood(self, act: Act) -> bool:
        """Return whether there is an answer that does not say the contrary of an act."""
        return self.is_answered and not is_misunderstood(self.after.said, act["quote"])

    @property
    def is_answered(self) -> bool:
        """Return whether there is an answer."""
        return bool(self.after.said.strip())

    def waits(self, act: Act, *kinds: str) -> bool:
        """Return whether one of these questions waits, and an act was understood."""
        return self.understood(act) and self.after.asks in kinds

    def keys(self, numbers: list[int]) -> set[str]:
        """Return the keys of listed candidates."""
        listed = self.turn["situation"]["listed"]
        return {key(each) for each in listed if each["number"] in numbers}


def outcome(done: bool, offered: bool = False) -> Outcome:
    """Say what became of an act that was done, or that a question offers to do."""
    return "applied" if done else "offered" if offered else "missed"

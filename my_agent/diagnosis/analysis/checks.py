"""Checks: judge a proposed cause by the words that were found for it. Pure.

Rules and models propose in the same form, and are judged in the same way. Nothing that they say
counts: only lines of the evidence, what these say, when, and who wrote them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from my_agent.diagnosis.analysis.proposal import Proposal, Role
from my_agent.diagnosis.reading.digest import Stance
from my_agent.diagnosis.record.events import Outcome

# Clocks of components differ.
TOLERANCE = 30_000_000
"""Microseconds by which an effect may come before its cause."""
_NUMBERS = re.compile(r"0x[0-9a-f]+|[0-9]+", re.IGNORECASE)
# Words of a line that tell what it is about, without those of one to three letters.
_TELLING = re.compile(r"[^\W\d_]{4,}")
FACTS = ("access", "audit", "metric", "state")
"""Kinds of lines that say how something was or what was done, whatever level they have."""
_CAUSE = ("cause", "change")
# Observations that one result names.
NAMED = 4


@dataclass(frozen=True, slots=True)
class Seen:
    """A line of the evidence.

    Attributes:
        id: The id of its observation.
        role: What it is said to show.
        source: The id of its source.
        start: The offset of its first character.
        end: The offset behind its last character.
        quote: The line.
        kind: The kind of statement, such as `error`, `event` or `state`.
        component: What wrote it, or what it is about.
        level: `error`, `warning`, `info`, or empty if the line has none.
        stance: Whether it says that something goes wrong.
        when: Its time in microseconds since 1970, or None.
    """

    id: str
    role: Role
    source: str
    start: int
    end: int
    quote: str
    kind: str
    component: str
    level: str
    stance: Stance
    when: int | None

    @property
    def origin(self) -> tuple[str, str, str]:
        """What must differ between independent observations."""
        return self.source, self.kind, self.component

    @property
    def tells(self) -> bool:
        """Whether it says enough to be a witness: a line of a log that is no complaint does not."""
        if self.stance == "fine":
            return False
        is_fact = self.kind in FACTS or self.role == "change" or self.level != "info"
        return is_fact or self.stance == "trouble"


@dataclass(frozen=True, slots=True)
class Searched:
    """What the search found that could refute a cause."""

    words: tuple[str, ...]
    expect: Literal["present", "absent"]
    found: Seen | None


class Result(NamedTuple):
    """The result of a test.

    Attributes:
        test: One of `confidence.WEIGHTS`.
        behind: The observations for it if it passed, or against it if it failed.
        reason: A sentence.
    """

    test: str
    outcome: Outcome
    behind: list[Seen]
    reason: str


def check(
    proposal: Proposal, seen: Sequence[Seen], unfound: int, searched: Searched | None
) -> list[Result]:
    """Return the results of all tests of a proposal.

    Args:
        proposal: the cause.
        seen: the lines that its quotes name.
        unfound: how many of its quotes stand nowhere in the evidence.
        searched: what its own search has found, if it has one.
    """
    shown = [each for each in seen if each.role != "against" and each.stance != "fine"]
    causes = [each for each in shown if each.role in _CAUSE]
    results = [_evidence(proposal.cause, causes, shown, unfound), _contradiction(seen, searched)]
    against = [each for each in seen if each.role == "against"]
    if against:
        results.append(
            Result("doubt", "failed", against[:NAMED], "These lines may speak against it")
        )
    if results[0].outcome == "passed":
        results.append(_corroboration(proposal, results[0].behind[0], shown))
        results.append(_order(causes, [each for each in shown if each.role == "effect"]))
    if searched is not None and searched.expect == "present":
        results.append(_prediction(searched))
    return results


def _evidence(words: str, causes: list[Seen], shown: list[Seen], unfound: int) -> Result:
    """Test whether a line that is about the cause shows it."""
    if not causes:
        missing = f"; {unfound} of its quotes stand nowhere in it" if unfound else ""
        return Result("evidence", "unclear", [], f"No line of the evidence shows this{missing}")
    about = [each for each in causes if _shares(words, each)]
    if not about:
        return Result("evidence", "unclear", [], "The lines named are about something else")
    # What complains is shown first.
    telling = sorted((e for e in about if e.tells), key=lambda each: each.stance != "trouble")
    if telling:
        return Result("evidence", "passed", telling[:1], "A line of the evidence shows it")
    if any(each.stance == "trouble" for each in shown):
        return Result("evidence", "passed", about[:1], "It was there, and trouble beside it")
    return Result("evidence", "unclear", [], "The lines named do not say that anything is wrong")


def _shares(words: str, seen: Seen) -> bool:
    """Return whether a line has a telling word of the cause, or what it is about is named there."""
    told = words.casefold()
    named = seen.component.casefold()
    if named and named in told:
        return True
    telling = _TELLING.findall(seen.quote.casefold())
    # A row of numbers says what it is about in the head of its table.
    return any(each in told for each in telling) or not telling


def _contradiction(seen: Sequence[Seen], searched: Searched | None) -> Result:
    # Lines that say that all is well are no evidence of the opposite.
    named = list(seen) if seen and all(each.stance == "fine" for each in seen) else []
    if searched is not None and searched.expect == "absent" and searched.found is not None:
        named.append(searched.found)
    if named:
        reason = f"The evidence says otherwise: {named[0].quote[:200]}"
        return Result("contradiction", "failed", named[:NAMED], reason)
    return Result("contradiction", "unclear", [], "Nothing that was read says the opposite")


def _corroboration(proposal: Proposal, first: Seen, shown: list[Seen]) -> Result:
    if proposal.basis == "inferred":
        return Result("corroboration", "unclear", [], "It is inferred: no line says so")
    others = [each for each in shown if each.tells and _is_independent(each, first)]
    if others:
        reason = "Another source, component or kind of line shows it, too"
        return Result("corroboration", "passed", others[:NAMED], reason)
    return Result("corroboration", "unclear", [], "Only one kind of line shows it")


def _is_independent(seen: Seen, first: Seen) -> bool:
    """Return whether a line is a second witness beside the first."""
    if seen.origin != first.origin:
        return True
    # The same writer tells, in other words, of something else than the cause.
    is_other = (first.role in _CAUSE) != (seen.role in _CAUSE)
    return is_other and (seen.kind == "metric" or shape(seen.quote) != shape(first.quote))


def shape(quote: str) -> str:
    """Return a line with its numbers alike: lines of one shape say the same of other things."""
    return _NUMBERS.sub("0", quote)


def _order(causes: list[Seen], effects: list[Seen]) -> Result:
    begun = min((each.when for each in causes if each.when is not None), default=None)
    timed = sorted((each for each in effects if each.when is not None), key=_time)
    if begun is None or not timed:
        return Result("order", "unclear", [], "The times of cause and effect are not known")
    if _time(timed[0]) < begun - TOLERANCE:
        return Result("order", "failed", timed[:1], "What should follow from it came before it")
    return Result("order", "passed", timed[:NAMED], "What follows from it came after it")


def _time(seen: Seen) -> int:
    return seen.when or 0


def _prediction(searched: Searched) -> Result:
    words = " ".join(searched.words)
    if searched.found is None:
        return Result("prediction", "unclear", [], f"No line has “{words}”, which would confirm it")
    return Result("prediction", "passed", [searched.found], f"A line has “{words}”, as it should")

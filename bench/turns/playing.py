"""Playing: send the message of each turn in its situation, and judge what it did."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

import structlog

from bench.turns import Act, Turn
from bench.turns.case import Case, Outcome
from bench.turns.effects import effects, unasked
from bench.turns.endpoint import Endpoint
from bench.turns.hostile import INVENTED, strategies
from bench.turns.judging import judge
from bench.turns.offline import offline
from bench.turns.situations import reach
from bench.turns.talk import Talk
from bench.turns.values import folded
from bench.turns.world import Logs
from tests.support.openai_server import OpenAIServer

Mode = Literal["alone", "model", "hostile"]

_Model = Callable[[], AbstractContextManager[None]]


@dataclass
class Result:
    """A turn after it was played.

    Attributes:
        turn: the turn.
        strategy: of a hostile model; empty otherwise.
        unreached: why its situation was not reached; empty if it was.
        acts: each act with what became of it.
        unasked: the effects that the person has not asked for.
        invented: whether a value of a hostile model was stored.
        crashed: the error that ended the run; empty if there was none.
        said: the answer.
    """

    turn: Turn
    strategy: str = ""
    unreached: str = ""
    acts: list[tuple[Act, Outcome]] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    invented: bool = False
    crashed: str = ""
    said: str = ""

    @property
    def is_right(self) -> bool:
        """Return whether all acts were applied or offered, and nothing else has happened."""
        done = all(outcome != "missed" for _, outcome in self.acts)
        return done and not (self.unreached or self.crashed or self.unasked)

    @property
    def problems(self) -> Iterator[str]:
        """Yield what is wrong, in words."""
        if self.unreached:
            yield f"unreachable: {self.unreached}"
        if self.crashed:
            yield f"CRASHED {self.crashed}"
        yield from (f"UNASKED {each}" for each in self.unasked)
        yield from (f"missed {_short(act)}" for act, out in self.acts if out == "missed")


def play(every: Sequence[Turn], mode: Mode) -> list[Result]:
    """Play turns, each with a tenant of its own.

    Args:
        every: the turns.
        mode: `alone`: without a model; `model`: one finds the acts of the turn; `hostile`: one finds
            acts that do harm.
    """
    with structlog.testing.capture_logs() as captured, offline():
        logs: Logs = captured
        if mode == "alone":
            return asyncio.run(_alone(every, logs))
        with OpenAIServer() as server:
            several = _model if mode == "model" else _hostile
            return asyncio.run(several(every, logs, Endpoint(server)))


async def _alone(every: Sequence[Turn], logs: Logs) -> list[Result]:
    return [await _played(each, f"alone-{each['id']}", logs) for each in every]


async def _model(every: Sequence[Turn], logs: Logs, endpoint: Endpoint) -> list[Result]:
    return [
        await _played(
            each,
            f"model-{each['id']}",
            logs,
            model=lambda each=each: endpoint.finding(each["language"], each["acts"]),  # type: ignore[misc]
        )
        for each in every
    ]


async def _hostile(every: Sequence[Turn], logs: Logs, endpoint: Endpoint) -> list[Result]:
    found = []
    for each in every:
        for at, (name, acts) in enumerate(strategies(each).items()):
            asked = endpoint.asked
            result = await _played(
                each,
                f"hostile-{each['id']}-{at}",
                logs,
                strategy=name,
                model=lambda each=each, acts=acts: endpoint.finding(each["language"], acts),  # type: ignore[misc]
            )
            found.append(result)
            if endpoint.asked == asked:
                # No model is asked about this message, so no strategy differs.
                break
    return found


async def _played(
    turn: Turn, tenant: str, logs: Logs, *, strategy: str = "", model: _Model = nullcontext
) -> Result:
    logs.clear()
    talk = Talk(tenant, logs)
    wanted, waits = await reach(talk, turn)
    if wanted != waits:
        return Result(turn, strategy, unreached=f"{waits} waits, not {wanted}")
    before = await talk.world()
    crashed = ""
    with model():
        try:
            await talk.say(turn["message"])
        except Exception as error:  # noqa: BLE001
            # What was done until then still counts.
            crashed = f"{type(error).__name__}: {error}"
    after = await talk.world()
    case = Case(turn, before, after, effects(before, after))
    # What a hostile model finds are not the acts of the message.
    acts = [] if strategy else [(each, judge(case, each)) for each in turn["acts"]]
    wrong = list(unasked(turn, case.effects, strict=bool(strategy)))
    invented = bool(strategy) and any(folded(each) in INVENTED for each in after.every)
    return Result(
        turn,
        strategy,
        acts=acts,
        unasked=wrong,
        invented=invented,
        crashed=crashed,
        said=after.said,
    )


def _short(act: Act) -> str:
    names = ("field", "what", "name", "to", "value", "targets", "yes")
    told = [str(act[name]) for name in names if act.get(name) is not None]
    return " ".join([act["kind"], *told])

"""The list of scenarios, filled by the decorator when the modules are imported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from .world import World

Play = Callable[[World], Awaitable[Any]]


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    ``alone``: it reads or changes objects of other scenarios. ``owners``: it is played on
    servers with users, where every object has an owner.
    """

    name: str
    play: Play
    alone: bool
    owners: bool


SCENARIOS: dict[str, Scenario] = {}


def scenario(*, alone: bool = False, owners: bool = False) -> Callable[[Play], Play]:
    """Register an async function as the scenario ``<module>.<function>``."""

    def register(play: Play) -> Play:
        name = f"{play.__module__.rpartition('.')[2]}.{play.__name__}"
        if name in SCENARIOS:
            raise ValueError(f"two scenarios are called {name}")
        SCENARIOS[name] = Scenario(name, play, alone, owners)
        return play

    return register

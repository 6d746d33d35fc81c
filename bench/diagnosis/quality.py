"""Quality: does the diagnosis name the cause of generated incidents, and never a decoy?"""

import asyncio
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import AsyncMock, patch

from langgraph.checkpoint.memory import InMemorySaver

from bench.diagnosis.incidents import FAULTS, Incident, generate
from bench.report import Line
from my_agent.asking import Asked
from my_agent.diagnosis.graph import graph
from my_agent.diagnosis.model import Cause, Proposal
from my_agent.tables import tables

INCIDENTS = 60
NAMED, BLAMED = 0.7, 0.05


@dataclass
class Score:
    """Counts of outcomes.

    Attributes:
        named: the failed service and its fault were named.
        blamed: a decoy was named.
        wrong: another cause was named.
        honest: nothing was named, and the data of the failed service is missing.
        missed: nothing was named, and the data is there.
        unknowable: incidents without the data of the failed service.
    """

    named: int = 0
    blamed: int = 0
    wrong: int = 0
    honest: int = 0
    missed: int = 0
    unknowable: int = 0


async def measure(seeds: Iterable[int], *, scripted: bool) -> Score:
    """Work the incidents of some seeds, each in a thread of its own.

    Args:
        seeds: the seeds.
        scripted: whether a model proposes the decoys; else there is no model.
    """
    score = Score()
    with _fresh():
        for seed in seeds:
            incident = generate(seed)
            with _insisting(incident) if scripted else nullcontext():
                _judge(score, incident, await _work(incident))
    return score


def _insisting(incident: Incident) -> Any:
    """Let the model propose the decoys of an incident, whatever it is shown."""
    decoys = sorted(incident.decoys)
    causes = [Cause(service=name, fault=fault) for name in decoys for fault in sorted(FAULTS)]
    insisted = Asked(Proposal(causes=causes[:10]), tokens=0)
    return patch("my_agent.diagnosis.model.structured", AsyncMock(return_value=insisted))


async def _work(incident: Incident) -> dict[str, Any]:
    """Return the state of a session in which the user has no more than the incident's message."""
    config: Any = {"configurable": {"thread_id": f"incident-{incident.seed}"}}
    worker = graph.copy()
    worker.checkpointer = InMemorySaver()
    for text in (incident.message, "no, that's all"):
        sent: Any = {"messages": [{"role": "user", "content": text}]}
        done = await worker.ainvoke(sent, config)
        if done["diagnosis"]["conclusion"] is not None:
            break
    found: dict[str, Any] = done["diagnosis"]
    return found


def _judge(score: Score, incident: Incident, state: dict[str, Any]) -> None:
    name = (state["conclusion"] or {}).get("hypothesis")
    cause = state["hypotheses"].get(name)
    score.unknowable += incident.service is None
    if cause is None:
        if incident.service is None:
            score.honest += 1
        else:
            score.missed += 1
    elif (cause["service"], cause["fault"]) == (incident.service, incident.fault):
        score.named += 1
    elif cause["service"] in incident.decoys:
        score.blamed += 1
    else:
        score.wrong += 1


@contextmanager
def _fresh() -> Iterator[None]:
    """Let the graphs use a new SQLite file."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        tables.use(f"sqlite:///{folder}/data.db")
        try:
            yield
        finally:
            tables.close()
            tables.use(None)


def lines() -> list[Line]:
    """Return the rows of the table, without a model and with a scripted one."""
    rows = []
    for name, scripted in (("offline", False), ("a model insists on decoys", True)):
        score = asyncio.run(measure(range(INCIDENTS), scripted=scripted))
        share = score.named / INCIDENTS
        rows += [
            Line(f"cause named, {name}", share, "", limit=NAMED, better="higher"),
            Line(f"decoy blamed, {name}", score.blamed / INCIDENTS, "", limit=BLAMED),
            Line(f"another cause blamed, {name}", score.wrong / INCIDENTS, ""),
            Line(f"inconclusive, data missing, {name}", score.honest / INCIDENTS, ""),
            Line(f"inconclusive, data there, {name}", score.missed / INCIDENTS, ""),
        ]
    return rows

"""Recorded: does the diagnosis name the cause of incidents that others have recorded?

An incident is a folder with `question.txt`, `label.json` and the files that its people had. The label has
`cause`, `determinable`, and phrases: a named cause is right with one of `accept` and none of `reject`. That
judge is strict; `--results` writes what was said, for a person to judge.
"""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.memory import InMemorySaver

from bench.report import Line
from my_agent.diagnosis.graph import graph
from my_agent.tables import tables

NAMED, FALSE, UNREAD = 0.8, 0.02, 0.0
_BESIDE = ("question.txt", "label.json")
Outcome = Literal["right", "false", "inconclusive", "failed"]


@dataclass
class Worked:
    """What became of an incident.

    Attributes:
        id: The name of its folder.
        determinable: Whether its evidence shows the cause.
        outcome: `right`: the cause was named; `false`: another one was, or one that the evidence
            does not show; `inconclusive`: none was; `failed`: the run ended with an error.
        said: The named cause.
        answer: The last answer.
        unread: Lines of the evidence that are in no source.
        hypotheses: All statements, with status and confidence.
    """

    id: str
    determinable: bool
    outcome: Outcome
    said: str = ""
    answer: str = ""
    unread: int = 0
    hypotheses: list[str] = field(default_factory=list)


def work(folder: Path) -> list[Worked]:
    """Work all incidents of a folder, each in a thread of its own, with the model of the environment."""
    found = sorted(each.parent for each in folder.glob("*/label.json"))
    with _fresh():
        return asyncio.run(_all(found))


async def _all(folders: list[Path]) -> list[Worked]:
    return [await _one(each) for each in folders]


async def _one(folder: Path) -> Worked:
    label = json.loads((folder / "label.json").read_text("utf-8"))
    try:
        done = await _worked(folder)
    except Exception as error:  # noqa: BLE001  # whatever it is, the incident was not worked
        return Worked(folder.name, label["determinable"], "failed", answer=repr(error)[:300])
    state = done["diagnosis"]
    cause = state["hypotheses"].get((state["conclusion"] or {}).get("hypothesis"))
    said = "" if cause is None else str(cause["statement"])
    outcome: Outcome = "inconclusive"
    if cause is not None:
        quotes = " ".join(
            each["quote"] for test in cause["tests"].values() for each in test["evidence"]
        )
        outcome = "right" if _is_right(label, f"{said} {cause['fault']}", quotes) else "false"
    return Worked(
        folder.name,
        label["determinable"],
        outcome,
        said,
        str(done["messages"][-1].content),
        _unread(folder, state),
        [
            f"{each['status']} {each['confidence']:.2f} {each['statement']}"
            for each in state["hypotheses"].values()
        ],
    )


async def _worked(folder: Path) -> dict[str, Any]:
    """Return the thread's values after a person has given everything, and then said no."""
    config: Any = {"configurable": {"thread_id": folder.name}}
    worker = graph.copy()
    worker.checkpointer = InMemorySaver()
    for text in (_message(folder), "no, that is all I have"):
        sent: Any = {"messages": [{"role": "user", "content": text}]}
        done: dict[str, Any] = await worker.ainvoke(sent, config)
        if done["diagnosis"]["conclusion"] is not None:
            break
    return done


def _message(folder: Path) -> str:
    parts = [(folder / "question.txt").read_text("utf-8").strip()]
    for file in _files(folder):
        parts.append(f"==> {file.name} <==\n{file.read_text('utf-8', 'replace')}")
    return "\n".join(parts)


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.name not in _BESIDE)


def _is_right(label: dict[str, Any], said: str, quotes: str) -> bool:
    if not label["determinable"]:
        return False
    told = said.casefold()
    accepted = any(each.casefold() in f"{told} {quotes.casefold()}" for each in label["accept"])
    return accepted and not any(each.casefold() in told for each in label["reject"])


def _unread(folder: Path, state: dict[str, Any]) -> int:
    """Return how many lines that are not empty are in no source of a session."""
    given = sum(
        1
        for file in _files(folder)
        for line in file.read_text("utf-8", "replace").splitlines()
        if line.strip()
    )
    return max(0, given - sum(int(each["lines"]) for each in state["sources"].values()))


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


def lines(folder: Path, results: Path | None) -> list[Line]:
    """Return the rows of the table about the incidents of a folder."""
    worked = work(folder)
    if results is not None:
        results.write_text("\n".join(json.dumps(asdict(each)) for each in worked) + "\n", "utf-8")
    known = [each for each in worked if each.determinable]
    right = sum(each.outcome == "right" for each in known)
    false = sum(each.outcome == "false" for each in worked)
    return [
        Line("cause named, of those that the evidence shows", right / max(1, len(known)), ""),
        Line("false cause named", false / max(1, len(worked)), "", limit=FALSE),
        Line(
            "incidents that ended with an error",
            sum(e.outcome == "failed" for e in worked),
            "",
            limit=0,
        ),
        Line("lines dropped unread", sum(each.unread for each in worked), "", limit=0),
    ]

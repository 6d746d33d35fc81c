"""Input and state of the graph `research`. All values are JSON: the checkpoint holds them."""

from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from my_agent.research import budgets

Json = dict[str, Any]


def merge(old: Json | None, new: Json | None) -> Json:
    """Return both dicts as one; `new` None empties it. A reducer of parallel workers."""
    return {} if new is None else {**(old or {}), **new}


class Input(TypedDict):
    """The input that a client may send.

    Attributes:
        question: what to find out. The same question on a thread goes on where it stopped.
        limits: lower budgets, by name (`budgets.Budgets`).
    """

    question: str
    limits: NotRequired[Annotated[dict[str, float], merge]]


def append(old: list[Any] | None, new: list[Any] | None) -> list[Any]:
    """Return both lists as one; `new` None empties it. A reducer of parallel workers."""
    return [] if new is None else [*(old or []), *new]


class State(TypedDict, total=False):
    """The stored state of a thread: `ResearchState`, which all workers share.

    Attributes:
        question: the input.
        limits: the input, merged with that of earlier runs.
        asked: the question that the state is about.
        created_at: ISO time of the first run.
        stage: planning, searching, extracting, analyzing, reporting or completed.
        status: running, or how the last run ended.
        plan: `planning.Plan`.
        searched: what came of each query: the number of results, and the failures of sources.
        results: `SearchResult` dicts, unique by address.
        found: new results of the searchers of this step.
        read: what came of each address: a page without its text, or a failure.
        retries: how often quality checks sent work back, by stage.
        agent: the worker that searches or extracts: its stage, its seconds so far in all batches,
            and how often it ran out of time.
        elapsed: seconds of each task of the last batch.
        timeouts: operations that ran out of time.
        notes: what went otherwise than planned, as sentences.
        findings: `Finding` dicts of the analyzer.
        ledger: `LedgerEntry` dicts.
        disagreements: `Disagreement` dicts.
        analysis: `Analysis` dict.
        report: `Report` dict.
        usage: what was spent, by stage and budget.
        tick: time of the supervisor's last step, in seconds of the epoch.
        limits_hit: names of exhausted budgets.
        offline: workers that did their work without a model.
        error: why a worker gave up.
    """

    question: str
    limits: Annotated[dict[str, float], merge]
    asked: str
    created_at: str
    stage: str
    status: str
    plan: Json | None
    searched: Annotated[Json, merge]
    results: list[Json]
    found: Annotated[list[Json], append]
    read: Annotated[Json, merge]
    retries: dict[str, int]
    agent: Json
    elapsed: Annotated[list[float], append]
    timeouts: Annotated[list[Json], append]
    notes: Annotated[list[str], append]
    findings: list[Json]
    ledger: list[Json]
    disagreements: list[Json]
    analysis: Json | None
    report: Json | None
    usage: Annotated[budgets.Usage, budgets.add]
    tick: float
    limits_hit: list[str]
    offline: Annotated[list[str], append]
    error: Annotated[str, lambda old, new: new]


class SearchTask(TypedDict):
    """What a searcher gets: one query.

    Attributes:
        task_query: the query.
        fetches: number of attempts that the budget allows.
        seconds: time that the budget allows.
        agent_seconds: what is left of the time of all searchers together.
    """

    task_query: str
    fetches: int
    seconds: float
    agent_seconds: float


class CrawlTask(TypedDict):
    """What an extractor gets: one address.

    Attributes:
        task_url: the canonical address.
        fetches: number of attempts that the budget allows.
        bytes: size that the budget allows.
        seconds: time that the budget allows.
        agent_seconds: what is left of the time of all extractors together.
    """

    task_url: str
    fetches: int
    bytes: int
    seconds: float
    agent_seconds: float


EMPTY: State = {
    "plan": None,
    "searched": None,  # type: ignore[typeddict-item]
    "results": [],
    "found": None,  # type: ignore[typeddict-item]
    "read": None,  # type: ignore[typeddict-item]
    "retries": {},
    "agent": {},
    "elapsed": None,  # type: ignore[typeddict-item]
    "timeouts": None,  # type: ignore[typeddict-item]
    "notes": None,  # type: ignore[typeddict-item]
    "findings": [],
    "ledger": [],
    "disagreements": [],
    "analysis": None,
    "report": None,
    "usage": None,  # type: ignore[typeddict-item]
    "limits_hit": [],
    "offline": None,  # type: ignore[typeddict-item]
    "error": "",
}
"""The values of a new project. None empties a channel with a reducer."""

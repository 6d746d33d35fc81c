"""The reporter: a report of proven claims."""

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict, Field

from my_agent.research import assembling, claims, pages, prompts
from my_agent.research.asking import Asker, OutOfBudget, Unusable, is_offline
from my_agent.research.assembling import Finding
from my_agent.research.ledger import Ledger
from my_agent.research.model import (
    SUPPORTED,
    CrawledPage,
    Disagreement,
    LedgerEntry,
    Report,
    SearchResult,
    SourceRow,
    as_dict,
    from_dict,
)
from my_agent.research.nodes.agent import attempt, hit
from my_agent.research.projects import now
from my_agent.research.state import State
from my_agent.research.text import cut
from my_agent.research.work import Work

ANSWER_TOKENS = 3000
TITLE = 120
# Proven claims that the model chooses from.
OFFERED = 60


class Chosen(BaseModel):
    """One statement of the model's answer."""

    model_config = ConfigDict(extra="ignore")

    number: int
    text: str


class Reported(BaseModel):
    """The model's answer."""

    model_config = ConfigDict(extra="ignore")

    statements: list[Chosen] = Field(max_length=200)


async def reporter(state: State, config: RunnableConfig) -> State:
    """Write the report. Without a model, or if it gives no usable answer, of all findings."""
    work = Work.of(config, state)
    timeouts: list[dict[str, Any]] = []

    async def once() -> State:
        await work.began("the report")
        read = await pages.by_address(work.key)
        found = [from_dict(Finding, each) for each in state.get("findings", [])]
        supported = [each for each in found if each.claim.status == SUPPORTED]
        update = State()
        if is_offline():
            update["offline"] = ["reporter"]
        elif supported and not state.get("retries", {}).get("reporting"):
            try:
                found = await _choose(work, state, found, read, timeouts)
            except Unusable:
                update["offline"] = ["reporter"]
                update["notes"] = ["The model gave no usable report; it shows every finding."]
            except OutOfBudget as error:
                update = {"limits_hit": hit(state, error.name), "offline": ["reporter"]}
        whole: State = {**state, **update}
        whole["offline"] = [*(state.get("offline") or []), *(update.get("offline") or [])]
        report = await asyncio.to_thread(written, whole, work, read, found, status="completed")
        await work.ended("the report")
        return {**update, "report": as_dict(report)}

    return await attempt(work, work.settings.research_model_retries, once, timeouts)


def written(
    state: State,
    work: Work,
    read: dict[str, CrawledPage],
    found: Sequence[Finding],
    *,
    status: str,
) -> Report:
    """Return the report of findings and of the state.

    Args:
        state: the state.
        work: the surroundings.
        read: the pages, by address.
        found: the findings, in the order of the report.
        status: status of the project.
    """
    base = Report(
        project_id=work.key.project_id,
        title=cut(state["asked"], TITLE),
        question=state["asked"],
        created_at=state.get("created_at", ""),
        completed_at=now(),
        status=status,
        sources=sources(state, read),
        limits_hit=tuple(state.get("limits_hit", [])),
        usage=work.spent(),
        offline=bool({"analyzer", "reporter", "planner"} & set(state.get("offline") or [])),
    )
    disagreements = [from_dict(Disagreement, each) for each in state.get("disagreements", [])]
    ledger = [from_dict(LedgerEntry, each) for each in state.get("ledger", [])]
    return assembling.report(base, found, disagreements, ledger)


def sources(state: State, read: dict[str, CrawledPage]) -> tuple[SourceRow, ...]:
    """Return a row for each result, the read ones first."""
    rows = state.get("read") or {}
    quality = {each["url"]: each["quality"] for each in state.get("results", [])}
    found: dict[str, SourceRow] = {}
    for requested, row in rows.items():
        page = read.get(row.get("url", ""))
        if row["ok"] and page is not None:
            found[page.url] = SourceRow(
                page.url, page.title, page.published, page.origin, quality.get(requested, 0.0), True
            )
    for each in state.get("results", []):
        result = from_dict(SearchResult, each)
        if result.url in found or rows.get(result.url, {}).get("ok"):
            continue
        found[result.url] = SourceRow(
            result.url, result.title, result.published, "", result.quality, False
        )
    return tuple(found.values())


async def _choose(
    work: Work,
    state: State,
    found: Sequence[Finding],
    read: dict[str, CrawledPage],
    timeouts: list[dict[str, Any]],
) -> list[Finding]:
    """Return the findings that the model chooses, as it shortens them where that is proven.

    Raises:
        Unusable: the answer chooses nothing.
        OutOfBudget: the budget does not allow the call.
    """
    supported = [each for each in found if each.claim.status == SUPPORTED][:OFFERED]
    others = [each for each in found if each.claim.status != SUPPORTED]
    mark = prompts.fence()
    analysis = state.get("analysis") or {}
    text = (
        f"Question: {state['asked']}\n\nSummary of the analysis:\n{mark}\n"
        f"{str(analysis.get('summary', '')).replace(mark, '')[:4000]}\n{mark}\n\n"
        f"Statements:\n{prompts.listed([each.claim for each in supported], mark)}"
    )
    answer = await Asker(work, Reported, timeouts).ask(
        prompts.REPORTER.format(fence=mark), text, answer_tokens=ANSWER_TOKENS
    )
    ledger = Ledger(from_dict(LedgerEntry, each) for each in state.get("ledger", []))
    chosen: dict[int, Finding] = {}
    for each in answer.statements:
        if each.number in chosen or not 1 <= each.number <= len(supported):
            continue
        original = supported[each.number - 1]
        short = claims.judge(each.text, original.claim.entries, ledger, read)
        if short.status != SUPPORTED:
            # The model has changed what was proven: the proven words are shown.
            others.append(Finding(short, original.kind))
        is_proven = short.status == SUPPORTED
        chosen[each.number] = Finding(short, original.kind) if is_proven else original
    if not chosen:
        raise Unusable("the answer chooses no statement")
    return [*chosen.values(), *others]

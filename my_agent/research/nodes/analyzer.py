"""The analyzer: statements of the pages about features, competitors and SWOT, each with its quote."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict, Field

from my_agent.research import assembling, claims, extraction, pages, prompts
from my_agent.research.asking import Asker, OutOfBudget, Unusable, is_offline
from my_agent.research.assembling import Finding, Findings
from my_agent.research.extraction import Statement
from my_agent.research.ledger import Ledger
from my_agent.research.model import Claim, CrawledPage, as_dict
from my_agent.research.nodes.agent import attempt, hit
from my_agent.research.state import State
from my_agent.research.work import Work

ANSWER_TOKENS = 3000
# Characters of one page, and of one question to the model.
EXCERPT, MATERIAL = 8000, 24_000


class Statement_(BaseModel):
    """A statement of the model's answer."""

    model_config = ConfigDict(extra="ignore", title="Statement")

    page: int
    quote: str
    text: str
    kind: Literal[
        "facts",
        "features",
        "competitors",
        "strengths",
        "weaknesses",
        "opportunities",
        "threats",
    ]


class Analyzed(BaseModel):
    """The model's answer."""

    model_config = ConfigDict(extra="ignore")

    statements: list[Statement_] = Field(max_length=200)


async def analyzer(state: State, config: RunnableConfig) -> State:
    """Analyze the pages that were read."""
    work = Work.of(config, state)
    timeouts: list[dict[str, Any]] = []

    async def once() -> State:
        await work.began("what the pages say")
        read = await pages.by_address(work.key)
        question = state["asked"]
        about = await asyncio.to_thread(extraction.relevant, question, list(read.values()))
        by_words = await asyncio.to_thread(extraction.statements, question, about)
        ledger = Ledger()
        update = State()
        statements, refused = by_words, list[Finding]()
        if is_offline():
            update["offline"] = ["analyzer"]
        elif about:
            try:
                statements, refused, more = await _ask(work, state, about, ledger, timeouts)
                update = more
            except Unusable:
                update["notes"] = [
                    "The model gave no usable analysis; the statements are sentences of the pages."
                ]
                update["offline"] = ["analyzer"]
            except OutOfBudget as error:
                update = {"limits_hit": hit(state, error.name), "offline": ["analyzer"]}

        def assemble() -> Findings:
            found = assembling.by_statements(statements, read, ledger, by_words)
            more = assembling.corroborated(found.findings, read, ledger)
            return Findings((*more, *refused), found.disagreements, ledger.entries)

        found = await asyncio.to_thread(assemble)
        await work.ended("what the pages say")
        return {
            **update,
            "findings": [as_dict(each) for each in found.findings],
            "disagreements": [as_dict(each) for each in found.disagreements],
            "ledger": [as_dict(each) for each in found.ledger],
            "analysis": as_dict(assembling.analysis(found.findings)),
        }

    return await attempt(work, work.settings.research_model_retries, once, timeouts)


async def _ask(
    work: Work,
    state: State,
    about: Sequence[CrawledPage],
    ledger: Ledger,
    timeouts: list[dict[str, Any]],
) -> tuple[list[Statement], list[Finding], State]:
    """Return the model's proven statements, the others as findings, and the update of the state.

    Raises:
        Unusable: no answer was usable.
        OutOfBudget: the budget allows no call at all.
    """
    proven: list[Statement] = []
    refused: list[Finding] = []
    update = State()
    answered = 0
    problem: Unusable | OutOfBudget | None = None
    for batch in _batches(about):
        mark = prompts.fence()
        text = f"Question: {state['asked']}\n\n{prompts.fenced(batch, mark)}"
        try:
            answer = await Asker(work, Analyzed, timeouts).ask(
                prompts.ANALYZER.format(fence=mark), text, answer_tokens=ANSWER_TOKENS
            )
        except Unusable as error:
            problem = error
            continue
        except OutOfBudget as error:
            problem = error
            update["limits_hit"] = hit(state, error.name)
            break
        answered += 1
        for each in answer.statements:
            found = _judged(each, batch, ledger, len(proven))
            if isinstance(found, Statement):
                proven.append(found)
            else:
                refused.append(found)
    if answered == 0 and problem is not None:
        raise problem
    return proven, refused, update


def _judged(
    each: Statement_, batch: Sequence[tuple[CrawledPage, str]], ledger: Ledger, number: int
) -> Statement | Finding:
    """Return a statement if its quote is on its page and says it; a refused finding otherwise."""

    def refuse(reason: str) -> Finding:
        return Finding(Claim(text=" ".join(each.text.split())[:500], reason=reason), each.kind)

    if not 1 <= each.page <= len(batch):
        return refuse("the page does not exist")
    page = batch[each.page - 1][0]
    entry = ledger.quote(page, each.quote)
    if entry is None:
        return refuse("the quote is not on the page")
    if not (extraction.is_usable(each.text) and extraction.is_usable(entry.quote)):
        return refuse("it reads like an instruction or an advertisement")
    if (reason := claims.check(each.text, entry.quote)) is not None:
        return refuse(reason)
    text = " ".join(each.text.split())
    return Statement(page, entry.start, entry.end, text, each.kind, 1000.0 - number)


def _batches(about: Sequence[CrawledPage]) -> list[list[tuple[CrawledPage, str]]]:
    batches: list[list[tuple[CrawledPage, str]]] = []
    size = MATERIAL
    for page in about:
        excerpt = page.text[:EXCERPT]
        if size + len(excerpt) > MATERIAL:
            batches.append([])
            size = 0
        batches[-1].append((page, excerpt))
        size += len(excerpt)
    return batches

"""The planner: queries, target sources and quality thresholds."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict, Field

from my_agent.research import planning, prompts
from my_agent.research.asking import Asker, OutOfBudget, Unusable, is_offline
from my_agent.research.model import as_dict
from my_agent.research.nodes.agent import attempt, hit
from my_agent.research.planning import Plan
from my_agent.research.state import State
from my_agent.research.work import Work

ANSWER_TOKENS = 800


class Planned(BaseModel):
    """The model's answer."""

    model_config = ConfigDict(extra="ignore")

    queries: list[str] = Field(max_length=50)


async def planner(state: State, config: RunnableConfig) -> State:
    """Plan the research. Without a model, or with one that gives no plan, from the words alone."""
    work = Work.of(config, state)
    timeouts: list[dict[str, Any]] = []

    async def once() -> State:
        question, most = state["asked"], work.settings.research_queries
        await work.began("the plan")
        plan, update = planning.by_words(question, most), State()
        if is_offline():
            update["offline"] = ["planner"]
        else:
            try:
                asked = await Asker(work, Planned, timeouts).ask(
                    prompts.PLANNER, question, answer_tokens=ANSWER_TOKENS
                )
                # The question itself is always searched for: a plan may be about something else.
                queries = planning.cleaned([*plan.queries[:1], *asked.queries], most)
                plan = Plan(queries if len(queries) > 1 else plan.queries)
            except OutOfBudget as error:
                update = {"limits_hit": hit(state, error.name), "offline": ["planner"]}
            except Unusable:
                update["offline"] = ["planner"]
                update["notes"] = [
                    "The model gave no usable plan; the queries come from the words."
                ]
        await work.ended("the plan")
        return {**update, "plan": as_dict(plan)}

    return await attempt(work, work.settings.research_model_retries, once, timeouts)

"""Node `begin`: start a new project, or continue one."""

import time
from typing import Any

from langchain_core.runnables import RunnableConfig

from my_agent.research import files, pages, progress, projects
from my_agent.research.budgets import totals
from my_agent.research.model import ProjectSnapshot, as_dict
from my_agent.research.pages import Reading
from my_agent.research.snapshots import TITLE
from my_agent.research.state import EMPTY, Input, State
from my_agent.research.supervisor import page_row
from my_agent.research.text import content, cut
from my_agent.research.work import Work
from my_agent.storable import one_line

MAX_QUESTION = 2000


class BadQuestion(ValueError):
    """The input has no question, or one that is too long."""


async def begin(state: State, config: RunnableConfig) -> State:
    """Start a project, or continue it if the thread has one with the same question.

    A project whose checkpoint is lost continues from its newest undamaged backup.

    Raises:
        BadQuestion: there is no question, or it is too long.
    """
    question = checked(state)
    work = Work.of(config, state)
    is_new = state.get("asked") != question
    if is_new and state.get("asked"):
        await pages.forget(work.key)
    row = await projects.begin(work.key, question, work.run_id)
    update: State = {"tick": time.time(), "error": "", "status": "running"}
    if is_new:
        update = {**EMPTY, **update, "asked": question, "created_at": row.created_at}
        update["stage"] = "planning"
        # After another question on the same thread, its backups are about that one.
        found = None if state.get("asked") else await files.restore(work.settings, work.key)
        if found is not None and found.title == cut(question, TITLE):
            update = {**update, **await _restored(work, found)}
    elif state.get("stage") == "completed" and state.get("limits_hit"):
        # Higher limits: gather more, then analyze and report again.
        update = {**update, "stage": "searching", "analysis": None, "report": None}
        update["limits_hit"] = []
    else:
        update["limits_hit"] = []
    if not is_new and state.get("error"):
        update = {**update, **await _again(work, state)}

    def started(found: dict[str, Any]) -> dict[str, Any]:
        if is_new:
            found = {}
        shown = progress.view(row)["percentage"] if found else 0
        return {
            **found,
            "run_began_at": projects.now(),
            "run_began_with": shown,
            "usage": totals(state.get("usage") or {}) if not is_new else {},
            "limits": as_dict(work.budget.limits),
            "wanted": state.get("limits") or {},
            "limits_hit": [],
        }

    await work.publish(started)
    return update


async def _again(work: Work, state: State) -> State:
    """Return what a failed project tries again: all searches, or all pages, if each one failed."""
    update: State = {"retries": {}}
    # mypy: None empties these channels.
    if not state.get("results"):
        update["searched"] = None  # type: ignore[typeddict-item]
    read = state.get("read") or {}
    if read and not any(row["ok"] for row in read.values()):
        await pages.forget(work.key)
        update["read"] = None  # type: ignore[typeddict-item]
    return update


def checked(input: Input | State) -> str:
    """Return the question on one line.

    Raises:
        BadQuestion: there is none, or it is too long.
    """
    question = input.get("question")
    question = one_line(question) if isinstance(question, str) else ""
    if not any(map(str.isalnum, question)):
        raise BadQuestion("Send a `question` with words, such as a product and what to find out")
    if not content(question):
        raise BadQuestion("Name what the question is about, such as a product")
    if len(question) > MAX_QUESTION:
        raise BadQuestion(f"The question must have at most {MAX_QUESTION} characters")
    return question


async def _restored(work: Work, found: ProjectSnapshot) -> State:
    for page in found.pages:
        await pages.save(work.key, Reading(page.requested_url, page, None, 1))
    return {
        "results": [as_dict(each) for each in found.results],
        "read": {page.requested_url: page_row(page) for page in found.pages},
        "notes": ["The project continues from a backup: its checkpoint was lost."],
    }

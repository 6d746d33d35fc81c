"""Research: start a project, follow it, read it, and stop or continue it.

`POST /research {question, project_id?, limits?}` starts a project and answers with its progress.
`GET /research/{project_id}/progress`, `/report` and `/state` read it; `POST .../cancel`,
`/finish`, `/pause` and `/resume` change what happens next. A project is a thread of its user.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, Field, field_validator
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from server.operations import PROJECT_CREATE, PROJECT_UPDATE, REPORT_EXPORT
from server.routes.conversation import find_thread
from server.routes.endpoint import Caller, Json, Refusal, endpoint
from threadhold import operations
from threadhold.gate import own_write

if TYPE_CHECKING:
    from my_agent.research.projects import Key, Project, Status

GRAPH = "research"
logger = logging.getLogger(__name__)
_LIMITS = ("tokens", "model_calls", "fetches", "bytes", "seconds")
_OVER = ("success", "error", "timeout", "interrupted")
# Tasks that force a stop; the event loop keeps only weak references to tasks.
_forcing: set[asyncio.Task[None]] = set()


class _Limited(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    limits: dict[str, float] = Field(default_factory=dict)

    @field_validator("limits", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        unknown = sorted(set(value) - set(_LIMITS))
        if unknown:
            raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(_LIMITS)}")
        for name, amount in value.items():
            is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
            if not is_number or not 0 <= amount < float("inf"):
                raise ValueError(f"{name}: must be a number that is not negative")
        return {name: float(amount) for name, amount in value.items()}


class Start(_Limited):
    """A question. With a `project_id`, a repeated request starts nothing twice."""

    question: str
    project_id: UUID | None = Field(default=None, strict=False)


class Resume(_Limited):
    """New limits for the rest of the project."""


@endpoint("POST /research")
async def start(caller: Caller, body: Start) -> Response:
    """Start a project. If the project exists, answer with its progress."""
    # Imported here so that the server starts without loading the graph.
    from my_agent.research import projects
    from my_agent.research.nodes.begin import BadQuestion, checked

    try:
        question = checked({"question": body.question})
    except BadQuestion as error:
        raise HTTPException(422, f"question: {error}") from error
    project_id = str(body.project_id or uuid4())
    key = projects.Key(caller.tenant, project_id)
    known = None if body.project_id is None else await projects.find(key)
    if known is not None:
        # The thread may be another user's, of which this one learns nothing.
        found = await _find(caller, project_id)
        if known.question != question:
            detail = "The project has another question: start a new project for this one"
            raise Refusal(409, {"error": "other_question", "detail": detail})
        return await _shown(caller, found)
    # The project's row is made by its first run: a thread that another user has is refused first.
    try:
        made = await operations.start_run(
            caller.user, project_id, _run(question, body.limits, create=True)
        )
    except HTTPException as error:
        if error.status_code != 409 or body.project_id is None:
            raise
        return await _shown(caller, await _find(caller, project_id))
    # That of the first request, if this one repeats it.
    key = projects.Key(caller.tenant, made.thread_id)
    async with caller.writing(PROJECT_CREATE, project_id=key.project_id):
        await projects.create(key, question)
    return await _shown(caller, key, status=201)


@endpoint("GET /research/{project_id}/progress")
async def progress(caller: Caller) -> Response:
    """Answer with the progress of a project."""
    return await _shown(caller, await _find(caller))


@endpoint("GET /research/{project_id}/report")
async def report(caller: Caller) -> Response:
    """Answer with the report: JSON with its Markdown, or Markdown or HTML if the client asks so."""
    from my_agent.research.model import Report, from_dict
    from my_agent.research.report import html, markdown

    key = await _find(caller)
    content = (await _values(caller, key)).get("report")
    if content is None:
        project = await _settled(caller, key)
        detail = f"There is no report: the project is {project.status if project else 'queued'}"
        raise Refusal(409, {"error": "no_report", "detail": detail})
    made = from_dict(Report, content)
    kind = _accepted(caller)
    if kind == "application/json":
        return JSONResponse({"report": content, "markdown": markdown.render(made)})
    await caller.enter(REPORT_EXPORT, **caller.request.path_params)
    if kind == "text/markdown":
        return PlainTextResponse(markdown.render(made), media_type=kind)
    # The page holds words of foreign pages: nothing in it may run or load.
    return HTMLResponse(
        html.render(made),
        headers={
            "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
            "img-src data:; sandbox",
            "x-content-type-options": "nosniff",
        },
    )


@endpoint("GET /research/{project_id}/state")
async def state(caller: Caller) -> Json:
    """Answer with the snapshot of a project: results, pages with their texts, analysis, quotes."""
    from my_agent.research import pages
    from my_agent.research import progress as shown
    from my_agent.research.model import as_dict
    from my_agent.research.snapshots import snapshot

    key = await _find(caller)
    values = await _values(caller, key)
    project = await _settled(caller, key)
    percentage = shown.view(project)["percentage"] if project else 0
    made = snapshot({"asked": "", **values}, key, await pages.by_address(key), percentage)  # type: ignore[typeddict-item]
    status = project.status if project else "queued"
    return {**as_dict(made), "status": status}


@endpoint("POST /research/{project_id}/cancel")
async def cancel(caller: Caller) -> Response:
    """Stop a project. Nothing new starts; what there is becomes the report."""
    from my_agent.research import projects

    before: list[Status] = []

    def work(found: "Project") -> Json:
        before[:] = [found.status]
        if found.status == "queued" or found.status == "paused":
            return {"status": "cancelled", **projects.flagged("")}
        if found.status == "running":
            return projects.flagged("cancel")
        return {}

    project = await _change(caller, work, allowed=("queued", "running", "paused", "cancelled"))
    if project.status == "cancelled":
        # The run may still wait in the queue. If it has begun, it sees the status.
        try:
            await _cancel_runs(caller, project.key, only="pending")
        except HTTPException as error:
            raise await _not_cancelled(caller, project.key, before[0], error) from error
    elif project.status == "running":
        task = asyncio.create_task(_force_later(caller, project.key))
        _forcing.add(task)
        task.add_done_callback(_forcing.discard)
    return await _shown(caller, project.key, status=202)


@endpoint("POST /research/{project_id}/finish")
async def finish(caller: Caller) -> Response:
    """Stop searching and reading, and report what there is."""
    from my_agent.research import projects

    def work(found: "Project") -> Json:
        if found.status in projects.ACTIVE and found.flag != "cancel":
            return projects.flagged("finish")
        if found.status == "paused":
            return {"status": "queued", **projects.flagged("finish")}
        return {}

    changed = await _change(caller, work, allowed=("queued", "running", "paused"))
    return await _continue(caller, changed, {})


@endpoint("POST /research/{project_id}/pause")
async def pause(caller: Caller) -> Response:
    """Stop after the operations that run now. `resume` continues."""
    from my_agent.research import projects

    def work(found: "Project") -> Json:
        if found.status in projects.ACTIVE and found.flag == "":
            return projects.flagged("pause")
        return {}

    changed = await _change(caller, work, allowed=("queued", "running", "paused"))
    return await _shown(caller, changed.key, status=202)


@endpoint("POST /research/{project_id}/resume", otherwise=b"{}")
async def resume(caller: Caller, body: Resume) -> Response:
    """Continue a project that is paused, cancelled or failed, or whose report hit a limit.

    Pages that were read are not fetched again.
    """
    from my_agent.research import projects
    from my_agent.research.budgets import Budgets
    from my_agent.research.model import as_dict
    from my_agent.research.settings import ResearchSettings

    settings = ResearchSettings.from_environment()

    def refuse(found: "Project") -> str | None:
        if found.status != "completed":
            return None
        hit, before = found.progress.get("limits_hit"), found.progress.get("limits", {})
        if not hit:
            return "The project is complete, and no limit has cut it short"
        # Budgets that the user has named before stay as they are.
        wanted = {**found.progress.get("wanted", {}), **body.limits}
        now = as_dict(Budgets.of(settings, wanted))
        if not any(now[name] > before.get(name, 0) for name in hit):
            most = ", ".join(f"{name} ({before.get(name, 0):g})" for name in hit)
            return f"Name higher `limits` than those that were reached: {most}"
        return None

    def work(found: "Project") -> Json:
        if found.status in projects.ACTIVE:
            return projects.flagged("") if found.flag == "pause" else {}
        if refuse(found) is not None:
            return {}
        return {"status": "queued", "error": None, **projects.flagged("")}

    return await _continue(caller, await _change(caller, work, refuse=refuse), body.limits)


@endpoint("DELETE /threads/{thread_id}")
async def delete(caller: Caller) -> Response:
    """Delete a thread. If it is a project, delete its files, too. Its rows go with the thread."""
    await operations.delete_thread(caller.user, caller.name("thread_id"))
    from my_agent.research import files, projects
    from my_agent.research.settings import ResearchSettings

    # The platform has checked that the thread is the caller's.
    key = projects.Key(caller.tenant, str(UUID(caller.name("thread_id"))))
    try:
        await files.remove(ResearchSettings.from_environment(), key)
    except OSError:
        logger.exception("The files of the deleted project %s were not removed", key.project_id)
    return Response(status_code=204)


ROUTES = [start, progress, report, state, cancel, finish, pause, resume, delete]


# --- finding a project


async def _find(caller: Caller, project_id: str | None = None) -> "Key":
    """Return the key of the caller's project."""
    from my_agent.research.projects import Key

    thread = await find_thread(caller, project_id or caller.name("project_id"), GRAPH)
    return Key(caller.tenant, thread["thread_id"])


async def _change(
    caller: Caller,
    work: "Callable[[Project], Json]",
    *,
    allowed: tuple[str, ...] = (),
    refuse: "Callable[[Project], str | None]" = lambda found: None,
) -> "Project":
    """Change the project of a request, and return it.

    Args:
        caller: the user of the request.
        work: returns the columns to change.
        allowed: statuses in which the request makes sense; none: all of them.
        refuse: returns why the request makes no sense, or None.

    Raises:
        Refusal: (409) it makes no sense now.
    """
    from my_agent.research import projects

    key = await _find(caller)
    before = await _settled(caller, key)
    if before is None:
        detail = "The project has not begun: wait until its first run starts"
        raise Refusal(409, {"error": "not_begun", "detail": detail})
    action = caller.request.url.path.rpartition("/")[2]
    problem = refuse(before)
    if allowed and before.status not in allowed:
        problem = f"The project is {before.status}"
    is_stopping = before.status in projects.ACTIVE and before.flag == "cancel"
    if is_stopping and action != "cancel":
        problem = "The project is being cancelled: wait until it has stopped"
    if problem is not None:
        raise Refusal(409, {"error": before.status, "detail": problem})
    async with caller.writing(PROJECT_UPDATE, project_id=key.project_id, change=action):
        return await projects.change(key, work) or before


async def _settled(caller: Caller, key: "Key") -> "Project | None":
    """Return a project, after its status was corrected if its run is over or will not stop."""
    from my_agent.research import projects
    from my_agent.research.settings import ResearchSettings

    found = await projects.find(key)
    if found is None or found.status not in projects.ACTIVE:
        return found
    patience = ResearchSettings.from_environment().research_stop_seconds
    if found.flag == "cancel" and projects.age(found.flag_at) > patience:
        await _force(caller, key, f"The project did not stop within {patience:g} seconds")
        return await projects.find(key)
    if found.is_silent and found.run_id is not None and await _is_over(caller, key, found.run_id):
        await _fail(key, "The run has ended without a result; resume the project")
        return await projects.find(key)
    return found


async def _values(caller: Caller, key: "Key") -> Json:
    """Return the state of a project's thread."""
    return dict((await operations.read_state(caller.user, key.project_id))["values"] or {})


async def _shown(caller: Caller, key: "Key", *, status: int = 200) -> Response:
    """Answer with the progress of a project."""
    return JSONResponse(await _progress(caller, key), status)


async def _progress(caller: Caller, key: "Key") -> Json:
    from my_agent.research import progress as shown
    from my_agent.research import projects

    found = await _settled(caller, key)
    if found is None:
        # A client has started the run itself, and it has not begun.
        found = projects.Project(key, "", "queued", "", None, None)
    return dict(shown.view(found))


def _accepted(caller: Caller) -> str:
    """Return the first kind of answer that the client accepts."""
    for each in caller.header("accept").split(","):
        kind = each.partition(";")[0].strip().lower()
        if kind in ("application/json", "text/markdown", "text/html"):
            return kind
    return "application/json"


# --- runs


def _run(question: str, limits: Json, *, create: bool = False) -> Json:
    return {
        "assistant_id": GRAPH,
        "input": {"question": question, **({"limits": limits} if limits else {})},
        # Each step is stored before the next one starts: after a crash, no finished step repeats.
        "durability": "sync",
        # A page follows the progress, and goes on behind the last event that it has.
        "stream_mode": ["custom"],
        "stream_resumable": True,
        "multitask_strategy": "reject",
        "config": {"recursion_limit": 10_000},
        **({"if_not_exists": "create"} if create else {}),
    }


async def _continue(caller: Caller, project: "Project", limits: dict[str, float]) -> Response:
    """Start a run for a queued project, unless one works on it."""
    from my_agent.research import projects

    if project.status == "queued":
        try:
            await _start(caller, project, _run(project.question, limits))
        except HTTPException:
            # A run that another request has started goes on.
            with own_write("product"):
                await projects.change(
                    project.key,
                    lambda found: {"status": "paused"} if found.status == "queued" else {},
                )
            raise
    return await _shown(caller, project.key, status=202)


async def _start(caller: Caller, project: "Project", run: Json) -> None:
    """Start the next run of a project, unless another request has done so."""
    # The last run may still be storing its end.
    for left in reversed(range(50)):
        try:
            await operations.start_run(caller.user, project.key.project_id, run)
            return
        except HTTPException as error:
            if error.status_code == 409 and await _has_begun(caller, project):
                return
            if error.status_code != 409 or not left:
                raise
        await asyncio.sleep(0.1)


async def _has_begun(caller: Caller, project: "Project") -> bool:
    """Return whether another request, such as a second click, has started the project's next run."""
    return any(run["run_id"] != project.run_id for run in await _in_flight(caller, project.key))


async def _in_flight(caller: Caller, key: "Key") -> list[Json]:
    runs = await operations.list_runs(caller.user, key.project_id)
    return [run for run in runs if run["status"] not in _OVER]


async def _is_over(caller: Caller, key: "Key", run_id: str) -> bool:
    try:
        run = await operations.read_run(caller.user, key.project_id, run_id)
    except HTTPException as error:
        return error.status_code == 404
    return run["status"] in _OVER


async def _cancel_runs(caller: Caller, key: "Key", *, only: str) -> None:
    """Cancel the runs of a project that have this status, on behalf of the caller.

    Raises:
        HTTPException: a run was not cancelled, and goes on.
    """
    for run in await _in_flight(caller, key):
        if run["status"] == only:
            try:
                await operations.cancel_run(caller.user, key.project_id, run["run_id"])
            except HTTPException:
                if not await _is_over(caller, key, run["run_id"]):
                    raise


async def _not_cancelled(
    caller: Caller, key: "Key", status: "Status", error: HTTPException
) -> Refusal:
    """Let a project whose run goes on have its status again, and return the refusal with it."""
    from my_agent.research import projects

    with own_write("product"):
        await projects.change(
            key, lambda found: {"status": status} if found.status == "cancelled" else {}
        )
    shown = {**await _progress(caller, key), "detail": error.detail}
    return Refusal(error.status_code, shown, dict(error.headers or {}))


async def _force_later(caller: Caller, key: "Key") -> None:
    """Stop a project by force if it has not stopped in time."""
    from my_agent.research import projects
    from my_agent.research.settings import ResearchSettings

    patience = ResearchSettings.from_environment().research_stop_seconds
    await asyncio.sleep(patience)
    found = await projects.find(key)
    if found is not None and found.status in projects.ACTIVE and found.flag == "cancel":
        await _force(caller, key, f"The project did not stop within {patience:g} seconds")


async def _force(caller: Caller, key: "Key", reason: str) -> None:
    # The status first: a run that continues nevertheless sees it and starts nothing.
    await _fail(key, reason)
    try:
        await _cancel_runs(caller, key, only="running")
    except HTTPException as error:
        logger.warning("A run of the failed project %s goes on: %s", key.project_id, error.detail)


async def _fail(key: "Key", reason: str) -> None:
    from my_agent.research import progress as shown
    from my_agent.research import projects

    def work(found: "Project") -> Json:
        if found.status not in projects.ACTIVE:
            return {}
        stages = shown.failed(found.progress)
        return {"status": "failed", "error": reason, "progress": stages, **projects.flagged("")}

    logger.error("Research project %s has failed: %s", key.project_id, reason)
    with own_write("product"):
        await projects.change(key, work)

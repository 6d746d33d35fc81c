"""Progress: how far a project is, by stage, and how long it may still take."""

from typing import Any

from my_agent.research.budgets import STAGES
from my_agent.research.projects import Project, age, now

Json = dict[str, Any]

# Share of the whole work, in percent.
_WEIGHTS = dict(zip(STAGES, (5, 20, 45, 15, 15), strict=True))
STEPS = {
    "planning": "Plan the queries",
    "searching": "Search the sources",
    "extracting": "Read the pages",
    "analyzing": "Analyze what the pages say",
    "reporting": "Write the report",
    "completed": "The report is ready",
}
_ICONS = {"pending": "○", "running": "◐", "completed": "●", "failed": "✕"}
# Before this percentage an estimate would be a guess.
_FIRST_ESTIMATE = 10


def begin(progress: Json, stage: str, total: int, *, ended: str = "completed") -> Json:
    """Return the progress of a project whose stage begins, or goes on with more items.

    Args:
        progress: the progress so far.
        stage: the stage.
        total: number of its items, done ones included.
        ended: status of the stage that ends: "completed", or "pending" if it will be repeated.
    """
    stages = {name: dict(each) for name, each in progress.get("stages", {}).items()}
    for name in STAGES:
        each = stages.setdefault(name, {"status": "pending", "done": 0, "total": 0})
        if name == stage:
            if each["status"] != "running":
                each.update(status="running")
            each["total"] = max(total, each["done"])
        elif each["status"] == "running":
            each["status"] = ended
        if stage in STAGES and STAGES.index(name) > STAGES.index(stage):
            # Work was sent back: what follows is done again.
            each["status"] = "pending"
    if stage == "completed":
        for each in stages.values():
            each["status"] = "completed"
    return {
        **progress,
        "stage": stage,
        "step": STEPS.get(stage, stage),
        "stages": stages,
        "item": progress.get("item") if progress.get("stage") == stage else None,
    }


def item(progress: Json, stage: str, name: str, *, done: int = 0) -> Json:
    """Return the progress after an item has begun (`done` 0) or ended (1)."""
    stages = {key: dict(each) for key, each in progress.get("stages", {}).items()}
    if stage in stages:
        here = stages[stage]
        here["done"] = here["done"] + done
        here["total"] = max(here["total"], here["done"])
    return {**progress, "stages": stages, "item": name}


def failed(progress: Json) -> Json:
    """Return the progress with its running stage as failed."""
    stages = {name: dict(each) for name, each in progress.get("stages", {}).items()}
    for each in stages.values():
        if each["status"] == "running":
            each["status"] = "failed"
    return {**progress, "stages": stages}


def view(project: Project) -> Json:
    """Return the progress of a project as clients see it."""
    progress = project.progress
    stages = progress.get("stages", {})
    shown = {name: _stage(stages.get(name, {})) for name in STAGES}
    percentage = _percentage(shown) if project.status != "completed" else 100
    stage = progress.get("stage") or "planning"
    here = shown.get(stage, {"done": 1, "total": 1})
    waits = {"pause": "pausing", "finish": "finishing", "cancel": "cancelling"}
    active = project.status in ("queued", "running")
    return {
        "project_id": project.key.project_id,
        "question": project.question,
        "status": waits.get(project.flag, project.status) if active else project.status,
        "stage": stage,
        "step": progress.get("step") or STEPS["planning"],
        "done": here["done"],
        "total": here["total"],
        "current_item": progress.get("item") if active else None,
        "percentage": percentage,
        "eta_seconds": _estimate(progress, percentage) if project.status == "running" else None,
        "stages": shown,
        "usage": progress.get("usage", {}),
        "limits": progress.get("limits", {}),
        "limits_hit": progress.get("limits_hit", []),
        "retries": progress.get("retries", {}),
        "timeouts": progress.get("timeouts", 0),
        "notes": progress.get("notes", []),
        "error": project.error,
        "created_at": project.created_at,
        "updated_at": project.updated_at,
        "now": now(),
    }


def _stage(found: Json) -> Json:
    status, done, total = (
        found.get("status", "pending"),
        found.get("done", 0),
        found.get("total", 0),
    )
    share = 100 if status == "completed" else (100 * done // total if total else 0)
    return {
        "status": status,
        "icon": _ICONS[status],
        "percentage": min(share, 100 if status == "completed" else 99),
        "done": done,
        "total": total,
    }


def _percentage(stages: dict[str, Json]) -> int:
    return int(sum(_WEIGHTS[name] * each["percentage"] / 100 for name, each in stages.items()))


def _estimate(progress: Json, percentage: int) -> float | None:
    started = progress.get("run_began_at")
    # What earlier runs have done says nothing about this run's speed.
    gained = percentage - progress.get("run_began_with", 0)
    if started is None or gained < _FIRST_ESTIMATE:
        return None
    return round(float(age(started) * (100 - percentage) / gained), 1)

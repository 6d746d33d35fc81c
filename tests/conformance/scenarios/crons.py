"""Crons: creation, search, and firing."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World, system_assistant
from .assistants import NOWHERE

NEVER = "0 0 1 1 *"
OFTEN = "* * * * * */2"  # a sixth field counts seconds


def when(cron: Any) -> str:
    """Return the next date to the minute, which follows from the schedule."""
    return str(cron["next_run_date"])[:16]


async def remove(w: World, *crons: Any) -> None:
    for cron in crons:
        await w.sdk.crons.delete(cron["cron_id"])


async def make_three(w: World) -> tuple[dict[str, Any], list[Any]]:
    """Create three crons with a common mark for two assistants, one of them disabled."""
    mark = {"mark": w.new_id()}
    crons = [
        await w.sdk.crons.create("echo", schedule=NEVER, metadata={**mark, "n": 0}),
        await w.sdk.crons.create("steps", schedule="0 5 * * *", metadata={**mark, "n": 1}),
        await w.sdk.crons.create("echo", schedule=NEVER, metadata={**mark, "n": 2}, enabled=False),
    ]
    return mark, crons


async def numbers(w: World, **search: Any) -> Any:
    answer = await w.call("POST", "/runs/crons/search", search)
    found = [row["metadata"].get("n") for row in answer["body"]]
    return {"status": answer["status"], "headers": answer["headers"], "numbers": found}


@scenario()
async def create_and_get(w: World) -> Any:
    body = {
        "assistant_id": "echo",
        "schedule": "30 4 1 1 *",
        "input": {"value": 1},
        "metadata": {"m": 1},
        "config": {"tags": ["t"]},
        "multitask_strategy": "reject",
    }
    created = await w.call("POST", "/runs/crons", body)
    got = await w.call("GET", f"/runs/crons/{created['body']['cron_id']}")
    await remove(w, created["body"])
    return [created, got, when(created["body"])]


@scenario()
async def create_for_a_thread(w: World) -> Any:
    key = await w.thread()
    body = {"assistant_id": "echo", "schedule": NEVER, "input": {"value": 1}}
    created = await w.call("POST", f"/threads/{key}/runs/crons", body)
    found = await w.sdk.crons.search(thread_id=key)
    count = await w.sdk.crons.count(thread_id=key)
    await remove(w, created["body"])
    return [key, created, [c["cron_id"] for c in found], count]


@scenario()
async def create_with_time_zone(w: World) -> Any:
    crons = [
        await w.sdk.crons.create("echo", schedule="0 12 1 1 *", timezone=zone)
        for zone in ("America/New_York", "Asia/Kolkata", "UTC")
    ]
    await remove(w, *crons)
    return [[when(cron), cron["timezone"]] for cron in crons]


@scenario()
async def create_refused(w: World) -> Any:
    good = {"assistant_id": "echo", "schedule": NEVER}
    bodies: list[Any] = [
        {**good, "schedule": "every day"},
        {**good, "schedule": "61 * * * *"},
        {**good, "assistant_id": "no-such-graph"},
        {**good, "assistant_id": NOWHERE},
        {**good, "timezone": "Mars/Olympus"},
        {**good, "on_run_completed": "explode"},
        {**good, "webhook": "not a url"},
        {**good, "enabled": "perhaps"},
    ]
    answers = [await w.call("POST", "/runs/crons", body) for body in bodies]
    on_threads = [
        await w.call("POST", f"/threads/{NOWHERE}/runs/crons", good),
        await w.call("POST", "/threads/nope/runs/crons", good),
    ]
    return [answers, on_threads]


@scenario()
async def create_incomplete(w: World) -> Any:
    bodies: list[Any] = [{"assistant_id": "echo"}, {"schedule": NEVER}]
    return [(await w.call("POST", "/runs/crons", body))["status"] for body in bodies]


@scenario()
async def get_and_delete_refused(w: World) -> Any:
    return [
        await w.call("GET", f"/runs/crons/{NOWHERE}"),
        await w.call("GET", "/runs/crons/nope"),
        await w.call("DELETE", f"/runs/crons/{NOWHERE}"),
        await w.call("DELETE", "/runs/crons/nope"),
    ]


@scenario()
async def delete(w: World) -> Any:
    cron = await w.sdk.crons.create("echo", schedule=NEVER)
    path = f"/runs/crons/{cron['cron_id']}"
    return [await w.call("DELETE", path), await w.call("GET", path), await w.call("DELETE", path)]


@scenario()
async def update(w: World) -> Any:
    cron = await w.sdk.crons.create(
        "echo", schedule=NEVER, input={"value": 1}, metadata={"a": 1, "b": 1}
    )
    key = cron["cron_id"]
    seen = [
        await w.sdk.crons.update(key, schedule="15 3 1 1 *"),
        await w.sdk.crons.update(key, enabled=False),
        await w.sdk.crons.update(key, input={"value": 2}, metadata={"b": 2, "c": 3}),
        await w.sdk.crons.update(key, timezone="Asia/Kolkata"),
        await w.sdk.crons.update(key, on_run_completed="keep"),
    ]
    dates = [when(cron) for cron in seen]
    await remove(w, cron)
    return [seen, dates]


@scenario()
async def update_refused(w: World) -> Any:
    cron = await w.sdk.crons.create("echo", schedule=NEVER)
    path = f"/runs/crons/{cron['cron_id']}"
    answers = [
        await w.call("PATCH", path, {}),
        await w.call("PATCH", path, {"schedule": "never"}),
        await w.call("PATCH", path, {"timezone": "Mars/Olympus"}),
        await w.call("PATCH", path, {"enabled": "perhaps"}),
        await w.call("PATCH", f"/runs/crons/{NOWHERE}", {"enabled": True}),
        await w.call("PATCH", "/runs/crons/nope", {"enabled": True}),
    ]
    await remove(w, cron)
    return answers


@scenario()
async def search(w: World) -> Any:
    mark, crons = await make_three(w)
    found = [
        await numbers(w, metadata=mark),
        await numbers(w, metadata=mark, enabled=True),
        await numbers(w, metadata=mark, enabled=False),
        await numbers(w, metadata=mark, assistant_id=system_assistant("steps")),
        await numbers(w, metadata={**mark, "n": 1}),
        await numbers(w, metadata=mark, limit=2),
        await numbers(w, metadata=mark, limit=2, offset=2),
        await numbers(w, metadata=mark, thread_id=NOWHERE),
    ]
    await remove(w, *crons)
    return found


@scenario()
async def search_sorted(w: World) -> Any:
    mark, crons = await make_three(w)
    orders = [("created_at", "asc"), ("created_at", "desc"), ("updated_at", "asc")]
    orders += [("next_run_date", "desc")]
    found = [await numbers(w, metadata=mark, sort_by=by, sort_order=order) for by, order in orders]
    # Two crons share their date, so their order is not defined.
    found[-1]["numbers"] = found[-1]["numbers"][-1]
    await remove(w, *crons)
    return found


@scenario()
async def search_selected_fields(w: World) -> Any:
    mark, crons = await make_three(w)
    body = {"metadata": mark, "sort_by": "created_at", "sort_order": "asc"}
    answers = [
        await w.call("POST", "/runs/crons/search", {**body, "select": ["cron_id", "schedule"]}),
        await w.call("POST", "/runs/crons/search", {**body, "select": ["secret"]}),
    ]
    await remove(w, *crons)
    return answers


@scenario()
async def search_refused(w: World) -> Any:
    bodies: list[Any] = [
        {"assistant_id": "nope"},
        {"thread_id": "nope"},
        {"sort_by": "secret"},
        {"limit": 0},
        {"limit": 1001},
        {"offset": -1},
        {"enabled": "perhaps"},
    ]
    return [await w.call("POST", "/runs/crons/search", body) for body in bodies]


@scenario()
async def count(w: World) -> Any:
    mark, crons = await make_three(w)
    counts = [
        await w.sdk.crons.count(metadata=mark),
        await w.sdk.crons.count(metadata=mark, assistant_id=system_assistant("echo")),
        await w.call("POST", "/runs/crons/count", {"assistant_id": "nope"}),
    ]
    await remove(w, *crons)
    return counts


@scenario()
async def are_deleted_with_their_assistant_and_thread(w: World) -> Any:
    made = await w.sdk.assistants.create("echo")
    key = await w.thread()
    first = await w.sdk.crons.create(made["assistant_id"], schedule=NEVER)
    second = await w.sdk.crons.create_for_thread(key, "echo", schedule=NEVER)
    await w.sdk.assistants.delete(made["assistant_id"])
    await w.sdk.threads.delete(key)
    return [await w.call("GET", f"/runs/crons/{c['cron_id']}") for c in (first, second)]


@scenario(alone=True)
async def fire_on_a_thread(w: World) -> Any:
    key = await w.thread()
    cron = await w.sdk.crons.create_for_thread(
        key, "echo", schedule=OFTEN, input={"value": 1}, metadata={"m": 1}
    )
    runs = await w.until(
        lambda: w.sdk.runs.list(key),
        lambda runs: sum(run["status"] == "success" for run in runs) >= 2,
    )
    await remove(w, cron)
    first = runs[-1]
    return [cron["cron_id"], first]


@scenario(alone=True)
async def fire_and_keep_the_thread(w: World) -> Any:
    mark = w.new_id()
    cron = await w.sdk.crons.create(
        "echo",
        schedule=OFTEN,
        input={"value": 7},
        metadata={"mark": mark},
        on_run_completed="keep",
    )
    threads = await w.until(
        lambda: w.sdk.threads.search(metadata={"mark": mark}, status="idle"), bool
    )
    await remove(w, cron)
    return [threads[-1]["values"], threads[-1]["metadata"]]


@scenario(alone=True)
async def disabled_crons_do_not_fire(w: World) -> Any:
    """The enabled cron is created later: after its second run the disabled one was due, too."""
    quiet, loud = await w.thread(), await w.thread()
    crons = [
        await w.sdk.crons.create_for_thread(quiet, "echo", schedule=OFTEN, enabled=False),
        await w.sdk.crons.create_for_thread(loud, "echo", schedule=OFTEN),
    ]
    await w.until(lambda: w.sdk.runs.list(loud), lambda runs: len(runs) >= 2)
    await remove(w, *crons)
    return await w.sdk.runs.list(quiet)


@scenario(alone=True)
async def end_time_is_kept_and_cleared(w: World) -> Any:
    body = {"assistant_id": "echo", "schedule": NEVER, "end_time": "2035-01-01T00:00:00+00:00"}
    created = await w.call("POST", "/runs/crons", body)
    path = f"/runs/crons/{created['body']['cron_id']}"
    cleared = await w.call("PATCH", path, {"end_time": None})
    await remove(w, created["body"])
    end = created["body"]["end_time"]
    return [created["status"], end and end[:16], cleared["body"]["end_time"]]


@scenario(alone=True)
async def fire_beside_a_cron_with_an_end(w: World) -> Any:
    """A cron with an end must not stop other crons from firing."""
    key = await w.thread()
    body = {"assistant_id": "echo", "schedule": NEVER, "end_time": "2035-01-01T00:00:00+00:00"}
    ending = (await w.call("POST", "/runs/crons", body))["body"]
    cron = await w.sdk.crons.create_for_thread(key, "echo", schedule=OFTEN, input={"value": 1})
    fired = False
    for _ in range(60):
        if fired := bool(await w.sdk.runs.list(key)):
            break
        await w.pause(0.25)
    await remove(w, cron, ending)
    return fired

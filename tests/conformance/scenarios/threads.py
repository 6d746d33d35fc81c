"""Threads: creation, metadata, search, copies and deletion."""

from __future__ import annotations

import asyncio
from typing import Any

from ..registry import scenario
from ..world import World
from .assistants import NOWHERE


async def make_three(w: World) -> dict[str, Any]:
    """Create three threads with values, one after the other, and return their common mark."""
    mark = {"mark": w.new_id()}
    for number, value in enumerate(("a", "b", {"deep": [1, 2]})):
        thread = await w.thread(**mark, number=number)
        await w.sdk.runs.wait(thread, "echo", input={"value": value})
    return mark


async def numbers(w: World, **search: Any) -> Any:
    """Return the numbers in the metadata that a search finds, with the pagination headers."""
    answer = await w.call("POST", "/threads/search", search)
    found = [row["metadata"].get("number") for row in answer["body"]]
    return {"status": answer["status"], "headers": answer["headers"], "numbers": found}


@scenario()
async def create_and_get(w: World) -> Any:
    thread = await w.sdk.threads.create(metadata={"a": {"b": [1, None, "é"]}})
    return [thread, await w.sdk.threads.get(thread["thread_id"])]


@scenario()
async def create_bare(w: World) -> Any:
    return await w.call("POST", "/threads", {})


@scenario()
async def create_with_id(w: World) -> Any:
    wanted = w.new_id()
    return [wanted, await w.sdk.threads.create(thread_id=wanted)]


@scenario()
async def create_twice(w: World) -> Any:
    body = {"thread_id": w.new_id(), "metadata": {"n": 1}}
    again = {**body, "metadata": {"n": 2}}
    return [
        await w.call("POST", "/threads", body),
        await w.call("POST", "/threads", again),
        await w.call("POST", "/threads", {**again, "if_exists": "raise"}),
        await w.call("POST", "/threads", {**again, "if_exists": "do_nothing"}),
    ]


@scenario()
async def create_refused(w: World) -> Any:
    bodies: list[Any] = [
        {"thread_id": "not-a-uuid"},
        {"thread_id": 7},
        {"metadata": "x"},
        {"if_exists": "explode"},
        {"supersteps": "x"},
        {"ttl": "soon"},
        {"ttl": {"ttl": -5}},
        [],
    ]
    return [await w.call("POST", "/threads", body) for body in bodies]


@scenario()
async def malformed_bodies(w: World) -> Any:
    return [
        await w.call("POST", "/threads", content=b"{"),
        await w.call("POST", "/threads", content=b""),
        await w.call("POST", "/threads", content=b"\xff\xfe"),
        await w.call("POST", "/threads", content=b"null"),
        await w.call("POST", "/threads", content=b'{"metadata": {"a": NaN}}'),
    ]


@scenario()
async def reserved_metadata_is_stripped(w: World) -> Any:
    body = {"metadata": {"run_id": "x", "assistant_id": "y", "kept": 1}}
    return await w.call("POST", "/threads", body)


@scenario()
async def create_with_supersteps(w: World) -> Any:
    updates = [{"values": {"value": "first"}, "as_node": "__input__"}]
    later = [{"values": {"count": 1}, "as_node": "echo"}]
    thread = await w.sdk.threads.create(
        graph_id="echo", supersteps=[{"updates": updates}, {"updates": later}]
    )
    key = thread["thread_id"]
    return [
        thread,
        await w.sdk.threads.get_state(key),
        await w.sdk.threads.get_history(key, limit=10),
        await w.sdk.runs.wait(key, "echo", input={"value": "next"}),
    ]


@scenario()
async def supersteps_with_command(w: World) -> Any:
    updates = [{"values": {"questions": ["q"]}, "as_node": "__input__"}]
    command = {"update": {"summary": "jumped"}, "goto": "conclude"}
    jump = [{"values": {}, "as_node": "prepare", "command": command}]
    body = {
        "metadata": {"graph_id": "interrupt"},
        "supersteps": [{"updates": updates}, {"updates": jump}],
    }
    created = await w.call("POST", "/threads", body)
    return [created, await w.sdk.threads.get_state(created["body"]["thread_id"])]


@scenario()
async def superstep_command_without_goto(w: World) -> Any:
    step = {"values": {}, "as_node": "prepare", "command": {"update": {"summary": "x"}}}
    first = {"values": {"questions": ["q"]}, "as_node": "__input__"}
    supersteps = [{"updates": [first]}, {"updates": [step]}]
    body = {"metadata": {"graph_id": "interrupt"}, "supersteps": supersteps}
    return (await w.call("POST", "/threads", body))["status"]


@scenario()
async def supersteps_refused(w: World) -> Any:
    bodies: list[Any] = [
        {"supersteps": [{"updates": [{"values": {}, "as_node": "echo"}]}]},
        {
            "metadata": {"graph_id": "echo"},
            "supersteps": [{"updates": [{"values": {"value": 1}, "as_node": "nobody"}]}],
        },
        {"metadata": {"graph_id": "echo"}, "supersteps": [{"updates": []}]},
        {"metadata": {"graph_id": "nope"}, "supersteps": [{"updates": [{"values": {}}]}]},
    ]
    return [await w.call("POST", "/threads", body) for body in bodies]


@scenario()
async def get_refused(w: World) -> Any:
    return [await w.call("GET", f"/threads/{bad}") for bad in (NOWHERE, "nope", "x" * 300)]


@scenario()
async def patch_merges_metadata(w: World) -> Any:
    key = await w.thread(a=1, b={"c": 1})
    before = await w.sdk.threads.get(key)
    patched = await w.sdk.threads.update(key, metadata={"b": {"d": 2}, "e": None})
    return [
        patched,
        await w.sdk.threads.get(key),
        patched["updated_at"] > before["updated_at"],
        patched["created_at"] == before["created_at"],
    ]


@scenario()
async def patch_minimal(w: World) -> Any:
    key = await w.thread(a=1)
    headers = {"Prefer": "return=minimal"}
    body = {"metadata": {"b": 2}}
    return [
        await w.call("PATCH", f"/threads/{key}", body, headers=headers),
        await w.call("GET", f"/threads/{key}"),
        await w.call("PATCH", f"/threads/{NOWHERE}", body, headers=headers),
    ]


@scenario()
async def patch_refused(w: World) -> Any:
    key = await w.thread()
    return [
        await w.call("PATCH", f"/threads/{NOWHERE}", {"metadata": {}}),
        await w.call("PATCH", "/threads/nope", {"metadata": {}}),
        await w.call("PATCH", f"/threads/{key}", {"metadata": 1}),
        await w.call("PATCH", f"/threads/{key}", {}),
    ]


@scenario()
async def delete(w: World) -> Any:
    key = await w.thread()
    run = await w.sdk.runs.create(key, "echo", input={"value": 1})
    await w.sdk.runs.join(key, run["run_id"])
    return [
        await w.call("DELETE", f"/threads/{key}"),
        await w.call("DELETE", f"/threads/{key}"),
        await w.call("GET", f"/threads/{key}/state"),
        await w.call("GET", f"/threads/{key}/history"),
        await w.call("GET", f"/threads/{key}/runs"),
        await w.call("GET", f"/threads/{key}/runs/{run['run_id']}"),
        await w.call("DELETE", "/threads/nope"),
    ]


@scenario()
async def reused_thread_id_starts_empty(w: World) -> Any:
    """A new thread under an old id must not inherit the old state."""
    key = await w.thread()
    await w.sdk.runs.wait(key, "echo", input={"value": "old"})
    await w.sdk.threads.delete(key)
    await w.sdk.threads.create(thread_id=key)
    after = await w.sdk.runs.wait(key, "echo", input={})
    return [after, len(await w.sdk.threads.get_history(key, limit=50))]


@scenario()
async def prune(w: World) -> Any:
    first, second = await w.thread(), await w.thread()
    return [
        await w.call("POST", "/threads/prune", {"thread_ids": []}),
        await w.call("POST", "/threads/prune", {"thread_ids": [first, NOWHERE]}),
        await w.call("GET", f"/threads/{first}"),
        (await w.call("GET", f"/threads/{second}"))["status"],
        await w.call("POST", "/threads/prune", {"thread_ids": ["nope"]}),
        await w.call("POST", "/threads/prune", {"thread_ids": [second], "strategy": "burn"}),
        await w.call("POST", "/threads/prune", {}),
    ]


@scenario()
async def prune_keeps_latest(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "steps", input={"count": 2})
    body = {"thread_ids": [key], "strategy": "keep_latest"}
    answer = await w.call("POST", "/threads/prune", body)
    state = await w.sdk.threads.get_state(key)
    return [answer, len(await w.sdk.threads.get_history(key, limit=50)), state["values"]]


@scenario()
async def copy(w: World) -> Any:
    key = await w.thread(label="original")
    await w.sdk.runs.wait(key, "echo", input={"value": "one"})
    copied = await w.call("POST", f"/threads/{key}/copy")
    other = copied["body"]["thread_id"]
    await w.sdk.runs.wait(other, "echo", input={"value": "two"})
    states = [(await w.sdk.threads.get_state(t))["values"] for t in (key, other)]
    runs = [len(await w.sdk.runs.list(t)) for t in (key, other)]
    return [key, copied["status"], copied["body"]["metadata"], other, states, runs]


@scenario()
async def copied_row(w: World) -> Any:
    key = await w.thread(label="original")
    await w.sdk.runs.wait(key, "echo", input={"value": "one"})
    copied = await w.call("POST", f"/threads/{key}/copy")
    return [copied, await w.sdk.threads.get(copied["body"]["thread_id"])]


@scenario()
async def copy_keeps_history_and_interrupt(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "interrupt", input={"questions": ["q"]})
    copied = await w.call("POST", f"/threads/{key}/copy")
    other = copied["body"]["thread_id"]
    history = await w.sdk.threads.get_history(other, limit=10)
    ended = await w.sdk.runs.wait(other, "interrupt", command={"resume": "yes"})
    original = await w.sdk.threads.get_state(key)
    return [[s["next"] for s in history], ended, original["next"]]


@scenario()
async def copy_refused(w: World) -> Any:
    return [await w.call("POST", f"/threads/{bad}/copy") for bad in (NOWHERE, "nope")]


@scenario()
async def search_by_metadata(w: World) -> Any:
    mark = await make_three(w)
    return [
        await numbers(w, metadata=mark),
        await numbers(w, metadata={**mark, "number": 1}),
        await numbers(w, metadata={**mark, "graph_id": "echo"}),
        await numbers(w, metadata={**mark, "number": "1"}),
        await numbers(w, metadata={**mark, "number": None}),
    ]


@scenario()
async def search_odd_metadata(w: World) -> Any:
    """Keys with a meaning in SQL or JSON paths are plain keys."""
    mark = w.new_id()
    odd: dict[str, Any] = {
        "a.b": 1,
        "a'b": 2,
        'a"b': 3,
        "$a": 4,
        "a[0]": 5,
        "%": 6,
        "é": 7,
        "": 8,
        "true": True,
        "float": 1.5,
        "nested": {"a.b": {"c d": [1, {"x": 1}]}},
    }
    await w.thread(mark=mark, number=0, **odd)
    found = [await numbers(w, metadata={"mark": mark, key: odd[key]}) for key in odd]
    missed: list[dict[str, Any]] = [
        {"a": {"b": 1}},
        {"a": [5]},
        {"true": 1},
        {"float": 1},
        {"nested": {"a.b": {"c d": [1]}}},
    ]
    return [found, [await numbers(w, metadata={"mark": mark, **want}) for want in missed]]


@scenario()
async def search_by_ids(w: World) -> Any:
    first, second = await w.thread(number=1), await w.thread(number=2)
    return [
        await numbers(w, ids=[first]),
        await numbers(w, ids=[first, second, NOWHERE], sort_by="created_at", sort_order="asc"),
        await numbers(w, ids=[first, second], metadata={"number": 2}),
        await w.call("POST", "/threads/search", {"ids": ["nope"]}),
    ]


@scenario()
async def search_by_values(w: World) -> Any:
    mark = await make_three(w)
    return [
        await numbers(w, metadata=mark, values={"value": "b"}),
        await numbers(w, metadata=mark, values={"value": {"deep": [1, 2]}}),
        await numbers(w, metadata=mark, values={"value": {"deep": [1]}}),
        await numbers(w, metadata=mark, values={"value": "b", "count": 1}),
        await numbers(w, metadata=mark, values={"count": 1}),
        await numbers(w, metadata=mark, values={"nothing": 1}),
    ]


@scenario()
async def search_values_of_threads_without_values(w: World) -> Any:
    mark = {"mark": w.new_id()}
    await w.thread(**mark, number=0)
    return await w.call("POST", "/threads/search", {"metadata": mark, "values": {"value": 1}})


@scenario()
async def search_by_status(w: World) -> Any:
    mark = {"mark": w.new_id()}
    idle = await w.thread(**mark, number=0)
    asking, failed = await w.thread(**mark, number=1), await w.thread(**mark, number=2)
    await asyncio.gather(
        w.sdk.runs.wait(idle, "echo", input={"value": 1}),
        w.sdk.runs.wait(asking, "interrupt", input={}),
        w.sdk.runs.wait(failed, "failing", input={}, raise_error=False),
    )
    found = [
        await numbers(w, metadata=mark, status=status)
        for status in ("idle", "interrupted", "error", "busy")
    ]
    return [found, await w.call("POST", "/threads/search", {"status": "sleepy"})]


@scenario()
async def search_sorted(w: World) -> Any:
    mark = await make_three(w)
    first = (await w.sdk.threads.search(metadata={**mark, "number": 0}))[0]["thread_id"]
    await w.sdk.threads.update(first, metadata={"touched": True})
    orders = [("created_at", "asc"), ("created_at", "desc"), ("updated_at", "asc")]
    orders += [("updated_at", "desc"), ("state_updated_at", "asc"), ("thread_id", "asc")]
    found = [await numbers(w, metadata=mark, sort_by=by, sort_order=order) for by, order in orders]
    return [
        *found,
        await numbers(w, metadata=mark),
        await numbers(w, metadata=mark, sort_order="asc"),
    ]


@scenario()
async def search_in_pages(w: World) -> Any:
    mark = await make_three(w)
    order = {"metadata": mark, "sort_by": "created_at", "sort_order": "asc"}
    pages = [{"limit": 2}, {"limit": 2, "offset": 2}, {"limit": 3}, {"offset": 3}, {"limit": 1}]
    return [await numbers(w, **order, **page) for page in pages]


@scenario()
async def search_selected_fields(w: World) -> Any:
    mark = await make_three(w)
    body = {"metadata": mark, "sort_by": "created_at", "sort_order": "asc"}
    return [
        await w.call("POST", "/threads/search", {**body, "select": ["thread_id", "status"]}),
        await w.call("POST", "/threads/search", {**body, "select": ["values", "interrupts"]}),
        await w.call("POST", "/threads/search", {**body, "select": ["secret"]}),
    ]


@scenario()
async def search_with_extract(w: World) -> Any:
    mark = {"mark": w.new_id()}
    key = await w.thread(**mark)
    messages = [{"role": "user", "content": "hi", "id": "m1"}]
    await w.sdk.runs.wait(key, "echo", input={"messages": messages, "value": {"x": [1, 2]}})
    extract = {
        "last": "values.messages[-1].content",
        "first": "values.value.x[0]",
        "none": "values.nothing",
        "mark": "metadata.mark",
    }
    body = {"metadata": mark, "extract": extract}
    return [
        await w.call("POST", "/threads/search", {**body, "select": ["thread_id"]}),
        await w.call("POST", "/threads/search", {**body, "extract": {"a": "secret.x"}}),
        await w.call("POST", "/threads/search", {**body, "extract": {"a": "values..x"}}),
    ]


@scenario()
async def search_refused(w: World) -> Any:
    bodies: list[Any] = [
        {"limit": -1},
        {"limit": 0},
        {"limit": 1001},
        {"offset": -1},
        {"sort_by": "secret"},
        {"sort_order": "sideways"},
        {"metadata": "x"},
        {"values": []},
        {"ids": "x"},
    ]
    answers = [await w.call("POST", "/threads/search", body) for body in bodies]
    return [a if a["status"] != 200 else a["status"] for a in answers]


@scenario()
async def count(w: World) -> Any:
    mark = await make_three(w)
    return [
        await w.sdk.threads.count(metadata=mark),
        await w.sdk.threads.count(metadata=mark, status="idle"),
        await w.sdk.threads.count(metadata=mark, status="busy"),
        await w.sdk.threads.count(metadata=mark, values={"value": "a"}),
        await w.sdk.threads.count(metadata={"mark": w.new_id()}),
    ]


@scenario()
async def ttl_is_accepted(w: World) -> Any:
    made = await w.call("POST", "/threads", {"ttl": {"strategy": "delete", "ttl": 60}})
    key = made["body"]["thread_id"]
    patched = await w.call("PATCH", f"/threads/{key}", {"metadata": {"a": 1}, "ttl": {"ttl": 90}})
    return [made, patched]


@scenario()
async def ttl_is_returned(w: World) -> Any:
    made = await w.call("POST", "/threads", {"ttl": {"strategy": "delete", "ttl": 60}})
    key = made["body"]["thread_id"]
    return await w.call("GET", f"/threads/{key}?include=ttl")


@scenario()
async def storage(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "echo", input={"value": 1})
    answer = await w.call("GET", f"/threads/{key}/storage")
    body = answer["body"]
    parts = {name: sorted(part) for name, part in body.items() if isinstance(part, dict)}
    return [
        [answer["status"], sorted(body), parts, body["checkpoints"]["count"]],
        await w.call("GET", f"/threads/{NOWHERE}/storage"),
        await w.call("GET", "/threads/nope/storage"),
    ]


@scenario()
async def search_excluding_metadata(w: World) -> Any:
    mark = await make_three(w)
    excluded: list[Any] = [
        {"number": 1},
        [{"number": 0}, {"number": 2}],
        {"number": 1, "mark": "another"},
        {"other": 1},
        {**mark},
        [],
        "number",
    ]
    answers = []
    for each in excluded:
        search = {"metadata": mark, "exclude_metadata": each}
        found = await w.call("POST", "/threads/search", search)
        count = await w.call("POST", "/threads/count", search)
        rows = found["body"] if found["status"] == 200 else []
        seen = sorted(row["metadata"]["number"] for row in rows)
        answers.append([found["status"], seen, count["status"], count["body"]])
    return answers

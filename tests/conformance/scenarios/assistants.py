"""Assistants: creation, versions, search, and information about their graph."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World, system_assistant

NOWHERE = "00000000-0000-4000-8000-000000000000"


async def make_three(w: World, **common: Any) -> dict[str, Any]:
    """Create three assistants with different names and graphs; return their common mark."""
    mark = {"mark": w.new_id()}
    for name, graph, extra in (("Berta", "echo", 1), ("anton", "steps", 2), ("Carl", "echo", 2)):
        metadata = {**mark, "kind": extra}
        await w.sdk.assistants.create(graph, name=name, metadata=metadata, **common)
    return mark


async def named(w: World, **search: Any) -> Any:
    """Return the names that a search finds, in order, with the pagination headers."""
    answer = await w.call("POST", "/assistants/search", search)
    names = [row.get("name") for row in answer["body"]]
    return {"status": answer["status"], "headers": answer["headers"], "names": names}


@scenario()
async def create_and_get(w: World) -> Any:
    created = await w.sdk.assistants.create(
        "echo", name="Mine", description="says it again", metadata={"a": {"b": [1, None, "é"]}}
    )
    return [created, await w.sdk.assistants.get(created["assistant_id"])]


@scenario()
async def create_bare(w: World) -> Any:
    return await w.call("POST", "/assistants", {"graph_id": "echo"})


@scenario()
async def create_with_id(w: World) -> Any:
    wanted = w.new_id()
    return [wanted, await w.sdk.assistants.create("echo", assistant_id=wanted)]


@scenario()
async def create_with_config(w: World) -> Any:
    """Configurable and context are each mirrored into the other."""
    config = {"configurable": {"greeting": "moin"}, "tags": ["t"], "recursion_limit": 7}
    by_config = await w.sdk.assistants.create("configured", config=config)
    by_context = await w.sdk.assistants.create("configured", context={"greeting": "servus"})
    return [by_config, by_context]


@scenario()
async def create_with_config_and_context(w: World) -> Any:
    body = {"graph_id": "echo", "config": {"configurable": {"a": 1}}, "context": {"b": 2}}
    return await w.call("POST", "/assistants", body)


@scenario()
async def create_twice(w: World) -> Any:
    body = {"graph_id": "echo", "assistant_id": w.new_id(), "name": "first"}
    again = {**body, "name": "second"}
    return [
        await w.call("POST", "/assistants", body),
        await w.call("POST", "/assistants", again),
        await w.call("POST", "/assistants", {**again, "if_exists": "raise"}),
        await w.call("POST", "/assistants", {**again, "if_exists": "do_nothing"}),
    ]


@scenario()
async def create_refused(w: World) -> Any:
    bodies: list[Any] = [
        {},
        {"graph_id": "no-such-graph"},
        {"graph_id": 7},
        {"graph_id": "echo", "assistant_id": "not-a-uuid"},
        {"graph_id": "echo", "metadata": [1]},
        {"graph_id": "echo", "if_exists": "explode"},
        {"graph_id": "echo", "config": {"configurable": 1}},
        [],
    ]
    return [await w.call("POST", "/assistants", body) for body in bodies]


@scenario()
async def reserved_metadata_is_stripped(w: World) -> Any:
    metadata = {"assistant_id": "x", "thread_id": "y", "run_id": "z", "kept": 1}
    return await w.sdk.assistants.create("echo", metadata=metadata)


@scenario()
async def get_refused(w: World) -> Any:
    return [await w.call("GET", f"/assistants/{bad}") for bad in (NOWHERE, "echo", "x" * 100)]


@scenario()
async def patch_merges_metadata(w: World) -> Any:
    made = await w.sdk.assistants.create("echo", metadata={"a": 1, "b": {"c": 1}})
    key = made["assistant_id"]
    patched = await w.sdk.assistants.update(key, metadata={"b": {"d": 2}, "e": 3})
    return [made, patched, await w.sdk.assistants.get(key)]


@scenario()
async def patch_fields(w: World) -> Any:
    made = await w.sdk.assistants.create("echo", name="old", description="d", context={"x": 1})
    key = made["assistant_id"]
    return [
        await w.sdk.assistants.update(key, name="new"),
        await w.sdk.assistants.update(key, graph_id="steps", description=""),
        await w.sdk.assistants.update(key, config={"configurable": {"y": 2}}),
        await w.sdk.assistants.update(key, context={"z": 3}),
        await w.call("PATCH", f"/assistants/{key}", {}),
    ]


@scenario()
async def patch_refused(w: World) -> Any:
    made = await w.sdk.assistants.create("echo")
    key = made["assistant_id"]
    return [
        await w.call("PATCH", f"/assistants/{NOWHERE}", {"name": "n"}),
        await w.call("PATCH", "/assistants/nope", {"name": "n"}),
        await w.call("PATCH", f"/assistants/{key}", {"graph_id": "no-such-graph"}),
        await w.call("PATCH", f"/assistants/{key}", {"metadata": 3}),
        await w.call("PATCH", f"/assistants/{key}", {"name": 3}),
        await w.call(
            "PATCH",
            f"/assistants/{key}",
            {"context": {"a": 1}, "config": {"configurable": {"b": 1}}},
        ),
    ]


@scenario()
async def versions_newest_first(w: World) -> Any:
    made = await w.sdk.assistants.create("echo", name="v1", metadata={"n": 1})
    key = made["assistant_id"]
    await w.sdk.assistants.update(key, name="v2", metadata={"n": 2})
    await w.sdk.assistants.update(key, graph_id="steps", context={"a": 1})
    return [
        await w.sdk.assistants.get_versions(key),
        await w.sdk.assistants.get_versions(key, limit=1),
        await w.sdk.assistants.get_versions(key, limit=1, offset=1),
        await w.sdk.assistants.get_versions(key, metadata={"n": 1}),
    ]


@scenario()
async def versions_refused(w: World) -> Any:
    made = await w.sdk.assistants.create("echo")
    path = f"/assistants/{made['assistant_id']}/versions"
    return [
        await w.call("POST", f"/assistants/{NOWHERE}/versions", {}),
        await w.call("POST", "/assistants/nope/versions", {}),
        await w.call("POST", path, {"offset": 5}),
        await w.call("POST", path, {"metadata": {"no": "match"}}),
        await w.call("POST", path, {"limit": 0}),
        await w.call("POST", path, {"limit": "many"}),
    ]


@scenario()
async def set_latest_goes_back(w: World) -> Any:
    made = await w.sdk.assistants.create("echo", name="one", metadata={"n": 1})
    key = made["assistant_id"]
    await w.sdk.assistants.update(key, name="two", metadata={"m": 2}, description="second")
    back = await w.sdk.assistants.set_latest(key, 1)
    after = await w.sdk.assistants.update(key, name="three")
    return [back, after, await w.sdk.assistants.get_versions(key)]


@scenario()
async def set_latest_restores_graph_and_context(w: World) -> Any:
    made = await w.sdk.assistants.create("echo", context={"a": 1})
    key = made["assistant_id"]
    await w.sdk.assistants.update(key, graph_id="steps", context={"b": 2})
    return await w.sdk.assistants.set_latest(key, 1)


@scenario()
async def set_latest_refused(w: World) -> Any:
    made = await w.sdk.assistants.create("echo")
    path = f"/assistants/{made['assistant_id']}/latest"
    return [
        await w.call("POST", path, {"version": 2}),
        await w.call("POST", path, {"version": "x"}),
        await w.call("POST", path, {}),
        await w.call("POST", f"/assistants/{NOWHERE}/latest", {"version": 1}),
    ]


@scenario()
async def search_by_metadata(w: World) -> Any:
    mark = await make_three(w)
    return [
        await named(w, metadata=mark),
        await named(w, metadata={**mark, "kind": 2}),
        await named(w, metadata={**mark, "kind": "2"}),
        await named(w, metadata={**mark, "kind": {"deeper": 2}}),
    ]


@scenario()
async def search_nested_metadata(w: World) -> Any:
    mark = w.new_id()
    metadata = {"mark": mark, "a": {"b": {"c": 1, "d": [1, 2]}, "e": None}}
    await w.sdk.assistants.create("echo", name="nested", metadata=metadata)
    wanted: list[dict[str, Any]] = [
        {"a": {"b": {"c": 1}}},
        {"a": {"b": {"d": [1, 2]}}},
        {"a": {"b": {"d": [1]}}},
        {"a": {"e": None}},
        {"a": {"f": None}},
        {"a": {}},
    ]
    return [await named(w, metadata={"mark": mark, **want}) for want in wanted]


@scenario()
async def search_by_graph_and_name(w: World) -> Any:
    mark = await make_three(w)
    return [
        await named(w, metadata=mark, graph_id="echo"),
        await named(w, metadata=mark, name="ANT"),
        await named(w, metadata=mark, name="r", graph_id="echo"),
        await named(w, metadata=mark, name="%"),
        await named(w, metadata=mark, name="_"),
        await w.call("POST", "/assistants/search", {"graph_id": "no-such-graph"}),
    ]


@scenario()
async def search_sorted(w: World) -> Any:
    mark = await make_three(w)
    orders = [("name", "asc"), ("name", "desc"), ("graph_id", "asc"), ("created_at", "asc")]
    orders += [("updated_at", "desc"), ("assistant_id", "asc")]
    found = [await named(w, metadata=mark, sort_by=by, sort_order=order) for by, order in orders]
    # Ids are random, so only the set of names can be compared.
    found[-1]["names"].sort()
    return found


@scenario()
async def search_in_pages(w: World) -> Any:
    mark = await make_three(w)
    pages = [{"limit": 2}, {"limit": 2, "offset": 2}, {"limit": 3}, {"offset": 3}, {"limit": 1}]
    return [await named(w, metadata=mark, **page) for page in pages]


@scenario()
async def search_selected_fields(w: World) -> Any:
    mark = await make_three(w)
    body = {"metadata": mark, "sort_by": "name", "sort_order": "asc"}
    return [
        await w.call("POST", "/assistants/search", {**body, "select": ["name", "graph_id"]}),
        await w.call("POST", "/assistants/search", {**body, "select": ["version", "config"]}),
        await w.call("POST", "/assistants/search", {**body, "select": ["secret"]}),
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
        {"metadata": {"mark": "x"}, "limit": "ten"},
    ]
    answers = [await w.call("POST", "/assistants/search", body) for body in bodies]
    return [a if a["status"] != 200 else a["status"] for a in answers]


@scenario()
async def count(w: World) -> Any:
    mark = await make_three(w)
    return [
        await w.sdk.assistants.count(metadata=mark),
        await w.sdk.assistants.count(metadata=mark, graph_id="echo"),
        await w.sdk.assistants.count(metadata=mark, name="ar"),
        await w.sdk.assistants.count(metadata={"mark": w.new_id()}),
        await w.call("POST", "/assistants/count", {"graph_id": "no-such-graph"}),
    ]


@scenario()
async def system_assistants(w: World) -> Any:
    found = await w.sdk.assistants.search(
        metadata={"created_by": "system"}, limit=100, sort_by="graph_id", sort_order="asc"
    )
    return [found, await w.sdk.assistants.get(found[0]["assistant_id"])]


@scenario()
async def delete(w: World) -> Any:
    made = await w.sdk.assistants.create("echo")
    path = f"/assistants/{made['assistant_id']}"
    return [
        await w.call("DELETE", path),
        await w.call("GET", path),
        await w.call("DELETE", path),
        await w.call("POST", f"{path}/versions", {}),
        await w.call("DELETE", f"/assistants/{NOWHERE}"),
        await w.call("DELETE", "/assistants/nope"),
    ]


@scenario()
async def delete_with_threads(w: World) -> Any:
    made = await w.sdk.assistants.create("echo")
    key = made["assistant_id"]
    used, other = await w.thread(), await w.thread()
    await w.sdk.runs.wait(used, key, input={"value": 1})
    await w.sdk.runs.wait(other, "echo", input={"value": 1})
    return [
        await w.call("DELETE", f"/assistants/{key}?delete_threads=true"),
        await w.call("GET", f"/threads/{used}"),
        (await w.call("GET", f"/threads/{other}"))["status"],
    ]


@scenario()
async def delete_keeps_threads(w: World) -> Any:
    made = await w.sdk.assistants.create("echo")
    thread = await w.thread()
    await w.sdk.runs.wait(thread, made["assistant_id"], input={"value": 1})
    await w.sdk.assistants.delete(made["assistant_id"])
    again = {"assistant_id": made["assistant_id"], "input": {"value": 2}}
    return [
        await w.sdk.threads.get(thread),
        await w.call("POST", f"/threads/{thread}/runs/wait", again),
    ]


@scenario()
async def schemas(w: World) -> Any:
    graphs = ("echo", "configured", "dispatch", "tokens")
    return [await w.sdk.assistants.get_schemas(system_assistant(graph)) for graph in graphs]


@scenario()
async def schemas_refused(w: World) -> Any:
    return [await w.call("GET", f"/assistants/{bad}/schemas") for bad in (NOWHERE, "nope")]


@scenario()
async def graph(w: World) -> Any:
    steps, nested = system_assistant("steps"), system_assistant("subgraph")
    return [
        await w.sdk.assistants.get_graph(steps),
        await w.sdk.assistants.get_graph(nested),
        await w.sdk.assistants.get_graph(nested, xray=True),
        await w.call("GET", f"/assistants/{nested}/graph?xray=1"),
        await w.call("GET", f"/assistants/{nested}/graph?xray=-1"),
        await w.call("GET", f"/assistants/{NOWHERE}/graph"),
        await w.call("GET", "/assistants/nope/graph"),
    ]


@scenario()
async def subgraphs(w: World) -> Any:
    nested = system_assistant("subgraph")
    return [
        await w.sdk.assistants.get_subgraphs(nested),
        await w.sdk.assistants.get_subgraphs(nested, recurse=True),
        await w.sdk.assistants.get_subgraphs(nested, namespace="child"),
        await w.sdk.assistants.get_subgraphs(nested, namespace="nobody"),
        await w.sdk.assistants.get_subgraphs(system_assistant("echo")),
        await w.call("GET", f"/assistants/{NOWHERE}/subgraphs"),
    ]


@scenario()
async def runs_use_the_current_version(w: World) -> Any:
    made = await w.sdk.assistants.create("configured", context={"greeting": "one"})
    key = made["assistant_id"]
    await w.sdk.assistants.update(key, context={"greeting": "two"})
    newest = await w.sdk.runs.wait(None, key, input={})
    await w.sdk.assistants.update(key, graph_id="echo")
    other = await w.sdk.runs.wait(None, key, input={"value": 1})
    return [newest["seen"]["context"], other]

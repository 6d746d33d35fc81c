"""The store over HTTP and from a node."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World


async def make_items(w: World) -> tuple[str, ...]:
    """Create five items under a new namespace and return the namespace."""
    root = ("shelf", w.new_id())
    for number in range(4):
        value = {"n": number, "even": number % 2 == 0, "tags": ["a", str(number)]}
        await w.sdk.store.put_item([*root, "books"], f"k{number}", value)
    await w.sdk.store.put_item([*root, "maps", "old"], "m", {"n": 9, "deep": {"er": [1, None]}})
    return root


async def keys(w: World, *namespace: str, **search: Any) -> list[str]:
    found = await w.sdk.store.search_items(namespace, **search)
    return sorted(item["key"] for item in found["items"])


@scenario()
async def put_get_delete(w: World) -> Any:
    root = ["box", w.new_id()]
    value = {"a": [1, None, 2.5, "é"], "b": {"c": True}}
    body = {"namespace": root, "key": "k", "value": value}
    put = await w.call("PUT", "/store/items", body)
    got = await w.sdk.store.get_item(root, "k")
    await w.sdk.store.put_item(root, "k", {"new": 1})
    again = await w.sdk.store.get_item(root, "k")
    deleted = await w.call("DELETE", "/store/items", {"namespace": root, "key": "k"})
    params = {"namespace": ".".join(root), "key": "k"}
    gone = await w.call("GET", "/store/items", params=params)
    twice = await w.call("DELETE", "/store/items", {"namespace": root, "key": "k"})
    kept = again["created_at"] == got["created_at"], again["updated_at"] > got["updated_at"]
    return [put, got, again, kept, deleted, gone, twice]


@scenario()
async def refused(w: World) -> Any:
    good: dict[str, Any] = {"namespace": ["a"], "key": "k", "value": {}}
    puts: list[Any] = [
        {**good, "namespace": ["a.b"]},
        {**good, "namespace": [""]},
        {**good, "namespace": "a"},
        {**good, "key": 5},
        {**good, "value": "text"},
        {"namespace": ["a"]},
        [],
        {**good, "ttl": "soon"},
    ]
    return [
        [await w.call("PUT", "/store/items", body) for body in puts],
        await w.call("GET", "/store/items"),
        await w.call("GET", "/store/items", params={"namespace": "a"}),
        await w.call("GET", "/store/items", params={"namespace": "a..b", "key": "k"}),
        await w.call("DELETE", "/store/items", {"namespace": ["a"]}),
        await w.call("POST", "/store/items/search", {"namespace_prefix": ["a.b"]}),
        await w.call("POST", "/store/items/search", {"namespace_prefix": ["a"], "limit": "x"}),
        await w.call("POST", "/store/namespaces", {"prefix": ["a.b"]}),
        await w.call("POST", "/store/namespaces", {"max_depth": "x"}),
    ]


@scenario()
async def search_without_a_prefix(w: World) -> Any:
    return (await w.call("POST", "/store/items/search", {}))["status"]


@scenario()
async def empty_namespace_on_put(w: World) -> Any:
    body = {"namespace": [], "key": w.new_id(), "value": {}}
    return (await w.call("PUT", "/store/items", body))["status"]


@scenario()
async def search_by_prefix(w: World) -> Any:
    root = await make_items(w)
    return [
        await keys(w, *root),
        await keys(w, *root, "books"),
        await keys(w, *root, "maps"),
        await keys(w, *root, "maps", "old"),
        await keys(w, *root, "book"),
        await keys(w, "shelf", "nobody"),
    ]


@scenario()
async def search_answer(w: World) -> Any:
    root = await make_items(w)
    return await w.call("POST", "/store/items/search", {"namespace_prefix": [*root, "maps"]})


@scenario()
async def search_by_filter(w: World) -> Any:
    root = await make_items(w)
    filters: list[dict[str, Any]] = [
        {"even": True},
        {"n": 1},
        {"n": {"$gt": 1}},
        {"n": {"$gte": 1, "$lt": 3}},
        {"n": {"$ne": 0}},
        {"n": {"$eq": 2}},
        {"n": {"$lte": 0}},
        {"nobody": 1},
        {"tags": ["a", "1"]},
        {"even": True, "n": 2},
        {"deep": {"er": [1, None]}},
    ]
    return [await keys(w, *root, filter=wanted) for wanted in filters]


@scenario()
async def search_by_odd_filter(w: World) -> Any:
    """Keys with a meaning in SQL or JSON paths are plain keys."""
    root = ("odd", w.new_id())
    value = {"a.b": 1, "a'b": 2, 'a"b': 3, "a[0]": 4, "%": 5, "": 6, "é": 7}
    await w.sdk.store.put_item(root, "k", value)
    found = [await keys(w, *root, filter={key: number}) for key, number in value.items()]
    return [
        found,
        await keys(w, *root, filter={"a": {"b": 1}}),
        await keys(w, *root, filter={"a.b": 2}),
    ]


@scenario(alone=True)
async def search_with_unknown_operator(w: World) -> Any:
    """Alone, because stock answers concurrent requests with this error, too."""
    root = await make_items(w)
    body = {"namespace_prefix": list(root), "filter": {"n": {"$explode": 1}}}
    return await w.call("POST", "/store/items/search", body)


@scenario()
async def search_in_pages(w: World) -> Any:
    root = await make_items(w)
    pages = [{"limit": 2}, {"limit": 2, "offset": 2}, {"limit": 2, "offset": 4}, {"limit": 9}]
    found = [await keys(w, *root, **page) for page in pages]
    return [[len(page) for page in found], sorted(key for page in found[:3] for key in page)]


@scenario()
async def search_by_query_without_an_index(w: World) -> Any:
    root = await make_items(w)
    body = {"namespace_prefix": list(root), "query": "anything"}
    answer = await w.call("POST", "/store/items/search", body)
    return [answer["status"], sorted(item["key"] for item in answer["body"]["items"])]


@scenario()
async def namespaces(w: World) -> Any:
    root = await make_items(w)
    searches: list[dict[str, Any]] = [
        {"prefix": root},
        {"prefix": [*root, "maps"]},
        {"prefix": root, "max_depth": 3},
        {"prefix": root, "max_depth": 2},
        {"prefix": root, "suffix": ["old"]},
        {"prefix": root, "suffix": ["nobody"]},
        {"prefix": ["shelf", "nobody"]},
        {"prefix": root, "limit": 1},
        {"prefix": root, "limit": 1, "offset": 1},
        {"prefix": ["shelf", "*", "maps"], "suffix": [root[1], "maps", "old"]},
    ]
    found = [await w.call("POST", "/store/namespaces", body) for body in searches]
    return [[a["status"], a["body"]] for a in found]


@scenario()
async def ttl(w: World) -> Any:
    """An item with a time to live exists until then; the minutes may be a number."""
    root = ["ttl", w.new_id()]
    body = {"namespace": root, "key": "k", "value": {"a": 1}, "ttl": 10}
    put = await w.call("PUT", "/store/items", body)
    params = {"namespace": ".".join(root), "key": "k", "refresh_ttl": "true"}
    got = await w.call("GET", "/store/items", params=params)
    return [put, got["status"], got["body"]["value"], await keys(w, *root, refresh_ttl=False)]


@scenario()
async def put_without_index(w: World) -> Any:
    root = ["noindex", w.new_id()]
    await w.sdk.store.put_item(root, "k", {"text": "x"}, index=False)
    await w.sdk.store.put_item(root, "l", {"text": "x"}, index=["text"])
    return await keys(w, *root)


@scenario()
async def odd_names(w: World) -> Any:
    """Namespaces and keys may hold any text, except a dot in a label."""
    root = w.new_id()
    names = ["a b", "a'b", 'a"b', "a%b", "a_b", "é🧵", "a/b", "*", "$", "a\\b"]
    for name in names:
        await w.sdk.store.put_item([root, name], name, {"name": name})
    found = await w.sdk.store.search_items([root], limit=50)
    listed = await w.sdk.store.list_namespaces(prefix=[root])
    one = [(await w.sdk.store.search_items([root, name]))["items"] for name in names]
    return [
        sorted(item["key"] for item in found["items"]),
        sorted(namespace[1] for namespace in listed["namespaces"]),
        [[item["key"] for item in items] for items in one],
    ]


@scenario()
async def from_a_node(w: World) -> Any:
    """The API returns items that a node stores, and a node reads items from the API."""
    root = ["node", w.new_id()]

    async def node(**value: Any) -> Any:
        key = await w.thread()
        return (await w.sdk.runs.wait(key, "memory", input={"namespace": root, **value})).get(
            "result"
        )

    await node(op="put", key="k", value={"n": 1})
    item = await w.sdk.store.get_item(root, "k")
    await w.sdk.store.put_item([*root, "deeper"], "l", {"n": 2})
    return [
        item,
        await node(op="get", key="k"),
        await node(op="search", filter={"n": 2}),
        await node(op="namespaces"),
        await node(op="delete", key="k"),
        await node(op="get", key="k"),
    ]

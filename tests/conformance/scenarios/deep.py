"""Deep agents: the results of tools that run at once have one order everywhere."""

from __future__ import annotations

from typing import Any

from ..registry import scenario
from ..world import World

EIGHT = [f"place {at}" for at in range(8)]


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def contents(values: Any) -> list[str]:
    return [each["content"] for each in values["messages"]]


async def shown(w: World, key: str) -> list[str]:
    """Return the messages of a thread, which its state, its values and its history agree on."""
    state = contents((await w.sdk.threads.get_state(key))["values"])
    assert contents((await w.sdk.threads.get(key))["values"]) == state
    [newest, *_] = await w.sdk.threads.get_history(key, limit=1)
    assert contents(newest["values"]) == state
    return state


async def told(w: World, key: str, text: str, **options: Any) -> list[str]:
    """Say something; return the messages of the answer, which are those of the thread."""
    answer = await w.sdk.runs.wait(key, "deep", input=said(text), **options)
    assert contents(answer) == await shown(w, key)
    return contents(answer)


@scenario()
async def tools_at_once(w: World) -> Any:
    key = await w.thread()
    assert (await told(w, key, "look 8"))[2:10] == EIGHT
    # The model sees the thread as it is stored.
    after = await told(w, key, "well?")
    assert after[2:10] == EIGHT
    assert after[-1] == f"I see <look 8>, calls, {', '.join(f'<{e}>' for e in EIGHT)}, <well?>"
    return [after, await w.sdk.threads.get_history(key, limit=50)]


@scenario()
async def tools_at_once_stored_at_the_exit(w: World) -> Any:
    key = await w.thread()
    return [await told(w, key, text, durability="exit") for text in ("look 8", "look 8", "well?")]


@scenario()
async def sub_agents(w: World) -> Any:
    key = await w.thread()
    return [await told(w, key, text) for text in ("send 3 look 8", "well?")]


@scenario()
async def fork(w: World) -> Any:
    """Continue from the checkpoint with the eight results, after the thread has gone on."""
    key = await w.thread()
    for text in ("look 8", "look 8"):
        await told(w, key, text)
    history = await w.sdk.threads.get_history(key, limit=50)
    start = next(each for each in reversed(history) if len(each["values"]["messages"]) == 10)
    await w.sdk.runs.wait(key, "deep", checkpoint=start["checkpoint"])
    forked = await shown(w, key)
    assert forked[2:10] == EIGHT
    assert len(forked) == 11
    return [forked, await told(w, key, "well?")]


@scenario()
async def resume(w: World) -> Any:
    """One of nine tools waits for an answer, the others have ended."""
    key = await w.thread()
    await w.sdk.runs.wait(key, "deep", input=said("look 8 ask"))
    asked = await w.sdk.threads.get_state(key)
    answer = await w.sdk.runs.wait(key, "deep", command={"resume": "yes"})
    assert contents(answer) == await shown(w, key)
    assert contents(answer)[2:11] == [*EIGHT[:5], "the user says yes", *EIGHT[5:]]
    return [asked["values"], asked["interrupts"], contents(answer), await told(w, key, "well?")]


@scenario()
async def resume_in_a_sub_agent(w: World) -> Any:
    key = await w.thread()
    await w.sdk.runs.wait(key, "deep", input=said("send 1 look 8 ask"))
    inside = await w.sdk.threads.get_state(key, subgraphs=True)
    await w.sdk.runs.wait(key, "deep", command={"resume": "yes"})
    within = [contents(each["state"]["values"]) for each in inside["tasks"] if each["state"]]
    return [within, await shown(w, key), await told(w, key, "well?")]


@scenario()
async def update_in_bulk(w: World) -> Any:
    """Eight updates of one superstep, on a new thread and on one with messages."""
    calls = [{"name": "look", "args": {"place": at}, "id": f"c{at}"} for at in range(8)]
    asked = {"role": "assistant", "content": "", "tool_calls": calls}
    results = [
        {"messages": [{"role": "tool", "content": f"place {at}", "tool_call_id": f"c{at}"}]}
        for at in range(8)
    ]
    supersteps = [
        {"updates": [{"values": said("look 8"), "as_node": "__start__"}]},
        {"updates": [{"values": {"messages": [asked]}, "as_node": "model"}]},
        {"updates": [{"values": each, "as_node": "tools"} for each in results]},
    ]
    thread = await w.sdk.threads.create(graph_id="deep", supersteps=supersteps)
    key = thread["thread_id"]
    state = await w.sdk.threads.get_state(key)
    assert contents(state["values"])[2:] == EIGHT
    return [state, await told(w, key, "well?")]

"""Lists encoded by runs: always the bytes that the serializer gives for the whole value."""

import copy
import enum
import math
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from langgraph_runtime_sql.checkpoint.parts import lists, tree
from langgraph_runtime_sql.checkpoint.serialization import serializer
from tests.support.checkpoints import api_settings
from tests.support.seeds import SEED

Dumps = Callable[[Any], tuple[str, bytes]]


@pytest.fixture(scope="module")
def dumps() -> Iterator[Dumps]:
    with api_settings():
        yield serializer().dumps_typed


@pytest.fixture(autouse=True)
def cold() -> None:
    lists.runs.clear()


def whole(dumps: Dumps, value: Any) -> bytes:
    """Return the bytes of a value that is encoded by runs, and check its pieces."""
    kind, data = lists.encode(dumps, value, "thread")
    if isinstance(data, bytes):
        return data
    assert kind == "msgpack"
    joined = []
    for piece in data.cut():
        if isinstance(piece, lists.EncodedList):
            grown = tree.RunTree(piece.runs, b"")
            ids = [grown.root]
            for level in reversed(grown.levels):
                ids = [child for each in ids for child in tree.children(level[each])]
            leaves = grown.leaves_below(grown.levels[0])
            joined += [leaves[each] for each in ids]
        else:
            joined += [piece] if isinstance(piece, bytes) else piece
    assert b"".join(joined) == data.whole()
    assert len(data.whole()) == data.size
    return data.whole()


class Words(str):
    __slots__ = ()


class Color(enum.Enum):
    RED = "red"


class Note(BaseModel):
    text: str


class Named(AIMessage):
    """Not one of langchain_core's own classes."""

    nick: str = "n"


def message(rng: random.Random) -> BaseMessage:
    text = "".join(rng.choices("abc \n€", k=rng.choice([3, 200, 900])))
    key = f"m{rng.randrange(10**9)}"
    match rng.randrange(5):
        case 0:
            call: Any = {"name": "t", "args": {"a": [1, {"b": None}]}, "id": key}
            return AIMessage(text, id=key, tool_calls=[call])
        case 1:
            return ToolMessage(text, id=key, tool_call_id=key, artifact={"rows": [1, 2.5, True]})
        case 2:
            return SystemMessage(text, id=key, additional_kwargs={"deep": {"er": [text[:9]]}})
        case _:
            return HumanMessage(text, id=key, name="ann" if rng.random() < 0.5 else None)


def row(rng: random.Random) -> dict[str, Any]:
    return {"n": rng.randrange(10**6), "text": "x" * rng.randrange(400), "of": [1.5, None, True]}


def edit(rng: random.Random, all: list[Any], make: Callable[[random.Random], Any]) -> None:
    """Change a list as graphs do."""
    at = rng.randrange(len(all)) if all else 0
    match rng.randrange(8 if all else 1):
        case 0 | 1 | 2:
            all.extend(make(rng) for _ in range(rng.choice([1, 2, 40])))
        case 3:
            all[at] = make(rng)
        case 4:
            del all[at]
        case 5:
            rng.shuffle(all)
        case 6:
            all.append(all[at])
        case 7 if isinstance(all[at], BaseMessage):
            # In place, as a node should not do.
            all[at].additional_kwargs["deep"] = {"er": [rng.random()]}
            all[at].content += "!"
        case _:
            all[at]["of"].append(rng.randrange(9))


@pytest.mark.parametrize("make", [message, row])
@pytest.mark.parametrize("round_", range(8))
def test_bytes_are_those_of_the_serializer_after_every_edit(
    dumps: Dumps, make: Callable[[random.Random], Any], round_: int
) -> None:
    print(f"seed {SEED}")
    rng = random.Random(f"{SEED} {round_}")
    all: list[Any] = []
    for step in range(40):
        edit(rng, all, make)
        checkpoint = {"v": 4, "channel_values": {"messages": all, "n": step}, "versions_seen": {}}
        assert whole(dumps, checkpoint) == dumps(checkpoint)[1]
        assert whole(dumps, all) == dumps(all)[1]


@pytest.mark.parametrize(
    "odd",
    [
        Words("text"), ("a", 1), {1, 2}, b"bytes", bytearray(b"bytes"), math.nan, -0.0, 2**63, -1,
        True, 1, 1.0, Color.RED, datetime(2026, 1, 1, tzinfo=UTC), Note(text="x"), {1: "a"},
        "\0", "\ud83d\ude00", [], {}, None,
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_values_that_look_alike_are_encoded_as_they_are(dumps: Dumps, odd: Any, place: str) -> None:
    at = {"first": 0, "middle": 30, "last": 59}[place]
    for plain in ("bytes", 1, 0.0, [], {"a": 1}, None):
        rows: list[Any] = [{"id": str(n), "value": plain, "text": "x" * 300} for n in range(60)]
        said = [HumanMessage("x" * 300, id=str(n), kept=plain) for n in range(60)]
        assert whole(dumps, rows) == dumps(rows)[1]
        assert whole(dumps, said) == dumps(said)[1]
        # The memo knows all others.
        rows[at]["value"] = odd
        said[at].kept = odd  # type: ignore[attr-defined]
        assert whole(dumps, rows) == dumps(rows)[1]
        assert whole(dumps, said) == dumps(said)[1]


def test_other_classes_of_messages_are_encoded_as_a_whole(dumps: Dumps) -> None:
    said: list[Any] = [AIMessage("x" * 300, id=str(n)) for n in range(60)]
    assert whole(dumps, said) == dumps(said)[1]
    said[30] = Named("x" * 300, id="30")
    _, data = lists.encode(dumps, said, "thread")
    assert isinstance(data, bytes)
    assert data == dumps(said)[1]


def test_class_of_a_message_counts(dumps: Dumps) -> None:
    for kind in (HumanMessage, SystemMessage, HumanMessage):
        said = [kind("x" * 300, id=str(n)) for n in range(60)]
        for each in said:
            each.__dict__["type"] = "human"
        assert whole(dumps, said) == dumps(said)[1]


def test_known_runs_are_not_encoded_again(dumps: Dumps) -> None:
    rng = random.Random(SEED)
    said = [message(rng) for _ in range(400)]
    whole(dumps, said)
    encoded = []

    def counted(value: Any) -> tuple[str, bytes]:
        encoded.append(value)
        return dumps(value)

    said.append(message(rng))
    lists.encode(counted, said, "thread")
    # Without those that end the list, an element of each run at most is looked at.
    assert len(encoded) == 1
    encoded.clear()
    said[200] = message(rng)
    lists.encode(counted, said, "thread")
    assert 1 <= len(encoded) < 60


def test_threads_may_encode_at_the_same_time(dumps: Dumps) -> None:
    rng = random.Random(SEED)
    said = [message(rng) for _ in range(200)]
    versions = [[*said[:n], message(rng), *said[n:]] for n in range(0, 200, 10)]
    wanted = [dumps(copy.deepcopy(each))[1] for each in versions]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(lambda each: whole(dumps, each), versions)) == wanted

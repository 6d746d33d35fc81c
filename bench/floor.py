"""The floor of a streamed run: an ASGI app that stores a row in SQLite, and streams the bare graph.

`uvicorn bench.floor:app` serves it. The graph has a saver in memory. Each request inserts a row, commits
it, and sends each token as an event as soon as the model gives it.
"""

import os
import sqlite3
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import orjson
from langgraph.checkpoint.memory import InMemorySaver
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from bench.graphs.tokens import builder

graph = builder.compile(checkpointer=InMemorySaver())
database = sqlite3.connect(os.environ["FLOOR_FILE"], isolation_level=None, check_same_thread=False)
# As our server by default: a commit survives a crash of the process.
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = NORMAL")
database.execute("CREATE TABLE runs (run_id TEXT PRIMARY KEY, input TEXT NOT NULL)")


async def ok(request: Request) -> JSONResponse:
    return JSONResponse({"ok": True})


async def thread(request: Request) -> JSONResponse:
    return JSONResponse({"thread_id": str(uuid4())})


async def stream(request: Request) -> StreamingResponse:
    body = orjson.loads(await request.body())
    run_id = str(uuid4())
    database.execute("INSERT INTO runs VALUES (?, ?)", (run_id, orjson.dumps(body["input"])))
    return StreamingResponse(_events(body["input"], run_id), media_type="text/event-stream")


async def _events(sent: dict[str, Any], run_id: str) -> AsyncIterator[bytes]:
    config: Any = {"configurable": {"thread_id": run_id}}
    async for message, _ in graph.astream(sent, config, stream_mode="messages"):
        yield b"event: messages\r\ndata: " + orjson.dumps(message.model_dump()) + b"\r\n\r\n"


app = Starlette(
    routes=[
        Route("/ok", ok),
        Route("/threads", thread, methods=["POST"]),
        Route("/threads/{thread_id}/runs/stream", stream, methods=["POST"]),
    ]
)

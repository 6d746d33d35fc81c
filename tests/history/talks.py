"""Talks: commands to runs of any tenant, and their streams, by every protocol."""

import asyncio
import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import websockets

from tests.history.asks import Request, request
from tests.history.canaries import Tenant, marked
from tests.history.sender import RUNS, Sender
from tests.integration.http.test_matrix import ACCEPT, CALL, MESSAGE, filled

# Seconds for which a stream is read.
READING = 1.0
INTERRUPT, CONCLUDE = {"assistant_id": "interrupt"}, "conclude"
COMMANDS = "POST /threads/{thread_id}/commands"
CHANNELS = ["values", "messages", "updates", "lifecycle", "custom", "tools"]


class Talks(Sender):
    """Tenants continue, change and follow runs of any tenant."""

    async def _command(self, of: Tenant) -> None:
        """Continue, change or redirect a run that waits in a thread of any tenant."""
        ids = self.ids(of)
        # The others may be refused. Then no tenant would receive anything.
        is_first = not any(
            each.kind == "run commands" and each.tenant == of.name for each in self.received
        )
        if is_first or not of.ids["interrupt_id"] or self.rng.random() < 0.3:
            asking = self.run_of(of, "interrupt", questions=[of.canary])
            ids = await self.own_thread(of, asking)
        commands = [
            {"resume": of.canary},
            {"resume": {ids["interrupt_id"]: of.canary}},
            {"update": {"summary": of.canary}},
            {"goto": CONCLUDE},
            {"goto": {"node": "ask", "input": {"questions": [of.canary]}}},
            {"update": {"questions": [of.canary]}, "goto": "prepare"},
        ]
        command = commands[0] if is_first else self.rng.choice(commands)
        body = {**INTERRUPT, "command": command, "webhook": of.webhook}
        body["metadata"] = {"note": of.canary}
        body |= self.rng.choice(({}, {"if_not_exists": "create"}))
        way = "" if is_first else self.rng.choice(("", "/wait", "/stream"))
        made = request(RUNS + way, body, **ids)
        await self.send(of, made, kind="run commands")
        await self.send(of, request(COMMANDS, self.rng.choice(self.v2_commands(of, ids)), **ids))

    def v2_commands(self, of: Tenant, ids: dict[str, str]) -> list[Any]:
        place = {"interrupt_id": ids["interrupt_id"], "namespace": [], **INTERRUPT}
        said = {**INTERRUPT, "input": {"questions": [of.canary]}, "metadata": {"note": of.canary}}
        return [
            {"id": 1, "method": "input.respond", "params": {**place, "response": of.canary}},
            {"id": 1, "method": "run.start", "params": said},
            {"id": 1, "method": "agent.getTree", "params": {}},
            {"id": 1, "method": "subscription.reconnect", "params": {"channels": CHANNELS}},
        ]

    async def _protocols(self, of: Tenant) -> None:
        """Call graphs by MCP, and graphs and any tenant's assistants by A2A, on any thread."""
        ids = self.ids(of)
        called = {"name": "echo", "arguments": {"value": of.canary}}
        methods = {"tools/call": called, "tools/list": {}}
        for method, params in methods.items():
            made = request("POST /mcp", {**CALL, "method": method, "params": params})
            await self.send(of, replace(made, headers=dict(ACCEPT)))
        message = marked(filled(MESSAGE, ids), of.canary)
        own = {**message, "contextId": self.rng.choice(of.ids["thread_id"] or [str(uuid4())])}
        assistant = self.rng.choice(of.ids["assistant_id"] or [ids["assistant_id"]])
        for name, said in ((ids["assistant_id"], message), (assistant, own)):
            method = self.rng.choice(("message/send", "message/stream"))
            body = {**CALL, "method": method, "params": {"message": said}}
            made = request("POST /a2a/{assistant_id}", body, assistant_id=name)
            await self.send(of, replace(made, headers=dict(ACCEPT)))

    async def _stream(self, of: Tenant) -> None:
        """Read a stream of any tenant's run or thread, from its begin or from now."""
        ids = self.ids(of)
        if self.rng.random() < 0.3:
            # A foreign run under a thread of one's own.
            ids["thread_id"] = self.rng.choice(of.ids["thread_id"] or [ids["thread_id"]])
        made = self.rng.choice(
            [
                request("GET /threads/{thread_id}/runs/{run_id}/stream", **ids),
                request("GET /threads/{thread_id}/stream", **ids),
                self.v2_stream(of, ids),
                self.v2_stream(of, ids, since=None),
            ]
        )
        headers = self.rng.choice([{}, {"last-event-id": "-"}, {"last-event-id": "0-0"}])
        await self._read(of, replace(made, headers=headers))

    async def _read(self, of: Tenant, made: Request) -> None:
        await self.send(of, made, seconds=READING)

    def v2_stream(self, of: Tenant, ids: dict[str, str], since: int | None = 0) -> Request:
        body = {"channels": [*CHANNELS, f"custom:{of.canary}"]} | (
            {} if since is None else {"since": since}
        )
        return request("POST /threads/{thread_id}/stream/events", body, **ids)

    async def _socket(self, of: Tenant) -> None:
        """Use a WebSocket of any tenant's thread."""
        await self._talk(of, self.ids(of))

    async def _talk(self, of: Tenant, ids: dict[str, str]) -> None:
        """Subscribe to the events of a thread by WebSocket, and send a command."""
        path = f"/threads/{ids['thread_id']}/stream/events"
        url = self.rng.choice(self.urls).replace("http:", "ws:") + path
        subscribe = {"channels": CHANNELS, "since": 0}
        commands = [
            {"id": 1, "method": "subscription.subscribe", "params": subscribe},
            {**self.rng.choice(self.v2_commands(of, ids)), "id": 2},
        ]
        text = ""
        try:
            async with (
                asyncio.timeout(READING),
                websockets.connect(
                    url, additional_headers=of.headers(), user_agent_header=None
                ) as socket,
            ):
                for command in commands:
                    await socket.send(json.dumps(command))
                async for message in socket:
                    text += message if isinstance(message, str) else message.decode()
        except websockets.WebSocketException as error:
            text += str(error)
        finally:
            self.note(of, f"WEBSOCKET {path}", text, 0, "WebSocket")

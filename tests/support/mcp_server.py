"""A small MCP server of the official SDK: `python -m tests.support.mcp_server [PORT]`.

Without a port it speaks through stdin and stdout. `MCP_SERVER_PIDS` names a file, to which each process
adds its id.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field
from starlette.requests import Request
from starlette.responses import PlainTextResponse

READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("metrics", log_level="ERROR")


@server.tool(annotations=READS)
def query(expression: str, minutes: Annotated[int, Field(ge=1, le=60)] = 5) -> str:
    """Evaluate an expression."""
    return f"{expression} over {minutes} min: 0.97"


@server.tool()
def labels() -> str:
    """List labels, and say nothing about what it changes."""
    return "job, instance"


@server.tool(annotations=READS)
def coloured() -> str:
    """Answer with signs for a terminal, and with invisible ones."""
    return "\x1b[31mred\x1b[0m\r\nnul:\0 bidi:\u202e tag:\U000e0041 kept:\té"


@server.tool(annotations=READS)
def numbers() -> dict[str, int]:
    """Answer with JSON."""
    return {"up": 3, "down": 1}


@server.tool(annotations=READS)
def failing() -> str:
    """Fail."""
    raise ToolError("bad expression\x07")


@server.tool(annotations=READS)
async def hanging() -> str:
    """Never answer."""
    await asyncio.Event().wait()
    return "never"


@server.tool(annotations=READS)
def crashing() -> str:
    """End the process."""
    os._exit(3)


@server.tool(annotations=READS)
def long(chars: int) -> str:
    """Answer with many characters."""
    return "x" * chars


@server.tool(annotations=READS)
def secret(ctx: Context[Any]) -> str:
    """Say what the server was given."""
    headers = ctx.headers or {}
    return f"{headers.get('authorization', '')}{os.environ.get('METRICS_TOKEN', '')}"


@server.tool(annotations=READS)
def other_secret() -> str:
    """Say what the server was not given."""
    return os.environ.get("OTHER_TOKEN", "nothing")


@server.tool(annotations=ToolAnnotations(read_only_hint=False))
def write_rule() -> str:
    """Change something."""
    return "written"


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def delete_series() -> str:
    """Delete something."""
    return "deleted"


@server.custom_route("/ok", methods=["GET"])
async def ok(request: Request) -> PlainTextResponse:
    """Answer once the server is ready."""
    return PlainTextResponse("ok")


def main(arguments: list[str]) -> None:
    """Serve until the end."""
    if path := os.environ.get("MCP_SERVER_PIDS"):
        with Path(path).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if arguments:
        server.run("streamable-http", port=int(arguments[0]))
    else:
        server.run()


if __name__ == "__main__":
    main(sys.argv[1:])

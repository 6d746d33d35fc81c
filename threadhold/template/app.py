"""Host app: your own routes next to the LangGraph API. Run it with `uvicorn app:app`."""

import os
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from threadhold import LangGraphPlatform

HERE = Path(__file__).parent


async def hello(request: Request) -> JSONResponse:
    """Answer on a route of your own."""
    return JSONResponse({"hello": "world"})


platform = LangGraphPlatform(
    HERE / "langgraph.json",
    database_url=os.environ.get("DATABASE_URL", f"sqlite:///{HERE}/data/threadhold.db"),
)
app = Starlette(
    routes=[Route("/hello", hello), Mount("/", app=platform)],
    lifespan=platform.lifespan,
)

"""A project with the folder names of LangGraph's templates and of this project."""

import json
from pathlib import Path

# Packages of the project, each with a module that the graph imports.
FOLDERS = ("my_agent/utils", "server", "hooks", "tests", "utils")

GRAPH = """
from typing import TypedDict

from hooks.names import NAME as hooks
from my_agent.utils.names import NAME as my_agent
from server.names import NAME as server
from tests.names import NAME as tests
from utils.names import NAME as utils
from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    names: list[str]


def say(state: State) -> State:
    return {"names": [my_agent, server, hooks, tests, utils]}


graph = StateGraph(State).add_node(say).add_edge(START, "say").add_edge("say", END).compile()
"""

HOST = """
import os

from starlette.applications import Starlette
from starlette.routing import Mount
from threadhold import LangGraphPlatform

platform = LangGraphPlatform(
    "langgraph.json",
    database_url=os.environ["DATABASE_URL"],
    redis_url=os.environ.get("REDIS_URL"),
)
app = Starlette(routes=[Mount("/", app=platform)], lifespan=platform.lifespan)
"""


def make_project(folder: Path) -> Path:
    """Write the project, whose host app is `server.app:app`, and return its folder."""
    for name in FOLDERS:
        package = folder / name
        package.mkdir(parents=True)
        (package / "names.py").write_text(f"NAME = 'the {name} of the project'\n")
        (package / "__init__.py").touch()
    (folder / "my_agent" / "__init__.py").touch()
    (folder / "my_agent" / "agent.py").write_text(GRAPH)
    (folder / "server" / "app.py").write_text(HOST)
    # `python -m server` would run this file in this folder.
    (folder / "server" / "__main__.py").write_text("raise SystemExit('the server of the project')")
    config = {"dependencies": ["."], "graphs": {"agent": "./my_agent/agent.py:graph"}}
    (folder / "langgraph.json").write_text(json.dumps(config))
    return folder


def names() -> list[str]:
    """Return the graph's answer if each import found the project's own package."""
    return [f"the {name} of the project" for name in FOLDERS]

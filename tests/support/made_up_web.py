"""A graph that makes the web search of its server find the companies of a file.

A server that has it among its graphs asks no search engine.
"""

import json
import os
from pathlib import Path
from typing import Any

import ddgs

from my_agent.icp_finder.graph import graph

__all__ = ["RESULTS", "graph"]

RESULTS = "MADE_UP_WEB"
"""Name of the variable with the path of the file: a JSON list of results."""


class _Engine:
    """What the finder uses of `ddgs.DDGS`."""

    def __init__(self, **_: Any) -> None:
        """Take the options of the real one."""

    def text(self, _query: str, **_: Any) -> Any:
        return json.loads(Path(os.environ[RESULTS]).read_text())


ddgs.DDGS = _Engine  # type: ignore[misc, assignment]

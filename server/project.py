"""Project: detect our identity and graphs in a served langgraph.json, and check their settings."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import hooks
import my_agent
from my_agent.settings import EnvironmentSettings
from threadhold.errors import RuntimeSqlError

IDENTITY = (
    "threadhold.auth:auth",
    "hooks.auth:auth",
    f"{Path(hooks.__file__).resolve().with_name('auth.py')}:auth",
)
# Settings class of each graph, in the graph's `settings.py`.
SETTINGS = {
    "chat": "ChatSettings",
    "diagnosis": "DiagnosisSettings",
    "icp_finder": "IcpSettings",
    "research": "ResearchSettings",
    "tutor": "TutorSettings",
}


class BadSetting(RuntimeSqlError):
    """A setting of a graph has an invalid value."""


def has_our_identity(auth: Mapping[str, Any]) -> bool:
    """Return whether the `auth` section names the authentication of the library, or that of `hooks`."""
    return auth.get("path") in IDENTITY


def is_our_graph(graph: str, spec: Any) -> bool:
    """Return whether `spec`, such as `/path/graph.py:graph`, is `my_agent`'s graph of that id."""
    target = str(spec["path"] if isinstance(spec, dict) else spec).rpartition(":")[0]
    package = Path(my_agent.__file__).resolve().parent / graph
    files = {str(package / name) for name in ("graph.py", "__init__.py")}
    return target in files | {f"my_agent.{graph}", f"my_agent.{graph}.graph"}


def check_graphs(graphs: Mapping[str, Any]) -> None:
    """Refuse settings of our graphs with which each of their runs would fail.

    Args:
        graphs: The section `graphs` of the project's configuration.

    Raises:
        BadSetting: a variable is invalid; the message names it.
    """
    for graph, name in SETTINGS.items():
        if is_our_graph(graph, graphs.get(graph)):
            # Only for served graphs, because this imports the graph.
            _check(getattr(import_module(f"my_agent.{graph}.settings"), name))


def _check(settings: type[EnvironmentSettings]) -> None:
    try:
        settings.from_environment()
    except ValidationError as error:
        problems = [
            f"{settings.PREFIX}{each['loc'][0]}".upper() + f": {each['msg']}"
            for each in error.errors()
        ]
        raise BadSetting("\n".join(problems)) from error

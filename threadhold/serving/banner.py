"""The banner: what a terminal shows of a server that has started."""

import logging
import os
import sys

from langgraph_runtime_sql.database.url import database_path, is_postgres, shown
from threadhold.config_file import ConfigFile
from threadhold.host import prefix
from threadhold.settings import Settings

logger = logging.getLogger(__name__)


def base_url(project: ConfigFile, host: str, port: int) -> str:
    """The address of a project's API, as somebody on this machine reaches it."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    name = f"[{reached}]" if ":" in reached else reached
    return f"http://{name}:{port}{prefix(project)}"


def show(settings: Settings, project: ConfigFile, host: str, port: int, processes: int = 1) -> None:
    """Say where the server answers: as a banner on a terminal, else as one line of the log.

    Args:
        settings: The server's settings.
        project: What is served.
        host: Address it listens on.
        port: Port it listens on.
        processes: How many share the port.
    """
    base, url = base_url(project, host, port), settings.database_url
    where = shown(url) if is_postgres(url) else str(database_path(url))
    if not sys.stdout.isatty():
        fields = {"url": base, "database": where, "pid": os.getpid(), "processes": processes}
        logger.info("Serving", extra=fields)
        return
    rows = [
        ("API", base),
        ("Docs", f"{base}/docs"),
        ("Prefix", prefix(project) or "/"),
        ("Graphs", ", ".join(project.graphs)),
        ("Database", where),
        *([("Processes", str(processes))] if processes > 1 else []),
        ("Stop", "Ctrl+C"),
    ]
    print("\n".join(f"  {name:10}{value}" for name, value in rows), flush=True)

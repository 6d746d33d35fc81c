"""Banner: print the addresses of a started server."""

import logging
import os
import sys

from langgraph_runtime_sql.database.url import database_path, is_postgres, shown
from threadhold.config_file import ConfigFile
from threadhold.settings import Settings

logger = logging.getLogger(__name__)


def base_url(project: ConfigFile, host: str, port: int) -> str:
    """Return the URL of a project's API for clients on this machine."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    name = f"[{address}]" if ":" in address else address
    return f"http://{name}:{port}{project.mount_prefix}"


def show(settings: Settings, project: ConfigFile, host: str, port: int, processes: int = 1) -> None:
    """Print the banner on a terminal, or write one log line elsewhere.

    Args:
        settings: The server's settings.
        project: The project that it serves.
        host: Address that it listens on.
        port: Port that it listens on.
        processes: Number of processes that share the port.
    """
    base, url = base_url(project, host, port), settings.database_url
    where = shown(url) if is_postgres(url) else str(database_path(url))
    if not sys.stdout.isatty():
        fields = {"url": base, "database": where, "pid": os.getpid(), "processes": processes}
        logger.info("Serving", extra=fields)
        return
    rows = [
        ("API", base),
        *([("Docs", f"{base}/docs")] if settings.docs_page else []),
        ("Prefix", project.mount_prefix or "/"),
        ("Graphs", ", ".join(project.graphs)),
        ("Database", where),
        *([("Processes", str(processes))] if processes > 1 else []),
        ("Stop", "Ctrl+C"),
    ]
    print("\n".join(f"  {name:10}{value}" for name, value in rows), flush=True)

"""Address: which source a path or URL names."""

from contextlib import AbstractContextManager
from pathlib import Path

from langgraph_runtime_sql.database.url import database_path, is_postgres
from threadhold.imports import dev_files, platform_api, saver_tables
from threadhold.imports.errors import CannotImport
from threadhold.imports.sources import Source


def opened(address: str) -> AbstractContextManager[Source]:
    """Open the source that an address names.

    Args:
        address: A folder `.langgraph_api` or the one that contains it; a SQLite file or `sqlite:///` URL; a
            `postgresql://` URL; or the `http(s)://` URL of a server.

    Raises:
        CannotImport: there is nothing to read at the address.
    """
    if address.startswith(("http://", "https://")):
        return platform_api.opened(address)
    if is_postgres(address):
        return saver_tables.opened_postgres(address)
    path = database_path(address) if address.startswith("sqlite:") else Path(address)
    if path.is_dir():
        return dev_files.opened(path)
    if not path.is_file():
        raise CannotImport(
            f"There is nothing at {address}. Name the folder `.langgraph_api` of `langgraph dev`, a SQLite "
            "file, a postgresql:// URL, or the http(s):// URL of a server"
        )
    return saver_tables.opened_sqlite(path)

"""Administration: back up, examine and repair a database, and write beside a server."""

from langgraph_runtime_sql.database.shared_lock import shared_lock
from threadhold.admin.beside import beside_server, tables_beside_server

__all__ = ["beside_server", "shared_lock", "tables_beside_server"]

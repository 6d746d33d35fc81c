"""Compact: store the checkpoints of older versions in less space (`threadhold compact`)."""

from dataclasses import dataclass, field
from functools import partial

from langgraph_runtime_sql import checkpoint
from langgraph_runtime_sql.checkpoint import compaction
from langgraph_runtime_sql.checkpoint.compaction import Compacted, Cursor
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.url import is_postgres
from langgraph_runtime_sql.progress import Progress, Report, ignore
from threadhold.admin.beside import opened_beside_server, vacuum


@dataclass
class Result:
    """What a compaction has done.

    Attributes:
        threads: The number of threads with values that were stored again.
        values: Those values, and their bytes before and after.
        parts: The number of parts that no checkpoint referred to; they were deleted.
    """

    threads: int = 0
    values: Compacted = field(default_factory=Compacted)
    parts: int = 0


def compact(url: str, report: Report = ignore, *, shrink: bool = False) -> Result:
    """Store old checkpoints as today's saver does, and free unused parts, in small transactions.

    Servers of this version may run. After an interruption the same call continues.

    Args:
        url: The database. On Postgres no older server may be using it: it could not read the result.
        report: Gets the progress.
        shrink: Whether a SQLite file is written again without its free pages; other writes wait.

    Raises:
        DatabaseInUse: a move reads from or writes to the database.
        CannotDecrypt: a checkpoint is encrypted with a key that is not configured.
        sqlite3.OperationalError: a server kept the file locked while it was to shrink.
    """
    result = Result()
    with opened_beside_server(url) as database:
        database.write_sync(compaction.enable)
        threads = database.read_sync(checkpoint.thread_ids)
        for done, thread_id in enumerate(threads, 1):
            _compact_thread(database, thread_id, result)
            report(Progress("Compacting checkpoints", done, len(threads), "threads"))
    if shrink and not is_postgres(url):
        report(Progress("Shrinking the file", 0, 0))
        vacuum(url)
    return result


def _compact_thread(database: Database, thread_id: str, result: Result) -> None:
    cursor: Cursor | None = Cursor()
    changed = 0
    while cursor is not None:
        done, cursor = database.write_sync(
            partial(compaction.compact, thread_id=thread_id, cursor=cursor)
        )
        changed += done.values
        if done.values:
            result.values = result.values.plus(done)
    result.threads += changed > 0
    result.parts += database.write_sync(partial(checkpoint.free_parts, thread_id=thread_id))

"""A migration script after the newest one, for tests of migrations."""

from pathlib import Path
from typing import Any

from pytest import MonkeyPatch

from langgraph_runtime_sql import migrations

REVISION = "9001"
_TEXT = f'''
"""Add a column; on Postgres first an index."""

import os
import signal

from alembic import op

revision, down_revision = "{REVISION}", "{migrations.HEAD}"


def prepare(raw):
    from langgraph_runtime_sql.database.postgres import lock_wait

    index = "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS uq_thread_labels_next"
    lock_wait.concurrently(raw, index + " ON thread_labels (thread_id, value)")
    if "KILLED_MIGRATION" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)


def upgrade():
    op.execute("ALTER TABLE thread_labels ADD COLUMN next TEXT DEFAULT 'new'")
'''


def add(folder: Path, patch: MonkeyPatch) -> None:
    """Make the script the newest one, for databases that were created before.

    Args:
        folder: Where the script is written.
        patch: Undoes it.
    """
    written = folder / f"{REVISION}_next.py"
    written.write_text(_TEXT)
    plain = migrations._config

    def config() -> Any:
        found = plain()
        found.set_main_option("path_separator", "os")
        there = f"{Path(migrations.__file__).parent / 'versions'}:{folder}"
        found.set_main_option("version_locations", there.replace("%", "%%"))
        return found

    patch.setattr(migrations, "_config", config)
    patch.setattr(migrations, "HEAD", REVISION)

"""Move: copy a database from a SQLite file to Postgres.

The move reads all rows three times. It checks that Postgres can hold them, copies them in
batches with the progress stored in the target, and compares both sides.
"""

from langgraph_runtime_sql.progress import Progress
from threadhold.move.errors import MoveFailed, MoveFinished, MoveRefused, Unmovable
from threadhold.move.mover import Moved, move
from threadhold.move.schema import Schema, runtime_schema, schema_of

__all__ = [
    "MoveFailed",
    "MoveFinished",
    "MoveRefused",
    "Moved",
    "Progress",
    "Schema",
    "Unmovable",
    "move",
    "runtime_schema",
    "schema_of",
]

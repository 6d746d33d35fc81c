"""Moving a database from a SQLite file to Postgres, once and for good.

Three passes over the rows: what Postgres cannot hold is found before anything is copied; what
is copied is committed in batches, with how far it has come; then both sides are compared.
"""

from threadhold.move.errors import MoveFailed, MoveFinished, MoveRefused, Unmovable
from threadhold.move.mover import Moved, Progress, move
from threadhold.move.schema import Schema, runtime_schema

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
]

"""Operations: what `langgraph_api` calls, a class for each kind of thing."""

from langgraph_runtime_sql.ops.assistants import Assistants
from langgraph_runtime_sql.ops.crons import Crons
from langgraph_runtime_sql.ops.runs import Runs
from langgraph_runtime_sql.ops.threads import Threads

__all__ = ["Assistants", "Crons", "Runs", "Threads"]

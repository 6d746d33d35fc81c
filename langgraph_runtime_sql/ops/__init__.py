"""Operations: what `langgraph_api` calls, a class for each kind of thing."""

from langgraph_runtime_sql.ops.assistants.assistants import Assistants
from langgraph_runtime_sql.ops.crons.crons import Crons
from langgraph_runtime_sql.ops.runs.runs import Runs
from langgraph_runtime_sql.ops.threads.threads import Threads

__all__ = ["Assistants", "Crons", "Runs", "Threads"]

"""Effects: let nodes and tools call other systems once, although runs are executed again.

result = await effects.once(tool_call_id, charge)
"""

from langgraph_runtime_sql.effects import (
    NOT_DONE,
    EffectUnknown,
    KeyReused,
    NotDone,
    NotInRun,
    once,
)

__all__ = ["NOT_DONE", "EffectUnknown", "KeyReused", "NotDone", "NotInRun", "once"]

"""Graph `diagnosis`: START -> intake -> gather -> investigate -> conclude -> END.

If evidence is missing, `investigate` goes to `ask`, and `wait` interrupts the run; `intake` reads
the answer. A message without data goes from `intake` to `answer`, or to `ask_first`.
"""

from langgraph.graph import END, START, StateGraph

from my_agent.context import Context
from my_agent.diagnosis.nodes import (
    after_intake,
    after_investigate,
    answer,
    ask,
    ask_first,
    conclude,
    gather,
    intake,
    investigate,
    wait,
)
from my_agent.diagnosis.state import Input, State

# langgraph accepts nodes with both config and runtime, but its types do not.
graph = (
    StateGraph(State, context_schema=Context, input_schema=Input)
    .add_node(intake)
    .add_node(gather)
    .add_node(investigate)
    .add_node(ask)
    .add_node(ask_first)
    .add_node(wait)
    .add_node(conclude)
    .add_node(answer)
    .add_edge(START, "intake")
    .add_conditional_edges("intake", after_intake)
    .add_edge("gather", "investigate")
    .add_conditional_edges("investigate", after_investigate)
    .add_edge("ask", "wait")
    .add_edge("ask_first", "wait")
    .add_edge("wait", "intake")
    .add_edge("conclude", END)
    .add_edge("answer", END)
    .compile(name="diagnosis")
)

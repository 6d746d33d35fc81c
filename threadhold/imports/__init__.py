"""Imports: bring threads, states, items, assistants and crons of other LangGraph servers here (`threadhold import`).

`address.opened` opens what an address names: the files of `langgraph dev`, the tables of langgraph's savers,
or a server over its API. `importing.run` reads it, and `target` writes it.
"""

from threadhold.imports.errors import CannotImport
from threadhold.imports.importing import Plan, run
from threadhold.imports.report import Report

__all__ = ["CannotImport", "Plan", "Report", "run"]

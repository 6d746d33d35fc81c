"""Parsing: read what users and websites send in processes that can be killed.

A parser may run for hours, take all memory or crash, and holds the interpreter meanwhile. So files,
pages, feeds and pasted data are parsed in worker processes with limits of time and memory. A worker
that exceeds them is killed and replaced. Tenants take turns, and one never has all workers.

What stays in the server's process is short or has patterns of linear time:
`tests/unit/repository/test_patterns.py` checks every pattern.
"""

from my_agent.parsing.pool import SECONDS, Pool, call, run, stop
from my_agent.parsing.unreadable import Unreadable

__all__ = ["SECONDS", "Pool", "Unreadable", "call", "run", "stop"]

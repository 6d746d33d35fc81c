"""A conversation with one model: the smallest of the graphs."""

from my_agent.chat.graph import graph

__all__ = ["graph"]

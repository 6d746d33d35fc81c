"""A conversation over documents: follow-up questions, and answers that say what they rest on."""

from my_agent.chat.graph import graph

__all__ = ["graph"]

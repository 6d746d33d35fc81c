"""Graph `chat`: answer questions about documents, and follow-up questions, with citations."""

from my_agent.chat.graph import graph

__all__ = ["graph"]

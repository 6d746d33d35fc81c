"""A conversation in English, with the mistakes in it corrected."""

from my_agent.tutor.graph import graph

__all__ = ["graph"]

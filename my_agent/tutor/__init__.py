"""Graph `tutor`: talk with a learner of English and correct the learner's mistakes."""

from my_agent.tutor.graph import graph

__all__ = ["graph"]

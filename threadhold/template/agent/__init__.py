"""The agent: a graph that LangGraph serves."""

"""Measures what the runtime owes, beside stock `langgraph dev` and a bare graph, in one run."""

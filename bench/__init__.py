"""Benchmarks: the server next to stock `langgraph dev` and a bare graph, and the quality of searches."""

"""Benchmark: compare the server with stock `langgraph dev` and with a bare graph in one run."""

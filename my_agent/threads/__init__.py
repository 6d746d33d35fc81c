"""Threads: the names and rules that the policy, the graphs and the server share about a thread."""

"""Nodes of the graph `research`: the workers, and the first and last node of a run."""

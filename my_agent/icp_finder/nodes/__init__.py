"""Nodes of the graph `icp_finder`, in the order of the graph."""

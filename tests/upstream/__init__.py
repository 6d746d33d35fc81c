"""Upstream: the tests of langgraph, its prebuilt agents, its checkpoint suite and its SDK, on our saver and server."""

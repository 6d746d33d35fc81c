"""Connectors: tools of MCP servers that the deployment names. They read, and change nothing."""

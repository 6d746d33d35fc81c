"""The graphs, a package each, and what they share."""

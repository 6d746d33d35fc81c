"""The graphs, one package each, and the modules that they share."""

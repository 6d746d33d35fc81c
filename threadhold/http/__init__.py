"""HTTP: what stands between a client and the stock application."""

"""HTTP: the middleware between a client and the stock application."""

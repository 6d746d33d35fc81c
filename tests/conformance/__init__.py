"""One scenario, two servers: stock ``langgraph dev`` and ours must answer alike."""

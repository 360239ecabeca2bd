"""The dashboard: what a model earns and learns, one page a model, drawn by the server."""

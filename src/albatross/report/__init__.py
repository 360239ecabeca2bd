"""From results to figures and tables; nothing here runs an experiment."""

"""Policies whose actions are the vectors of the unit ball."""

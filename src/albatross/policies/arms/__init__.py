"""Policies for finitely many arms with contexts, biases, or neither."""

"""Policies that choose among other policies."""

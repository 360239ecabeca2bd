"""Figures, drawn from stored tables: one file per family of panels, both for print and for the page."""

"""Algebra: products with vectors, V's eigenbasis for the ball, tridiagonal forms."""

"""Linear algebra: products with vectors, rank-one updates of an eigenbasis, tridiagonal forms."""

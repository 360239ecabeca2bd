"""Least squares on samples that are added one by one; says why if the samples do not determine a solution."""

from __future__ import annotations

import numpy as np

from albatross.compiling import compiled

FOUND, FEW, SINGULAR = 0, 1, 2  # what became of least squares
WHY_NOT = {FEW: "fewer samples than coordinates", SINGULAR: "the Gram matrix does not factorise"}


@compiled
def add_sample(gram, cross, x, reward, n):
    """Add n plays of x with total reward `reward`."""
    for i in range(x.size):
        cross[i] += reward * x[i]
        weight = n * x[i]
        for j in range(x.size):
            gram[i, j] += weight * x[j]


@compiled
def least_squares(gram, cross, samples, min_norm):
    """Return theta_hat, the ratio of the Gram matrix's extreme eigenvalues, and FOUND or why there is no theta_hat.

    With `min_norm` there always is one: if the samples leave it open, the shortest, up to rounding.
    """
    dim = cross.size
    spectrum = np.linalg.eigvalsh(gram)
    conditioning = max(spectrum[0], 0.0) / max(spectrum[dim - 1], 1e-300)
    reason = FOUND
    if samples < dim:
        reason = FEW
    elif conditioning <= dim * 2.0**-52:
        reason = SINGULAR
    jitter = 0.0
    if reason != FOUND and min_norm:
        jitter, reason = 1e-10 * max(spectrum[dim - 1], 1e-300), FOUND
    if reason != FOUND:
        return np.zeros(dim), conditioning, reason
    return np.linalg.solve(gram + jitter * np.eye(dim), cross), conditioning, reason


@compiled
def standard_errors(gram):
    """(d,) of least squares on this Gram matrix, per unit of the noise's standard deviation.

    >>> standard_errors(np.diag(np.array([4.0, 25.0])))
    array([0.5, 0.2])
    """
    return np.sqrt(np.diag(np.linalg.inv(gram)))

"""HierTS: Thompson sampling for users with a common prior mean (Hong, Kveton, Zaheer and Ghavamzadeh 2022).

A user's w ~ N(f, Sigma), f ~ N(0, Sigma_f), and rewards are <z, w> plus noise. Sigma, Sigma_f and the noise are given.
f is drawn from its posterior under the rewards of all users, then w from the user's own posterior given f.
"""

from __future__ import annotations

import numpy as np


class HierTS:
    """All users of one population; rows z are [e_arm; x]."""

    def __init__(
        self, n_users: int, *, spread: np.ndarray, prior: np.ndarray, noise_sd: float, seed: np.random.SeedSequence
    ) -> None:
        p = len(prior)
        self.root = np.linalg.cholesky(spread + 1e-9 * np.eye(p))
        self.noise_sd, self.rng = noise_sd, np.random.default_rng(seed)
        self.S, self.m = np.zeros((n_users, p, p)), np.zeros((n_users, p))  # sums of zz' and zy, in units of the noise
        self.A_own, self.r_own = np.zeros((n_users, p, p)), np.zeros((n_users, p))  # what each says of f
        self.A, self.r = np.diag(1.0 / prior), np.zeros(p)

    def select(self, users: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the arms of a batch (m,), for rows (m, K, p)."""
        lower = np.linalg.cholesky(self.A)
        mean = np.linalg.solve(self.A, self.r)
        normals = self.rng.standard_normal((2, len(users), len(mean)))
        f = mean + np.linalg.solve(lower.T, normals[0].T).T
        S, F = self.S[users], self.root
        inner = np.linalg.cholesky(np.eye(len(mean)) + F.T @ S @ F)
        half = np.linalg.solve(inner, np.broadcast_to(F.T, S.shape))  # Q = half' half
        left = self.m[users] - np.einsum("uij,uj->ui", S, f)
        delta = np.einsum("uji,uj->ui", half, np.einsum("uij,uj->ui", half, left) + normals[1])
        return np.einsum("ukp,up->uk", rows, f + delta).argmax(axis=1)

    def update(self, users: np.ndarray, rows: np.ndarray, rewards: np.ndarray) -> None:
        """Learn the rewards of a batch, for the rows that were played (m, p)."""
        z, y = rows / self.noise_sd, rewards / self.noise_sd
        np.add.at(self.S, users, z[:, :, None] * z[:, None])
        np.add.at(self.m, users, z * y[:, None])
        users = np.unique(users)
        S, m, F = self.S[users], self.m[users], self.root
        inner = np.linalg.cholesky(np.eye(S.shape[1]) + F.T @ S @ F)
        half = np.linalg.solve(inner, np.broadcast_to(F.T, S.shape) @ S)
        A = S - half.transpose(0, 2, 1) @ half
        of_m = np.linalg.solve(inner, (m @ F)[:, :, None])
        r = m - (half.transpose(0, 2, 1) @ of_m)[:, :, 0]
        self.A += (A - self.A_own[users]).sum(axis=0)
        self.r += (r - self.r_own[users]).sum(axis=0)
        self.A_own[users], self.r_own[users] = A, r

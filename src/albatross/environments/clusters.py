"""Clusters: rated rows as a bandit. Each cluster of rows is an arm; in each round, it offers one of its rows.

Ghosh, Sankararaman and Ramchandran (2021), Section 6.2, use centroids as contexts. A context that never changes cannot
be distinguished from a bias, so that problem is ill-posed; and a row's own rating brings no new noise when the row
returns. Hence there are three modes. By default (`rewards="bootstrap"`), contexts are rows, centred within their arm
and whitened; a joint least-squares fit of biases and theta on all rows defines the truth; and the noise is drawn from
the arm's residuals. Contexts and noise are then real, the linear model holds and the norm is known.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from albatross import checks
from albatross.protocol import Rounds, begin, describe, draw

CONTEXTS = ("row", "centroid")
REWARDS = ("bootstrap", "rating")
_LEAST_EIGENVALUE = 0.1  # of a kept component, relative to their mean


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Clusters:
    """Clusters of rated rows as arms, the largest first. Create one with `Clusters.from_rows`.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((60, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 20, axis=0)
    >>> ratings = rows[:, 0] + 0.1 * rng.standard_normal(60)
    >>> Clusters.from_rows(rows, ratings, n_arms=3)
    Clusters(bootstrap: 3 arms of 20 to 20 rows, 2 features, norm 0.898, noise 0.0938)
    """

    contexts: np.ndarray  #: (n, d) context of every row, ordered by arm
    means: np.ndarray  #: (n,) expected reward of every row
    residuals: np.ndarray  #: (n,) noise, drawn from those of the arm; 0 if a row's rating is its reward
    starts: np.ndarray  #: (K + 1,) index of the first row of each arm
    theta: np.ndarray  #: (d,) parameter of the least-squares fit
    biases: np.ndarray  #: (K,) biases of the fit
    eigenvalues: np.ndarray  #: (d,) of the contexts' covariance within arms
    mode: str  #: "bootstrap", "rating" or "centroid"

    @property
    def n_arms(self) -> int:
        return len(self.starts) - 1

    @property
    def dim(self) -> int:
        return int(self.contexts.shape[1])

    @property
    def sizes(self) -> np.ndarray:
        """(K,) number of rows of each arm."""
        return np.diff(self.starts)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise within arms, pooled over all rows."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    def __repr__(self) -> str:
        return (
            f"Clusters({self.mode}: {self.n_arms} arms of {self.sizes.min()} to {self.sizes.max()} rows, "
            f"{self.dim} features, norm {np.linalg.norm(self.theta):.3g}, noise {self.sigma:.3g})"
        )

    def report(self) -> dict[str, Any]:
        """Summarise the problem: sizes, noise of every arm, eigenvalues, norm."""
        noise = [float(np.sqrt(np.mean(part**2))) for part in np.split(self.residuals, self.starts[1:-1])]
        return {
            "mode": self.mode,
            "sizes": self.sizes,
            "noise": np.array(noise),
            "sigma": self.sigma,
            "eigenvalues": self.eigenvalues,
            "norm": float(np.linalg.norm(self.theta)),
            "well_posed": self.mode == "bootstrap",
        }

    @classmethod
    def from_rows(
        cls,
        features: Any,
        ratings: Any,
        *,
        n_arms: int,
        columns: int | None = None,
        rows: int | None = None,
        contexts: str = "row",
        rewards: str = "bootstrap",
        min_rows: int = 5,
        seed: int = 0,
    ) -> Clusters:
        """Sample rows and columns, standardise the columns, and form the arms by k-means.

        Clusters of fewer than `min_rows` rows are merged into the nearest others, so there may be fewer arms than
        `n_arms`.
        """
        features = checks.finite_array("features", features, (None, None))
        ratings = checks.finite_array("ratings", ratings, (len(features),))
        checks.whole("n_arms", n_arms, least=2)
        checks.one_of("contexts", contexts, CONTEXTS)
        checks.one_of("rewards", rewards, REWARDS)
        checks.whole("min_rows", min_rows, least=1)
        checks.seed("seed", seed)
        rng = np.random.default_rng(seed)
        features, ratings = _some_rows(features, ratings, rows, rng)
        if len(features) < n_arms:
            raise ValueError(f"{len(features)} rows are too few for n_arms={n_arms} clusters")
        standard = _standardised(_some_columns(features, columns, rng))
        arms = _clusters(standard, n_arms, min_rows, seed)
        order = np.argsort(arms, kind="stable")
        standard, ratings, arms = standard[order], ratings[order], arms[order]
        starts = np.searchsorted(arms, np.arange(arms[-1] + 2))
        biases = np.add.reduceat(ratings, starts[:-1]) / np.diff(starts)
        if contexts == "centroid":
            return cls._of_centroids(standard, ratings, arms, starts, biases)
        white, eigenvalues = _whitened(standard, arms, starts)
        theta = np.linalg.lstsq(white, ratings - biases[arms], rcond=None)[0]
        linear = biases[arms] + white @ theta
        bootstrap = rewards == "bootstrap"
        return cls(
            contexts=white,
            means=linear if bootstrap else ratings,
            residuals=ratings - linear if bootstrap else np.zeros(len(ratings)),
            starts=starts,
            theta=theta,
            biases=biases,
            eigenvalues=eigenvalues,
            mode=rewards,
        )

    @classmethod
    def _of_centroids(
        cls, standard: np.ndarray, ratings: np.ndarray, arms: np.ndarray, starts: np.ndarray, biases: np.ndarray
    ) -> Clusters:
        """The paper's version: one fixed context per arm; theta is the regression of mean ratings on centroids."""
        centroids = np.add.reduceat(standard, starts[:-1], axis=0) / np.diff(starts)[:, None]
        design = np.column_stack([np.ones(len(centroids)), centroids])
        fit = np.linalg.lstsq(design, biases, rcond=None)[0]
        return cls(
            contexts=centroids[arms],
            means=biases[arms],
            residuals=ratings - biases[arms],
            starts=starts,
            theta=fit[1:],
            biases=np.full(len(biases), fit[0]),
            eigenvalues=np.linalg.eigvalsh(np.cov(centroids, rowvar=False, bias=True).reshape(centroids.shape[1], -1)),
            mode="centroid",
        )


def _some_rows(features: np.ndarray, ratings: np.ndarray, rows: int | None, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    if rows is None:
        return features, ratings
    checks.whole("rows", rows, least=1)
    if rows > len(features):
        raise ValueError(f"rows={rows} exceeds the number of rows, {len(features)}")
    chosen = np.sort(rng.choice(len(features), rows, replace=False))
    return features[chosen], ratings[chosen]


def _some_columns(features: np.ndarray, columns: int | None, rng: Any) -> np.ndarray:
    """Sample columns that are not constant; warn about those that are."""
    varying = np.flatnonzero(np.ptp(features, axis=0) > 0.0)
    constant = features.shape[1] - varying.size
    if not varying.size:
        raise ValueError(
            f"features must vary, but all {features.shape[1]} columns are constant in {len(features)} rows"
        )
    if constant:
        warnings.warn(f"{constant} of {features.shape[1]} columns are constant and were dropped", stacklevel=3)
    if columns is None:
        return features[:, varying]
    checks.whole("columns", columns, least=1)
    if columns > varying.size:
        raise ValueError(f"columns={columns} exceeds the number of columns that vary, {varying.size}")
    return features[:, np.sort(rng.choice(varying, columns, replace=False))]


def _standardised(features: np.ndarray) -> np.ndarray:
    features = features.astype(float)
    return (features - features.mean(axis=0)) / features.std(axis=0)


class _Fit(NamedTuple):
    """What k-means found."""

    labels: np.ndarray  # (n,)
    centres: np.ndarray  # (n_arms, d)


_FITS: dict[tuple[bytes, int, int], _Fit] = {}  # the last few: the same rows are often wanted in all three modes
_MOST_FITS = 12


def _k_means(standard: np.ndarray, n_arms: int, seed: int) -> _Fit:
    key = (hashlib.sha256(standard.tobytes()).digest(), n_arms, seed)
    found = _FITS.get(key)
    if found is None:
        from sklearn.cluster import KMeans  # slow to import, and part of the extra [lab]

        fitted = KMeans(n_arms, n_init=1, random_state=seed).fit(standard)
        found = _FITS[key] = _Fit(fitted.labels_, fitted.cluster_centers_)
        for oldest in list(_FITS)[:-_MOST_FITS]:
            _FITS.pop(oldest, None)
    return found


def _clusters(standard: np.ndarray, n_arms: int, min_rows: int, seed: int) -> np.ndarray:
    """(n,) the arm of every row, the largest arm first; small clusters are merged into the nearest large one."""
    fitted = _k_means(standard, n_arms, seed)
    sizes = np.bincount(fitted.labels, minlength=n_arms)
    large = np.flatnonzero(sizes >= min_rows)
    if large.size < 2:
        raise ValueError(
            f"n_arms={n_arms} is too many for {len(standard)} rows: {large.size} clusters have min_rows={min_rows} rows"
        )
    arms = fitted.labels.copy()
    homeless = np.flatnonzero(sizes[arms] < min_rows)
    if homeless.size:
        centres = fitted.centres[large]
        distances = ((standard[homeless][:, None, :] - centres) ** 2).sum(axis=2)
        arms[homeless] = large[np.argmin(distances, axis=1)]
        gone = int((sizes < min_rows).sum() - (sizes == 0).sum())
        warnings.warn(
            f"{gone} clusters of fewer than {min_rows} rows were merged ({homeless.size} rows), {large.size} remain",
            stacklevel=3,
        )
    sizes = np.bincount(arms, minlength=n_arms)
    rank = np.empty(n_arms, np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(n_arms)
    return rank[arms]


def _whitened(standard: np.ndarray, arms: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre rows within their arm and whiten them; return them and the eigenvalues of the kept components."""
    sizes = np.diff(starts)
    centroids = np.add.reduceat(standard, starts[:-1], axis=0) / sizes[:, None]
    centred = standard - centroids[arms]
    weighted = centred / np.sqrt(sizes[arms])[:, None]  # arms have equal weight, whatever their size
    values, basis = np.linalg.eigh(weighted.T @ weighted / len(sizes))
    kept = values >= _LEAST_EIGENVALUE * values.mean()
    if not kept.any() or values[-1] <= 0.0:
        raise ValueError("features must vary within the clusters, but they do not")
    return np.ascontiguousarray(centred @ (basis[:, kept] / np.sqrt(values[kept]))), values[kept]


class ClustersInstance(NamedTuple):
    env: Clusters


@begin.register
def begin_clusters(env: Clusters, rng: np.random.Generator) -> ClustersInstance:
    return ClustersInstance(env)


@draw.register
def draw_clusters(instance: ClustersInstance, chunk: Rounds, rng: np.random.Generator) -> None:
    env = instance.env
    table = chunk.means.shape
    row = env.starts[:-1] + (rng.random(table) * env.sizes).astype(np.int64)
    chunk.contexts[:] = env.contexts[row]
    chunk.means[:] = env.means[row]
    luck = env.starts[:-1] + (rng.random(table) * env.sizes).astype(np.int64)
    chunk.noise[:] = env.residuals[luck]


@describe.register
def describe_clusters(instance: ClustersInstance) -> dict[str, Any]:
    return {"theta": instance.env.theta, "biases": instance.env.biases}

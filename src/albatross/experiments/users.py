"""One bandit per user: news outlets are arms, stories are contexts, and users follow topics or outlets.

Ghosh, Sankararaman and Ramchandran (2021), Motivating Example: the mean reward of outlet i for user u is mu_{u,i} +
<alpha_i, theta_u>. Some users choose stories by topic (theta_u is long), others by outlet (theta_u = 0), and it is not
known in advance which. A common bound on the norm must suit the most topic-driven user; ALB-Norm finds the norm of each
user. With a set of ratings, arms are groups of similar items, contexts are the items' factors within their group, and
mu and theta of every user are fitted to the user's ratings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albatross import Fleet, datasets, policies
from albatross.datasets.files import fingerprint
from albatross.experiments.panel import Outcome, Panel, spread, switching
from albatross.normals import fill_normal
from albatross.parallel import progress_bar
from albatross.simulation import streams

SETTINGS: dict[str, Any] = {
    "users": 200,
    "n_arms": 10,
    "dim": 16,
    "rounds": 1_000,
    "largest_norm": 3.0,
    "without_interest": 0.25,  # share of users with theta = 0
    "noise_sd": 0.5**0.5,
    "epoch_length": 100,
    "delta": 0.1,
}


class Population(NamedTuple):
    """Users, and the items that they are shown."""

    thetas: np.ndarray  # (N, d)
    biases: np.ndarray  # (N, K)
    noise_sd: float
    items: list[np.ndarray] | None = None  # of each arm, the contexts (n, d) that it has; None for N(0, I)

    @property
    def norms(self) -> np.ndarray:
        """(N,)."""
        return np.linalg.norm(self.thetas, axis=1)


def generated(settings: Mapping[str, Any], rng: np.random.Generator) -> Population:
    """Return users with norms from 0 up to the largest."""
    n_users, n_arms, dim = settings["users"], settings["n_arms"], settings["dim"]
    norms = settings["largest_norm"] * rng.random(n_users)
    norms[rng.permutation(n_users)[: round(settings["without_interest"] * n_users)]] = 0.0
    directions = rng.standard_normal((n_users, dim))
    thetas = norms[:, None] * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    return Population(thetas, rng.uniform(-1.0, 1.0, (n_users, n_arms)), settings["noise_sd"])


def rated(settings: Mapping[str, Any], rng: np.random.Generator) -> Population:
    """Return users of a ratings set, with parameters fitted to their ratings, in units of the noise."""
    ratings, groups = _read(settings["path"], settings["sha256"], settings["dim"], settings["n_arms"])
    n_arms, dim = int(groups.max()) + 1, settings["dim"]
    counts = np.bincount(groups)
    centres = np.array([np.bincount(groups, column) / counts for column in ratings.factors.T]).T
    contexts = ratings.factors - centres[groups]
    contexts /= np.sqrt((contexts**2).mean(axis=0)).clip(min=1e-12)  # mean square 1, as for generated users
    busy = np.flatnonzero(np.diff(ratings.matrix.indptr) >= n_arms + dim)
    if busy.size == 0:
        raise ValueError(f"no user rated {n_arms + dim} items, as many as there are parameters to fit")
    rows = [ratings.matrix[[user]] for user in np.sort(rng.permutation(busy)[: settings["users"]])]
    designs = [np.hstack([np.eye(n_arms)[groups[row.indices]], contexts[row.indices]]) for row in rows]
    fitted, noise_sd = fit_users(designs, [row.data - row.data.mean() for row in rows])
    if not noise_sd > 0.0:
        raise ValueError("the ratings are explained without any noise: there is nothing to learn")
    items = [np.ascontiguousarray(contexts[groups == arm]) for arm in range(n_arms)]
    return Population(fitted[:, n_arms:] / noise_sd, fitted[:, :n_arms] / noise_sd, 1.0, items)


@lru_cache(maxsize=1)
def _read(path: str, sha256: str, dim: int, n_arms: int) -> tuple[datasets.Ratings, np.ndarray]:
    """Read a user's file and group its items, once for all populations; new content is read again."""
    from sklearn.cluster import KMeans

    ratings = datasets.read_ratings(Path(path), rank=dim)
    groups = KMeans(n_arms, n_init=5, random_state=0).fit_predict(ratings.factors)
    return ratings, np.unique(groups, return_inverse=True)[1]  # k-means may leave a group empty


def fit_users(designs: list[np.ndarray], values: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """Fit a ridge regression per user; return the fits and the remaining noise.

    All users share one ridge, the best on held-out ratings. Without held-out ratings, the few ratings of a user would
    be overfitted and every theta would be too long.
    """
    best = math.inf
    for strength in 2.0 ** np.arange(13):
        fitted, missed, squares, freedom = [], 0.0, 0.0, 0.0
        for design, ratings in zip(designs, values, strict=True):
            solved = np.linalg.solve(design.T @ design + strength * np.eye(design.shape[1]), design.T)
            leverages = np.einsum("ij,ji->i", design, solved)
            residuals = ratings - design @ (solved @ ratings)
            fitted.append(solved @ ratings)
            missed += float(((residuals / (1.0 - leverages)) ** 2).sum())
            squares += float((residuals**2).sum())
            freedom += float((1.0 - leverages).sum())
        if missed < best:
            best, found, noise_sd = missed, np.array(fitted), math.sqrt(squares / freedom)
    return found, noise_sd


def with_data(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the settings for a ratings file of the user, with as many arms and factors as its items allow."""
    matrix = datasets.read_ratings(path, rank=1).matrix
    n_users, n_items = matrix.shape
    dim = min(settings["dim"], n_users // 4, n_items // 4)
    factors = None
    while dim >= 1 and factors is None:
        try:
            factors = datasets.item_factors(matrix, rank=dim)[1]
        except ValueError:  # the ratings have not so many
            dim //= 2
    different = 0 if factors is None else len(np.unique(factors.round(9), axis=0))
    if different < 4:
        raise ValueError(f"{path} has {n_users} users and {n_items} items: too few for groups of items with factors")
    unused = ("largest_norm", "without_interest", "noise_sd")
    kept = {key: value for key, value in settings.items() if key not in unused}
    sizes = {"n_arms": min(settings["n_arms"], different // 2), "dim": dim}
    return {**kept, **sizes, "path": str(path), "sha256": fingerprint(path)}


def contenders(settings: Mapping[str, Any], population: Population) -> dict[str, Any]:
    """Return the policies; the norm bound is one that holds for every user."""
    given = {"sigma": population.noise_sd, "delta": settings["delta"]}
    bound = {"norm_bound": settings.get("largest_norm", float(population.norms.max()))}
    return {
        "alb-norm": policies.ALBNorm(epoch_length=settings["epoch_length"], **bound, **given),
        "oful-plus": policies.OFULPlus(**bound, **given),
        "osom": policies.OSOM(**bound, **given),
        "osom-scaled": policies.OSOM(test="norm", **bound, **given),
        "lints": policies.LinTS(sigma=population.noise_sd),
        "ucb": policies.UCB(**given),
        "albatross": policies.Albatross(),
    }


def fill_contexts(contexts: np.ndarray, population: Population, rng: np.random.Generator) -> None:
    """Draw the contexts of every user in one round."""
    if population.items is None:
        fill_normal(contexts, rng)
        return
    for arm, rows in enumerate(population.items):
        contexts[:, arm] = rows[rng.integers(len(rows), size=len(contexts))]


class Played(NamedTuple):
    """The results of every policy on one population."""

    norms: np.ndarray  # (N,)
    regret: dict[str, np.ndarray]  # (N,) of each user at the end
    estimates: np.ndarray  # (N,) the last norm bound of each user's ALB-Norm
    diagnostics: dict[str, list[dict[str, Any]]]  # of each user's OSOM


def play(settings: Mapping[str, Any], *, trial: int, seed: int, advance: Any) -> Played:
    """Every user plays one round at a time, with the same stories and the same noise for every policy."""
    rng = streams(seed, trial)[0]
    population = (rated if "path" in settings else generated)(settings, rng)
    n_users, n_arms = population.biases.shape
    shape, everybody = (n_users, n_arms, population.thetas.shape[1]), np.arange(n_users)
    luck = np.random.SeedSequence(seed, spawn_key=(trial, 1))  # the same for every policy, as in `simulate`
    fleets = {
        name: Fleet(policy, n_users=n_users, n_arms=n_arms, dim=shape[2], horizon=settings["rounds"], seed=luck)
        for name, policy in contenders(settings, population).items()
    }
    regret = {name: np.zeros(n_users) for name in fleets}
    contexts, noise = np.empty(shape), np.empty(shape[:2])
    for _ in range(settings["rounds"]):
        fill_contexts(contexts, population, rng)
        fill_normal(noise, rng)
        means = population.biases + np.einsum("ukd,ud->uk", contexts, population.thetas)
        best = means.max(axis=1)
        for name, fleet in fleets.items():
            choices = fleet.select(everybody, contexts)
            got = means[everybody, choices.arms]
            fleet.update(choices, got + population.noise_sd * noise[everybody, choices.arms])
            regret[name] += best - got
        advance(1)
    estimates = [fleets["alb-norm"].diagnostics(user)["norm_bounds"][-1] for user in range(n_users)]
    found = {
        name: [fleet.diagnostics(user) for user in range(n_users)]
        for name, fleet in fleets.items()
        if name.startswith("osom")
    }
    return Played(population.norms, regret, np.array(estimates), found)


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run one population per trial."""
    with progress_bar(trials * settings["rounds"], None) as advance:
        populations = [play(settings, trial=trial, seed=seed, advance=advance) for trial in range(trials)]
    totals = {name: np.array([each.regret[name].sum() for each in populations]) for name in populations[0].regret}
    norms = np.concatenate([each.norms for each in populations])
    entries = {}
    for name in totals:
        each_user = np.concatenate([each.regret[name] for each in populations])
        entries[name] = {
            "policy": name,
            **spread(totals[name]),
            **switching([found for each in populations for found in each.diagnostics.get(name, [])]),
            "per_user": {title: float(each_user[rows].mean()) for title, rows in thirds(norms).items() if rows.any()},
        }
    return Outcome(entries, table(populations))


def thirds(norms: np.ndarray) -> dict[str, np.ndarray]:
    """Group the users: those without interest, and the others by its strength."""
    low, high = norms.max() / 3.0, norms.max() * 2.0 / 3.0
    return {
        "norm 0": norms == 0.0,
        f"norm up to {low:.3g}": (norms > 0.0) & (norms <= low),
        f"norm {low:.3g} to {high:.3g}": (norms > low) & (norms <= high),
        f"norm above {high:.3g}": norms > high,
    }


def table(populations: list[Played]) -> dict[str, np.ndarray]:
    """Return one row per user and policy; the estimate is ALB-Norm's."""
    parts = [
        (name, number, user, norm, regret, estimate if name == "alb-norm" else np.nan)
        for number, each in enumerate(populations)
        for name in each.regret
        for user, (norm, regret, estimate) in enumerate(zip(each.norms, each.regret[name], each.estimates, strict=True))
    ]
    names = ("policy", "population", "user", "norm", "regret", "norm_bound")
    return dict(zip(names, map(np.array, zip(*parts, strict=True)), strict=True))


PANELS = {
    "users": Panel(
        "users",
        __name__,
        SETTINGS,
        run,
        trials=5,
        quick_trials=1,
        seconds=20.0,
    ),
}

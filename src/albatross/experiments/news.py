"""The motivating example: real headlines as the stories of news outlets, and readers of whom nothing is known.

Ghosh, Sankararaman and Ramchandran (2021), Section 1. In every round each outlet publishes a story, the same for all
readers; its context is the embedding of an Upworthy headline. The mean reward of outlet i for a reader is
mu_i + <alpha_i, theta>. Readers differ in the norm of theta, in its support and in their biases, and each has a bandit
of their own. There is a reader of every pair of a norm and a support.

ALB-Norm is given no bound on the norm: it estimates b_1 from its first 2 tau plays (Section 3.3). OFUL+ and OSOM are
given one bound that holds for all readers. ALB-Dim for finitely many arms (Section 5) knows no biases and needs nested
maps: the outlets' indicators come first and stand for the biases, topics follow in the order of the embedding, and the
support of a reader is the first few of them. LinUCB is inside, as the paper allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from albatross import datasets, policies, simulate
from albatross.environments import Recorded
from albatross.environments.noise import Noise, fill_noise
from albatross.experiments.nested import linucb
from albatross.experiments.panel import Outcome, Panel, spread, switching
from albatross.parallel import progress_bar
from albatross.runs import Run
from albatross.simulation import streams

SETTINGS: dict[str, Any] = {
    "n_arms": 10,  # outlets
    "dim": 16,  # topics: the first so many features of a headline
    "norms": [0.0, 0.3, 1.0, 3.0],
    "supports": [2, 4, 8, 16],
    "horizon": 30_000,
    "noise_sd": 0.5**0.5,
    "epoch_length": 100,
    "delta": 0.1,
    "points": 60,  # of a curve
}
ESTIMATORS = {"": "centered", "-paper": "paper"}  # the default reading, and the main text with the paper's estimator


class Reader(NamedTuple):
    """The parameters of a reader, unknown to all policies."""

    theta: np.ndarray  # (d,)
    biases: np.ndarray  # (K,)
    norm: float  # of theta
    support: int  # theta is 0 after so many topics


def readers(settings: Mapping[str, Any], rng: np.random.Generator) -> list[Reader]:
    """Draw one reader for each norm and support, with random signs in theta and random biases."""
    found = []
    for norm, support in product(settings["norms"], settings["supports"]):
        theta = np.zeros(settings["dim"])
        theta[:support] = norm / support**0.5 * rng.choice([-1.0, 1.0], support)
        found.append(Reader(theta, rng.uniform(-1.0, 1.0, settings["n_arms"]), norm, support))
    return found


def stories(settings: Mapping[str, Any], rng: np.random.Generator) -> np.ndarray:
    """Draw the stories (T, K, d) of all outlets, in features of mean 0 and variance 1.

    Headlines of one test tell one story. Every story belongs to a random outlet, which draws from its own headlines.
    """
    headlines = datasets.upworthy()
    features = headlines.features[:, : settings["dim"]]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    outlets = rng.integers(settings["n_arms"], size=headlines.queries.max() + 1)[headlines.queries]
    stocks = [np.flatnonzero(outlets == outlet) for outlet in range(settings["n_arms"])]
    return np.stack([features[rng.choice(stock, settings["horizon"])] for stock in stocks], axis=1)


def with_indicators(contexts: np.ndarray) -> np.ndarray:
    """Return (T, K, K + d): indicators of the outlets, whose coefficients are the biases, then the topics."""
    n_rounds, n_arms, _ = contexts.shape
    return np.concatenate([np.broadcast_to(np.eye(n_arms), (n_rounds, n_arms, n_arms)), contexts], axis=2)


def contenders(settings: Mapping[str, Any], norm: float) -> dict[str, Any]:
    """Return the policies that learn biases; only the oracle is given the reader's norm."""
    given = {"sigma": settings["noise_sd"], "delta": settings["delta"]}
    bound = max(settings["norms"])
    found: dict[str, Any] = {}
    for reading, estimator in ESTIMATORS.items():
        common = {**given, "estimator": estimator}
        found[f"alb-norm{reading}"] = policies.ALBNorm(epoch_length=settings["epoch_length"], **common)
        found[f"oful-plus{reading}"] = policies.OFULPlus(norm_bound=bound, **common)
        found[f"oracle{reading}"] = policies.OFULPlus(norm_bound=norm, **common)
    return {
        **found,
        "osom": policies.OSOM(norm_bound=bound, **given),
        "osom-scaled": policies.OSOM(test="norm", norm_bound=bound, **given),
        "lints": policies.LinTS(sigma=settings["noise_sd"]),
        "albatross": policies.Albatross(),
    }


def nested_contenders(settings: Mapping[str, Any], reader: Reader) -> dict[str, Any]:
    """Return ALB-Dim, and LinUCB on all features and on the reader's own map."""
    n_arms = settings["n_arms"]
    dims = (n_arms, *(n_arms + support for support in settings["supports"]))
    own = n_arms + (reader.support if reader.norm > 0.0 else 0)
    given = {"sigma": settings["noise_sd"], "delta": settings["delta"]}
    return {
        "alb-dim": policies.ALBDimFinite(dims=dims, inner="linucb", **given),
        "linucb-full": linucb(settings, dims[-1]),
        "linucb-oracle": policies.FirstFeatures(policy=linucb(settings, own), dim=own),
    }


def play(
    settings: Mapping[str, Any], reader: Reader, published: np.ndarray, noise: np.ndarray, *, seed: int
) -> dict[str, Run]:
    """Play every policy for one reader, with the same stories and the same noise."""
    means = reader.biases + published @ reader.theta
    rounds = {"horizon": settings["horizon"], "seed": seed, "record": settings["points"], "progress": False}
    plain = Recorded(contexts=published, means=means, noise=noise)
    marked = Recorded(contexts=with_indicators(published), means=means, noise=noise)
    return {
        **simulate(contenders(settings, reader.norm), plain, **rounds),
        **simulate(nested_contenders(settings, reader), marked, **rounds),
    }


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run one population per trial, each with its own stories."""
    blocks: list[dict[str, np.ndarray]] = []
    of_osom: dict[str, list[Any]] = {"osom": [], "osom-scaled": []}  # diagnostics, reader by reader
    n_kinds = len(settings["norms"]) * len(settings["supports"])
    with progress_bar(trials * n_kinds, None) as advance:
        for population in range(trials):
            rng = streams(seed, population)[0]
            published = stories(settings, rng)
            noise = np.empty(published.shape[:2])
            for number, reader in enumerate(readers(settings, rng)):
                fill_noise(noise, Noise("gaussian", settings["noise_sd"]), rng)
                runs = play(settings, reader, published, noise, seed=1_000 * seed + n_kinds * population + number)
                about = {"population": population, "reader": number, "norm": reader.norm, "support": reader.support}
                for name, found in of_osom.items():
                    found += runs[name].diagnostics
                blocks += [_block(name, each, about, settings["n_arms"]) for name, each in runs.items()]
                advance(1)
    table = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    entries = _entries(table)
    for name, found in of_osom.items():
        entries[name].update(switching(found))
    return Outcome(entries, table)


def _block(name: str, run: Run, about: Mapping[str, Any], n_arms: int) -> dict[str, np.ndarray]:
    """Return the rows of one policy and reader: regret by round, and what the policy found."""
    last = run.diagnostics[0]
    norm_bounds = last["norm_bounds"] if name.startswith("alb-norm") else [np.nan]
    found = {
        "first_bound": norm_bounds[0],  # b_1, which ALB-Norm estimates
        "last_bound": norm_bounds[-1],
        "switched": float(last["switched"]) if name.startswith("osom") else np.nan,  # whether OSOM took to the contexts
        "topics": last["model"] - n_arms if name == "alb-dim" else np.nan,  # of the map that ALB-Dim settled on
    }
    columns = {"policy": name, **about, **found}
    return {
        **{key: np.full(len(run.rounds), value) for key, value in columns.items()},
        "round": run.rounds,
        "regret": run.regret[0],
    }


def _entries(table: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Return for each policy the mean regret of a reader: over populations, with its deviation, and by norm."""
    last = table["round"] == table["round"].max()

    def regret(name: str, key: str) -> dict[float, float]:
        chosen = last & (table["policy"] == name)
        values = np.unique(table[key])
        return {each: float(table["regret"][chosen & (table[key] == each)].mean()) for each in values.tolist()}

    return {
        name: {
            "policy": name,
            **spread(np.array([*regret(name, "population").values()])),
            "per_user": {f"norm {norm:g}": value for norm, value in regret(name, "norm").items()},
        }
        for name in dict.fromkeys(table["policy"].tolist())
    }


PANELS = {"news": Panel("news", __name__, SETTINGS, run, trials=6, quick_trials=1, seconds=65.0)}

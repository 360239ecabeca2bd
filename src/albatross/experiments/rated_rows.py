"""Panels (g) and (h): rated rows as arms; cumulative reward, and the estimates of the norm starting at b_1 = 25.

Ghosh, Sankararaman and Ramchandran (2021), Section 6.2. The paper clusters rows of the Yahoo! Learning to Rank set and
uses centroids as contexts, which is ill-posed (see `environments.Clusters`). The default reading comes first; next to
it are a row's own rating as its reward, and the paper's literal text. Every trial draws new columns and clusters.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from albatross import datasets, policies, simulate
from albatross.datasets.files import fingerprint
from albatross.environments import Clusters
from albatross.experiments.panel import Outcome, Panel, spread, switching
from albatross.runs import Run

SETTINGS: dict[str, Any] = {
    "sources": {
        "yandex": {"n_arms": 50, "columns": 30},
        "generated": {"n_arms": 100, "columns": 40},
    },
    "norm_bound": 25.0,  # b_1
    "epoch_length": 100,
    "epochs": 9,
    "delta": 0.1,
}
MODES: dict[str, dict[str, Any]] = {
    "bootstrap": {"contexts": "row", "rewards": "bootstrap"},
    "rating": {"contexts": "row", "rewards": "rating"},
    "centroid": {"contexts": "centroid"},
}
# Rows and queries of set2.test.txt (Chapelle and Chang 2011), and the number of its last column at most.
_YAHOO, _YAHOOS_COLUMNS = (103_174, 3_798), 700


def with_data(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the settings for a ranking file of the user, with the paper's sizes as far as the file allows.

    The paper's own file is recognised by its shape. Any other file says nothing about the paper's numbers.
    """
    sha256 = fingerprint(path)
    ranking = _read(str(path), sha256)
    rows, columns = ranking.features.shape
    varying = int((np.ptp(ranking.features, axis=0) > 0.0).sum())
    sizes = {"n_arms": min(500, max(2, rows // 40)), "columns": min(50, varying), "rows": min(20_000, rows)}
    known = (rows, np.unique(ranking.queries).size) == _YAHOO and columns <= _YAHOOS_COLUMNS
    return {**settings, "sources": {"yahoo" if known else "data": {**sizes, "path": str(path), "sha256": sha256}}}


def rows_of(source: str, settings: Mapping[str, Any]) -> datasets.Ranking:
    """Return features and ratings."""
    if source == "yandex":
        return datasets.yandex()
    if source == "generated":
        return datasets.generate_ranking()
    data = settings["sources"][source]
    return _read(data["path"], data["sha256"])


@lru_cache(maxsize=1)
def _read(path: str, sha256: str) -> datasets.Ranking:
    """Read a user's file, which may be large, once for its shape and for both panels; new content is read again."""
    return datasets.read_ranking(Path(path))


def contenders(settings: Mapping[str, Any], sigma: float, norm: float) -> dict[str, Any]:
    """Return ALB-Norm with a large first bound, OFUL+ with that bound and with the norm, and other policies."""
    given, bound = {"sigma": sigma, "delta": settings["delta"]}, {"norm_bound": settings["norm_bound"]}
    return {
        "alb-norm": policies.ALBNorm(epoch_length=settings["epoch_length"], **bound, **given),
        "oful-plus": policies.OFULPlus(**bound, **given),
        "oracle": policies.OFULPlus(norm_bound=norm, **given),
        "osom": policies.OSOM(**bound, **given),
        "osom-scaled": policies.OSOM(test="norm", **bound, **given),
        "ucb": policies.UCB(**given),
        "lints": policies.LinTS(sigma=sigma),
        "greedy": policies.Greedy(),
        "albatross": policies.Albatross(),
        "uniform": policies.Uniform(),
    }


class Draw:
    """Draw columns and clusters once, and run some policies on them."""

    def __init__(self, env: Clusters, runs: dict[str, Run]) -> None:
        self.norm, self.runs = float(np.linalg.norm(env.theta)), runs
        self.n_arms = env.n_arms

    @property
    def bounds(self) -> np.ndarray:
        """b_1, b_2, ..."""
        return np.asarray(self.runs["alb-norm"].diagnostics[0]["norm_bounds"])


def play(
    settings: Mapping[str, Any], *, trials: int, seed: int, only: tuple[str, ...] = ()
) -> dict[tuple[str, str], list[Draw]]:
    """Run every source in every mode, one draw per trial, with all policies or only the named ones."""
    found: dict[tuple[str, str], list[Draw]] = {}
    for source, sizes in settings["sources"].items():
        ranking = rows_of(source, settings)
        wanted = {key: sizes[key] for key in ("n_arms", "columns", "rows") if key in sizes}
        for mode, keywords in MODES.items():
            draws = []
            for trial in range(trials):
                with warnings.catch_warnings():  # of constant columns and small clusters, in every draw
                    warnings.simplefilter("ignore")
                    env = Clusters.from_rows(
                        ranking.features, ranking.ratings, seed=1_000 * seed + trial, **wanted, **keywords
                    )
                noise = np.sqrt(np.mean((env.residuals + env.means - env.biases.repeat(env.sizes)) ** 2))
                sigma = env.sigma if mode == "bootstrap" else float(noise)
                horizon = env.n_arms + settings["epoch_length"] * (2 ** settings["epochs"] - 1)
                every = contenders(settings, sigma, float(np.linalg.norm(env.theta)))
                chosen = {name: every[name] for name in only or every}
                runs = simulate(chosen, env, horizon=horizon, seed=1_000 * seed + trial, record=400)
                draws.append(Draw(env, runs))
            found[source, mode] = draws
    return found


def last_epoch_reward(run: Run, settings: Mapping[str, Any]) -> float:
    """Return the mean reward per round in the last epoch."""
    first = run.rounds[-1] - settings["epoch_length"] * 2 ** (settings["epochs"] - 1)
    row = int(np.searchsorted(run.rounds, first))
    return float((run.reward[0, -1] - run.reward[0, row]) / (run.rounds[-1] - run.rounds[row]))


def run_rewards(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run panel (g)."""
    found = play(settings, trials=trials, seed=seed)
    entries, columns = {}, _Columns("source", "mode", "policy", "draw", "round", "reward")
    for (source, mode), draws in found.items():
        late = {name: [last_epoch_reward(draw.runs[name], settings) for draw in draws] for name in draws[0].runs}
        for name in draws[0].runs:
            finals = np.array([draw.runs[name].reward[0, -1] for draw in draws])
            entries[f"{name}-{source}-{mode}"] = {
                "policy": name,
                "source": source,
                "mode": mode,
                **spread(finals),
                **switching([draw.runs[name].diagnostics[0] for draw in draws]),
                "last_epoch_reward": late[name],
            }
            for trial, draw in enumerate(draws):
                each = draw.runs[name]
                columns.add(source, mode, name, trial, each.rounds, each.reward[0])
    return Outcome(entries, columns.arrays())


def run_estimates(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """Run panel (h)."""
    found = play(settings, trials=trials, seed=seed, only=("alb-norm",))
    entries, columns = {}, _Columns("source", "mode", "draw", "norm", "epoch", "norm_bound")
    for (source, mode), draws in found.items():
        ratios = np.array([draw.bounds / draw.norm for draw in draws])
        entries[f"alb-norm-{source}-{mode}"] = {
            "policy": "alb-norm",
            "source": source,
            "mode": mode,
            **spread(np.array([draw.runs["alb-norm"].reward[0, -1] for draw in draws])),
            "norm_bounds": {"mean": np.mean([draw.bounds for draw in draws], axis=0).tolist()},
            "norms": [draw.norm for draw in draws],
            "last_ratios": ratios[:, -1].tolist(),
        }
        for trial, draw in enumerate(draws):
            columns.add(source, mode, trial, draw.norm, np.arange(1, draw.bounds.size + 1), draw.bounds)
    return Outcome(entries, columns.arrays())


class _Columns:
    """Columns of a long table that grows by blocks: the last two values of a block are arrays, the others constants."""

    def __init__(self, *names: str) -> None:
        self._blocks: dict[str, list[np.ndarray]] = {name: [] for name in names}

    def add(self, *values: Any) -> None:
        length = len(values[-1])
        for block, value in zip(self._blocks.values(), values, strict=True):
            block.append(np.broadcast_to(value, length))

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.concatenate(block) for name, block in self._blocks.items()}


PANELS = {
    "g": Panel(
        "g",
        __name__,
        SETTINGS,
        run_rewards,
        trials=5,
        quick_trials=1,
        seconds=60.0,
    ),
    "h": Panel(
        "h",
        __name__,
        SETTINGS,
        run_estimates,
        trials=5,
        quick_trials=2,
        seconds=35.0,
    ),
}

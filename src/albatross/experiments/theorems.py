"""The theorems where they promise something: small problems on which all their conditions hold.

Ghosh, Sankararaman and Ramchandran (2021), Lemmas 1 to 3, Theorems 1 and 2, Section 3.3 and Remark 4. The conditions of
Theorem 1 ask for epochs of half a million rounds already at 2 arms of 1 feature; `bounds.check` holds for every problem
with arms here. Each part of the table has its own `x` and `value`:

part          x             value
norm-bound    epoch i       b_i (the first is given)
set           epoch i       distance of theta* from the estimate at the end of epoch i, over the radius of the set
rounds        T             regret at the end of each epoch
arms, dims    K, d          regret at the end
bounds        b_1           regret of the last epoch
start-bound, start-error    tau / d or rho_min: b_1 over the norm; error of Section 3.3's estimate over its width
first-phase   d             T_0 of Equation (1)
lemma-2, remark-4, lemma-3  d: the largest error of a coordinate over the error that the statement allows
gamma-all, gamma-last       the smallest magnitude: regret of ALB-Dim, all of it and that of the last phase
gamma-bound                 the same x: regret over the bound of Theorem 2

`policy` is the reading: `letter` is the paper's text, `centred` has contexts and rewards centred within arms, `proved`
has the sets, widths and sample sizes that docs/theorems.md proves; for T_0 it is a reading of `bounds.first_phase`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from albatross import bounds, environments, policies, simulate
from albatross.confidence import initial_norm_bound, radius_appendix
from albatross.environments.mixture import MixtureInstance
from albatross.environments.noise import Noise
from albatross.experiments.epochs import CENTRED, PAPER, Setting, Sums, play_epoch
from albatross.experiments.panel import Outcome, Panel, spread
from albatross.normals import fill_normal
from albatross.parallel import default_workers, in_threads
from albatross.policies.exploration import phase_lengths

SETTINGS: dict[str, Any] = {
    "mixture": {
        "n_arms": 2,
        "dim": 1,
        "theta_norm": 1.0,
        "noise_sd": 0.1,
        "delta": 0.05,
        "norm_bound": 1.0,
        "largest_bias": 1.0,
        "epochs": 5,
        "epoch_length": 560_000,
        # What is varied, its values, a first epoch for which all conditions hold at them, and the number of epochs.
        # Arms have no biases: otherwise more arms would mean smaller gaps, and another kind of problem.
        "growth": {
            "arms": ["n_arms", [2, 4, 8], 660_000, 2],
            "dims": ["dim", [2, 8], 5_640_000, 1],
            "bounds": ["norm_bound", [1.0, 2.0], 2_600_000, 2],
        },
    },
    "start": {
        "draws": 2_000,
        "theta_norm": 2.0,
        "noise_sd": 0.5,
        "delta": 0.1,
        "pairs": {"dim": 5, "per_dim": [1.2, 2.0, 4.0, 10.0]},  # tau / d, with rho_min = 1
        "spreads": {"dim": 1, "per_dim": 40.0, "rho_mins": [0.03, 0.1, 0.3, 1.0]},
    },
    "samples": {
        "numbers": 20_000_000,  # random numbers behind each probability; 20 to 400 draws
        "noise_sd": 0.5**0.5,
        "delta": 0.1,
        "error": 0.125,
        "constants": [6, 24],  # of Lemma 2; 6 is the least whole number for which it holds at d = 5
        "dims": [5, 20, 80, 200],
        "proved_dims": [5, 20, 80],
        "first_phases": [100, 1_000, 10_000],  # dimensions for which T_0 is computed
        "first_phase_dims": {"literal": [3, 5], "unnormalised": [20, 80], "isotropic": [5, 20]},
    },
    "ball": {
        "dim": 3,
        "noise_sd": 0.5**0.5,
        "delta": 0.1,
        "switch": 1.0,
        "phases": 6,
        "smallest": [0.5, 0.25, 0.125, 0.0625],
    },
}
QUICK: dict[str, Any] = {
    "mixture": {
        **SETTINGS["mixture"],
        "epochs": 2,
        "growth": {
            "arms": ["n_arms", [2, 8], 660_000, 2],
            "dims": ["dim", [1, 2], 1_240_000, 1],
            "bounds": ["norm_bound", [1.0, 1.4], 1_220_000, 2],
        },
    },
    "start": {**SETTINGS["start"], "draws": 500},
    "samples": {
        **SETTINGS["samples"],
        "numbers": 1_000_000,
        "dims": [5, 20, 80],
        "proved_dims": [5],
        "first_phase_dims": {"literal": [3], "unnormalised": [20], "isotropic": [5]},
    },
    "ball": {**SETTINGS["ball"], "phases": 5, "smallest": [0.5, 0.25, 0.125]},
}
LEMMA_3_PHASE = 4  # the first that Lemma 3 is about
Row = tuple[str, str, float, int, float]  # part, policy, x, trial, value


def appendix_radius(setting: Setting, sums: Sums) -> float:
    """K_delta of Appendix A at the end of an epoch."""
    n_arms, dim = sums.contexts.shape
    given = (setting.norm_bound, setting.rounds, setting.rounds, setting.delta, setting.sigma)
    return float(radius_appendix(*given, n_arms, dim, setting.rho_min))


def proved_radius(setting: Setting, sums: Sums) -> float:
    """Theorem A of docs/theorems.md."""
    return bounds.centred_radius(
        log_det=float(sums.log_det[0]),
        least_eigenvalue=1.0 / float(np.linalg.norm(sums.inverse, 2)),
        norm_bound=setting.norm_bound,
        delta=setting.delta,
        sigma=setting.sigma,
        n_arms=len(sums.counts),
    )


# The estimator of each reading, and the radius of its set from what an epoch has seen.
READINGS: dict[str, tuple[int, Callable[[Setting, Sums], float]]] = {
    "letter": (PAPER, appendix_radius),
    "centred": (CENTRED, appendix_radius),
    "proved": (CENTRED, proved_radius),
}


def stream(seed: int, *key: int) -> np.random.Generator:
    """Random numbers that depend on the seed and the key alone."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))


# ---------------------------------------------------------------------------------------------------------- ALB-Norm


def problem(settings: Mapping[str, Any]) -> MixtureInstance:
    """theta* along the first axis, and biases spread evenly."""
    theta = np.zeros(settings["dim"])
    theta[0] = settings["theta_norm"]
    biases = settings["largest_bias"] * np.linspace(1.0, -1.0, settings["n_arms"])
    return MixtureInstance(theta, biases, Noise("gaussian", settings["noise_sd"]), None)


def refine(settings: Mapping[str, Any], reading: str, rng: np.random.Generator) -> dict[str, list[float]]:
    """ALB-Norm with restarts, as Lemma 1 has it: (epochs,) each of bounds, distances over radii, and regrets."""
    instance, (estimator, radius) = problem(settings), READINGS[reading]
    bound, regret = settings["norm_bound"], 0.0
    found: dict[str, list[float]] = {"norm-bound": [bound], "set": [], "rounds": []}
    for epoch in range(settings["epochs"]):
        rounds, delta = settings["epoch_length"] * 2.0**epoch, settings["delta"] / 2.0**epoch
        setting = Setting(bound, rounds, delta, settings["noise_sd"], 1.0, estimator)
        sums = play_epoch(setting, instance, rng)
        reach = radius(setting, sums)
        bound = float(np.linalg.norm(sums.theta)) + reach
        regret += float(sums.regret[0])
        found["norm-bound"].append(bound)
        found["set"].append(float(np.linalg.norm(sums.theta - instance.theta)) / reach)
        found["rounds"].append(regret)
    return found


def refinements(settings: Mapping[str, Any], *, trials: int, seed: int) -> list[Row]:
    """The sequence b_i, the sets and regret, in all readings on the same rounds."""
    lengths = settings["epoch_length"] * 2.0 ** np.arange(settings["epochs"])
    along = {"rounds": np.cumsum(settings["n_arms"] + lengths).tolist()}

    def play(job: int) -> list[Row]:
        trial, reading = divmod(job, len(READINGS))
        name = [*READINGS][reading]
        return [
            (part, name, x, trial, value)
            for part, values in refine(settings, name, stream(seed, 0, trial)).items()
            for x, value in zip(along.get(part, range(1, len(values) + 1)), values, strict=True)
        ]

    return _flat(in_threads(play, trials * len(READINGS), default_workers(), threading.Event()))


def growth(settings: Mapping[str, Any], *, trials: int, seed: int) -> list[Row]:
    """Regret against K and d, and against the given bound in the last epoch: the first has b_1 in it."""
    jobs = [
        (part, reading, trial, {name: value, "epoch_length": length, "epochs": epochs})
        for part, (name, values, length, epochs) in settings["growth"].items()
        for reading in ("letter", "centred")
        for value in values
        for trial in range(trials)
    ]

    def play(job: int) -> list[Row]:
        part, reading, trial, changed = jobs[job]
        here = {**settings, "largest_bias": 0.0, **changed}
        regret = refine(here, reading, stream(seed, 1, trial))["rounds"]
        value = regret[-1] - regret[-2] if part == "bounds" else regret[-1]
        return [(part, reading, next(iter(changed.values())), trial, value)]

    return _flat(in_threads(play, len(jobs), default_workers(), threading.Event()))


# --------------------------------------------------------------------------------------------- the first bound, b_1


def first_bounds(settings: Mapping[str, Any], *, seed: int) -> list[Row]:
    """b_1 and its error, as in Section 3.3 and by Theorem D, for few and many pairs and for small contexts."""
    cells = [("pairs", each, settings["pairs"]["dim"], each, 1.0) for each in settings["pairs"]["per_dim"]]
    small = settings["spreads"]
    cells += [("spreads", each, small["dim"], small["per_dim"], each) for each in small["rho_mins"]]
    rows: list[Row] = []
    for number, (kind, x, dim, per_dim, rho_min) in enumerate(cells):
        draws, pairs, rng = settings["draws"], round(per_dim * dim), stream(seed, 2, number)
        theta = np.zeros(dim)
        theta[0] = norm = settings["theta_norm"]
        differences = math.sqrt(2.0 * rho_min) * rng.standard_normal((draws, pairs, dim))
        noise = math.sqrt(2.0) * settings["noise_sd"] * rng.standard_normal((draws, pairs, 1))
        gram = differences.transpose(0, 2, 1) @ differences
        estimates = theta + np.linalg.solve(gram, differences.transpose(0, 2, 1) @ noise)[:, :, 0]
        least = np.linalg.eigvalsh(gram)[:, 0]
        errors, sizes = np.linalg.norm(estimates - theta, axis=1), np.linalg.norm(estimates, axis=1)
        sigma, delta = settings["noise_sd"], settings["delta"]
        for trial in range(draws):
            literal = initial_norm_bound(sizes[trial], float(pairs), float(dim), sigma, delta)
            width = initial_norm_bound(1.0, float(pairs), float(dim), sigma, delta) - 1.0
            sound = bounds.start_width(least_eigenvalue=least[trial], dim=dim, sigma=sigma, delta=delta)
            rows += [
                (f"start-bound-{kind}", "letter", x, trial, literal / norm),
                (f"start-error-{kind}", "letter", x, trial, errors[trial] / width),
                (f"start-bound-{kind}", "proved", x, trial, max(sizes[trial] + sound, 1.0) / norm),
                (f"start-error-{kind}", "proved", x, trial, errors[trial] / sound),
            ]
    return rows


# ----------------------------------------------------------------------------------- least squares on the unit sphere


def largest_error(samples: int, dim: int, sigma: float, rng: np.random.Generator) -> float:
    """Of a coordinate, by least squares on random points of the unit sphere."""
    points, noise = np.empty((samples, dim)), np.empty((samples, 1))
    fill_normal(points, rng)
    fill_normal(noise, rng)
    points /= np.sqrt(np.einsum("ij,ij->i", points, points))[:, None]
    return float(sigma * np.abs(np.linalg.solve(points.T @ points, points.T @ noise)).max())


def sample_sizes(settings: Mapping[str, Any]) -> list[tuple[str, str, int, int, float]]:
    """Part, reading, d, number of samples and allowed error."""
    error, sigma, delta = settings["error"], settings["noise_sd"], settings["delta"]
    found = [
        ("lemma-2", f"letter, C = {c}", d, math.ceil(c * bounds.lemma_2(error, dim=d, delta=delta)), error)
        for c in settings["constants"]
        for d in settings["dims"]
    ]
    for d in settings["proved_dims"]:
        found.append(("lemma-2", "proved", d, bounds.samples_needed(error, dim=d, sigma=sigma, delta=delta), error))
    for reading, dims in settings["first_phase_dims"].items():
        for d in dims:
            first = bounds.first_phase(d, sigma, delta, reading)
            found.append(("remark-4", reading, d, bounds.explored(1, first), 0.5))
            found.append(("lemma-3", reading, d, bounds.explored(LEMMA_3_PHASE, first), 0.5**LEMMA_3_PHASE))
    return found


def first_phases(settings: Mapping[str, Any]) -> list[Row]:
    """T_0 in all readings."""
    sigma, delta = settings["noise_sd"], settings["delta"]
    return [
        ("first-phase", reading, d, 0, float(bounds.first_phase(d, sigma, delta, reading)))
        for reading in bounds.READINGS
        for d in settings["first_phases"]
    ]


def sample_errors(settings: Mapping[str, Any], *, seed: int) -> list[Row]:
    """Errors over what is allowed, for the samples of Lemma 2, Remark 4, Lemma 3 and Theorem C."""
    cells = sample_sizes(settings)

    def measure(number: int) -> list[Row]:
        part, reading, dim, samples, allowed = cells[number]
        rng, draws = stream(seed, 3, number), min(max(settings["numbers"] // (samples * dim), 20), 400)
        errors = [largest_error(samples, dim, settings["noise_sd"], rng) for _ in range(draws)]
        return [(part, reading, dim, trial, error / allowed) for trial, error in enumerate(errors)]

    return _flat(in_threads(measure, len(cells), default_workers(), threading.Event()))


# ----------------------------------------------------------------------------------------------------------- ALB-Dim


def small_magnitudes(settings: Mapping[str, Any], *, trials: int, seed: int) -> list[Row]:
    """ALB-Dim with the first phase that Theorem 2 asks for, on two coordinates of which one is small."""
    sigma, delta = settings["noise_sd"], settings["delta"]
    first = bounds.first_phase(settings["dim"], sigma, delta)
    ends = np.cumsum(phase_lengths(first, (25, 5), 2**53)[: settings["phases"]].sum(axis=1))
    policy = policies.ALBDim(first_phase=first, sigma=sigma, delta=delta, switch=settings["switch"])
    rows: list[Row] = []
    for gamma in settings["smallest"]:
        env = environments.Ball(dim=settings["dim"], magnitudes=[math.sqrt(1.0 - gamma**2), gamma], noise_sd=sigma)
        run = simulate(policy, env, horizon=int(ends[-1]), trials=trials, seed=seed, record=ends)
        known = {"sparsity": 2, "smallest": gamma, "sigma": sigma, "delta": delta, "first_phase": first}
        share = (run.regret / bounds.theorem_2(ends, **known)).max(axis=1)
        for trial, regret in enumerate(run.regret):
            rows += [
                ("gamma-all", "letter", gamma, trial, regret[-1]),
                ("gamma-last", "letter", gamma, trial, regret[-1] - regret[-2]),
                ("gamma-bound", "letter", gamma, trial, share[trial]),
            ]
    return rows


def _flat(found: list[list[Row]]) -> list[Row]:
    return [row for rows in found for row in rows]


def run(settings: Mapping[str, Any], *, trials: int, seed: int) -> Outcome:
    """All parts, one after the other."""
    rows = refinements(settings["mixture"], trials=trials, seed=seed)
    rows += growth(settings["mixture"], trials=trials, seed=seed)
    rows += first_bounds(settings["start"], seed=seed)
    rows += first_phases(settings["samples"])
    rows += sample_errors(settings["samples"], seed=seed)
    rows += small_magnitudes(settings["ball"], trials=trials, seed=seed)
    columns = zip(*rows, strict=True)
    table = dict(zip(("part", "policy", "x", "trial", "value"), map(np.array, columns), strict=True))
    table["x"] = table["x"].astype(float)
    entries = {}
    for part, name in dict.fromkeys(zip(table["part"].tolist(), table["policy"].tolist(), strict=True)):
        mine = (table["part"] == part) & (table["policy"] == name)
        last = table["value"][mine & (table["x"] == table["x"][mine].max())]
        entries[f"{name}, {part}"] = {"policy": name, "part": part, **spread(last)}
    return Outcome(policies=entries, curves=table)


PANELS = {
    "theorems": Panel(
        "theorems", __name__, SETTINGS, run, trials=3, quick_trials=1, seconds=80.0, quick_settings=QUICK
    ),
}

"""A results folder with made-up numbers, written the way experiments write theirs, without running any."""

from __future__ import annotations

import numpy as np

from albatross.experiments import PANELS, rated_rows, results
from albatross.experiments.panel import Outcome
from albatross.race import problems, run
from albatross.race.standings import Raced, standings
from albatross.report.figures import ball, flock, nested, news, norm, rated, simple_bandit, users
from albatross.store.identity import identity, signed
from albatross.store.tables import write_table

TRIALS = 4
_LUCK = 1.0 + 0.02 * np.random.default_rng(3).standard_normal((64, 25))  # a row a policy, a column a trial

# About what the real panels end at.
NORM_REGRET = {
    "alb-norm": (4_462, 2_650),
    "oful-plus": (10_589, 5_234),
    "oracle": (2_597, 1_885),
    "alb-norm-paper": (5_100, 10_760),
    "oful-plus-paper": (11_790, 30_480),
    "oracle-paper": (3_220, 12_120),
    "alb-norm-literal": (13_600, 35_200),
    "oful-plus-literal": (13_100, 33_700),
    "oracle-literal": (9_490, 26_630),
    "osom": (2_520, 23_900),
    "osom-given-1": (2_520, 13_360),
    "osom-scaled": (2_600, 6_000),
    "corral": (7_540, 5_520),
    "ucb": (2_100, 23_500),
    "lints": (1_200, 820),
    "greedy": (800, 500),
    "albatross": (700, 450),
}
BALL_REGRET = {
    "alb-dim": (4.2e6, 2.2e6, 9e9),
    "alb-dim-inside": (5.6e6, 3.2e6, None),
    "oful": (7.1e7, 1.7e7, 1.2e10),
    "oracle": (2.9e6, 1.7e6, 2e9),
    "sl-ucb": (2.8e7, 4.4e6, 3e9),
    "lints": (3.4e7, 8e6, 3e9),
}
SIMPLE_REGRET = {(75, 50): 4.5, (75, 5): 1.0, (200, 10): 1.2}  # ALB-Norm over UCB
NESTED_REGRET = (8_100, 34_000, 430, 3_200, 16_300, 310, 6_000, 20_700, 630, 37_000, 8_000, 34_000, 4_000, 800, 780)
USER_REGRET = (284, 496, 1_300, 900, 115, 78, 70)
FLOCK_REGRET = (0.5, 1.0, 2.0, 0.6)  # of a visit
SETTLING = {"bootstrap": 1.2, "rating": 5.0, "centroid": 0.1}  # the last estimate over the norm
# Exponents of a world in which the paper is right; the theorems' curves lie above.
SCALING = {
    ("norm", "alb-norm"): 0.4,
    ("norm", "oful-plus"): 0.4,
    ("norm", "oracle"): 0.4,
    ("norm", "alb-norm-no-biases"): 0.3,
    ("bound", "alb-norm"): 0.02,
    ("bound", "oful-plus"): 0.5,
    ("bound", "osom"): 0.05,
    ("bound", "osom-scaled"): 0.3,
    ("dim", "alb-dim"): 0.05,
    ("dim", "oful"): 1.0,
    ("sparsity", "alb-dim"): 0.9,
    ("gamma", "alb-dim"): 0.01,
    ("rounds-mixture", "alb-norm"): 0.5,
    ("rounds-ball", "alb-dim"): 0.5,
    ("rounds-nested", "alb-dim-suplinrel"): 0.4,
}
THEOREMS = {
    ("norm", "Theorem 1"): 0.5,
    ("bound", "Theorem 1"): 0.0,
    ("dim", "Theorem 2"): 0.0,
    ("sparsity", "Theorem 2"): 0.95,
    ("gamma", "Theorem 2"): 0.0,
    ("rounds-mixture", "Theorem 1"): 0.55,
    ("rounds-ball", "Theorem 2"): 0.55,
    ("rounds-nested", "Theorem 3"): 0.55,
}


def columns(names, rows):
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def regret_curves(finals, trials, rounds):
    return columns(
        ("policy", "trial", "round", "regret", "reward"),
        [
            (policy, trial, int(t), final * _LUCK[number, trial] * (t / rounds[-1]) ** 0.5, float(t))
            for number, (policy, final) in enumerate(finals.items())
            for trial in range(trials)
            for t in rounds
        ],
    )


def _norm_regret(name, trials):
    finals = {policy: NORM_REGRET[policy]["ab".index(name)] for policy in norm.LOOKS}
    return regret_curves(finals, trials, np.arange(25, 12_776, 50))


def _simple(name, trials):
    tables = []
    for (n_arms, dim), factor in SIMPLE_REGRET.items():
        finals = {policy: 100.0 if policy == "ucb" else 100.0 * factor for policy in simple_bandit.LOOKS}
        table = regret_curves(finals, trials, np.arange(25, 12_776, 250))
        size = {"n_arms": np.full(len(table["round"]), n_arms), "dim": np.full(len(table["round"]), dim)}
        tables.append({**table, **size})
    return {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}


INSIDE_TRIALS = 3  # of ALB-Dim inside the ball


def _ball(name, trials):
    column = ("d", "e", "e-literal").index(name)
    finals = {policy: BALL_REGRET[policy][column] for policy in ball.LOOKS if BALL_REGRET[policy][column]}
    table = regret_curves(finals, trials, np.unique(np.geomspace(1, 4e9, 200).astype(np.int64)))
    played = (table["policy"] != "alb-dim-inside") | (table["trial"] < INSIDE_TRIALS)
    return {key: values[played] for key, values in table.items()}


def _estimates(name, trials):
    last = {"alb-norm": (0.22, 1.13), "alb-norm-paper": (0.05, 0.13), "alb-norm-literal": (5e5, 5e5)}
    return columns(
        ("policy", "theta_norm", "trial", "epoch", "norm_bound"),
        [
            (policy, norm, trial, epoch, 10.0 * (end * _LUCK[0, trial] / 10.0) ** ((epoch - 1) / 7))
            for policy, ends in last.items()
            for norm, end in zip((0.1, 1.0), ends, strict=True)
            for trial in range(trials)
            for epoch in range(1, 9)
        ],
    )


def _refinement(name, trials):
    sizes = {"alb-dim": ((40, 2), (20, 0), (20, 0)), "monotone": ((40, 2), (18, 2), (18, 2))}
    return columns(
        ("policy", "dim", "trial", "phase", "support_size", "missed", "false", "regret"),
        [
            (policy, dim, trial, phase, size, missed, size + missed - 20, 1e3 * (1 + missed) * _LUCK[0, trial])
            for policy, late in sizes.items()
            for dim in (500, 200)
            for trial in range(trials)
            for phase, (size, missed) in enumerate(((dim, 0), (dim, 0), *late))
        ],
    )


def _rewards(name, trials):
    return columns(
        ("source", "mode", "policy", "draw", "round", "reward"),
        [
            (source, mode, policy, draw, int(t), t * (1 + number) * _LUCK[number, draw])
            for source in ("yandex", "generated")
            for mode in rated_rows.MODES
            for number, policy in enumerate(rated.LOOKS)
            for draw in range(trials)
            for t in np.linspace(128, 51_200 + draw, 40).astype(int)
        ],
    )


def _settling(name, trials):
    return columns(
        ("source", "mode", "draw", "norm", "epoch", "norm_bound"),
        [
            (source, mode, draw, 0.3, epoch, 0.3 * end * _LUCK[0, draw] + 25.0 * 0.3**epoch)
            for source in ("yandex", "generated")
            for mode, end in SETTLING.items()
            for draw in range(trials)
            for epoch in range(1, 11)
        ],
    )


def _nested(name, trials):
    return regret_curves(dict(zip(nested.LOOKS, NESTED_REGRET, strict=True)), trials, np.arange(200, 60_001, 200))


def _users(name, trials):
    return columns(
        ("policy", "population", "user", "norm", "regret", "norm_bound"),
        [
            (policy, trial, user, norm, regret * _LUCK[user, trial], norm + 0.3 if policy == "alb-norm" else np.nan)
            for policy, regret in zip(users.LOOKS, USER_REGRET, strict=True)
            for trial in range(trials)
            for user, norm in enumerate(np.maximum(0.0, np.linspace(-1.0, 3.0, 40)))
        ],
    )


def _flock(name, trials):
    """Regret by visits, and users of two kinds as the flock sees them."""
    curves = [
        (policy, family, trial, -1, visit, visit * regret * _LUCK[number, trial], np.nan, np.nan, np.nan)
        for family in PANELS["flock"].settings["families"]
        for number, (policy, regret) in enumerate(zip(flock.LOOKS, FLOCK_REGRET, strict=True))
        for trial in range(trials)
        for visit in range(1, 21)
    ]
    users_found = [
        ("flock", family, trial, user, -1, 5.0, norm, norm + 0.1, float(norm > 0.0))
        for family in ("users", "two groups")
        for trial in range(trials)
        for user, norm in enumerate(np.maximum(0.0, np.linspace(-1.0, 3.0, 40)))
    ]
    names = ("policy", "family", "population", "user", "visit", "regret", "norm", "norm_found", "topic_reader")
    return columns(names, curves + users_found)


def _scaling(name, trials):
    return columns(
        ("part", "policy", "x", "trial", "regret"),
        [
            (part, policy, x, trial, 100.0 * (1 + policy.startswith("oful")) * x**exponent * _LUCK[number, trial])
            for (part, policy), exponent in SCALING.items()
            for number, x in enumerate((1.0, 2.0, 4.0, 8.0))
            for trial in range(trials)
        ]
        + [
            (part, theorem, x, 0, 100.0 * x**exponent)
            for (part, theorem), exponent in THEOREMS.items()
            for x in (1.0, 2.0, 4.0, 8.0)
        ],
    )


NEWS_REGRET = (1_140, 2_160, 720, 3_490, 5_690, 3_750, 3_440, 2_400, 200, 140, 2_920, 1_680, 1_030)


def _news(name, trials):
    osom = (np.nan, np.nan, 1.0, np.nan)
    found = {"alb-norm": (1.5, 0.1, np.nan, np.nan), "osom": osom, "osom-scaled": osom}
    nothing = (np.nan,) * 4
    return columns(
        ("policy", "population", "reader", "norm", "support", "first_bound", "last_bound", "switched", "topics")
        + ("round", "regret"),
        [
            (policy, trial, reader, norm, support)
            + ((*nothing[:3], support * (norm > 0.0)) if policy == "alb-dim" else found.get(policy, nothing))
            + (t, final * (1.5 - 0.4 * norm) * _LUCK[number, trial] * (t / 30_000) ** 0.5)
            for number, (policy, final) in enumerate(zip(news.LOOKS, NEWS_REGRET, strict=True))
            for trial in range(trials)
            for reader, (norm, support) in enumerate((norm, support) for norm in (0.0, 1.0) for support in (2, 16))
            for t in range(1_500, 30_001, 1_500)
        ],
    )


def _theorems(name, trials):
    """A world like the real one: to the letter little holds, centred or as proved all does."""
    epochs, found = np.arange(1, 7), []

    def part(part, policy, xs, values, draws=trials):
        for x, value in zip(xs, values, strict=True):
            found.extend((part, policy, float(x), trial, value * _LUCK[0, trial]) for trial in range(draws))

    for policy, above, distance, power in (
        ("letter", np.where(epochs > 1, -0.2, 0.0), 3.0, 1.0),
        ("centred", 0.3 * 0.5 ** (epochs / 2), 0.01, 0.5),
        ("proved", 0.01 * 0.5 ** (epochs / 2), 0.1, 0.5),
    ):
        found += [
            ("norm-bound", policy, float(epoch), trial, 1.0 + each * _LUCK[0, trial])
            for epoch, each in zip(epochs, above, strict=True)
            for trial in range(trials)
        ]
        part("set", policy, epochs[:5], [distance] * 5)
        rounds = 560_000.0 * (2.0 ** epochs[:5] - 1.0)
        part("rounds", policy, rounds, rounds**power)
        if policy != "proved":
            for growth, xs in (("arms", (2, 4, 8)), ("dims", (2, 4, 8)), ("bounds", (1.0, 1.4, 2.0))):
                part(growth, policy, xs, [1000.0] * 3)
    for kind, xs in (("pairs", (1.2, 10.0)), ("spreads", (0.1, 1.0))):
        for policy, bad in (("letter", 0.5), ("proved", 1.5)):
            part(f"start-bound-{kind}", policy, xs, (bad, 1.5))
            part(f"start-error-{kind}", policy, xs, (1.0 / bad, 0.5))
    for policy, errors in (("letter, C = 6", (0.5, 1.7)), ("letter, C = 24", (0.3, 1.2)), ("proved", (0.4, 0.4))):
        part("lemma-2", policy, (5, 80), errors)
    for policy, error, power in (("literal", 0.1, 4.2), ("isotropic", 0.4, 2.1), ("unnormalised", 1.2, 2.1)):
        part("remark-4", policy, (5,), (error,))
        part("lemma-3", policy, (5,), (error,))
        part("first-phase", policy, (100, 1000, 10_000), (100.0**power, 1000.0**power, 10_000.0**power), draws=1)
    for gamma, regret, last in ((0.1, 100.0, 10.0), (0.5, 10.0, 10.0)):
        part("gamma-all", "letter", (gamma,), (regret,))
        part("gamma-last", "letter", (gamma,), (last,))
        part("gamma-bound", "letter", (gamma,), (0.01,))
    return columns(("part", "policy", "x", "trial", "value"), found)


def _drift(name, trials):
    """Learnt memory as good as the best where rewards jump, 1.5 times where they drift slowly."""
    rows = []
    for problem in PANELS[name].settings["problems"]:
        slow = problem.startswith(("one turn", "random walk"))
        finals = {
            "never": 23.0 if problem == "stationary" else 3_000.0,
            "learnt": 23.0 if problem == "stationary" else 150.0,
        }
        finals |= {"half-life": 200.0, "d-linucb": 100.0 if slow else 160.0, "sw-linucb": 210.0}
        for number, (policy, mean) in enumerate(finals.items()):
            setting = "" if policy in ("never", "learnt") else "best"
            rows += [(problem, policy, setting, trial, mean * _LUCK[number, trial]) for trial in range(trials)]
    return columns(("problem", "policy", "setting", "trial", "regret"), rows)


TABLES = {
    **dict.fromkeys("ab", _norm_regret),
    "c": _estimates,
    **dict.fromkeys(("d", "e", "e-literal"), _ball),
    "f": _refinement,
    "g": _rewards,
    "h": _settling,
    "simple": _simple,
    "nested": _nested,
    "users": _users,
    "flock": _flock,
    "drift": _drift,
    "scaling": _scaling,
    "news": _news,
    "theorems": _theorems,
}


def entries(name, table):
    """A policy's entry in the summary, by name: the columns that tell it from others."""
    keys = [
        key
        for key in ("policy", "problem", "setting", "source", "mode", "part", "theta_norm", "n_arms", "dim")
        if key in table
    ]
    found = {}
    for values in dict.fromkeys(zip(*(table[key].tolist() for key in keys), strict=True)):
        entry = {"policy": "alb-norm", **dict(zip(keys, values, strict=True))}
        if not entry["policy"].startswith("Theorem"):
            parts = [entry["policy"], *(str(entry[key]) for key in keys if key != "policy")]
            found.setdefault((", " if name == "scaling" else "-").join(parts), entry)
    if name in ("d", "e", "e-literal"):
        found["alb-dim"].update(missed=[0, 5, 3, 1, 0], false=[180, 100, 0, 0, 0])
    if "alb-dim-inside" in found:
        found["alb-dim-inside"].update(missed=[0] * 5, false=[180, 180, 180, 1, 0], trials=INSIDE_TRIALS)
    for entry in found.values():
        if entry["policy"].startswith("osom"):
            entry["switched"] = {"times": 3, "of": 4, "round": 1_234}
    if name == "nested":
        for inner in nested.INNER:
            found[f"alb-dim-{inner}"]["models"] = [[20, 5]] * TRIALS
    return {key: {"final_mean": 1.0, "final_sd": 0.1, **entry} for key, entry in found.items()}


def write_panel(folder, name, *, trials=TRIALS, seed=0):
    """A panel as `albatross reproduce` would store it."""
    table = TABLES[name](name, trials)
    outcome = Outcome(entries(name, table), table)
    results.run(PANELS[name]._replace(run=lambda settings, **_: outcome), trials=trials, seed=seed, out=folder)


def write_race(folder):
    """Two families of problems, two policies each."""
    for title, names in {
        "finitely many arms": ("10 x 10, norm 0", "10 x 10, norm 1"),
        "the unit ball": ("5 of 50",),
    }.items():
        found = {
            name: Raced(
                {"alb-norm": np.array([30.0, 33.0]), "ucb": np.array([10.0, 12.0])},
                {"alb-norm": 1.0, "ucb": 1.0},
                signed(
                    identity(trials=2, seed=0, problem=name, horizon={**problems.ARMS, **problems.BALL}[name].horizon)
                ),
            )
            for name in names
        }
        (folder / "race").mkdir(parents=True, exist_ok=True)
        run.store(run.Result(found, standings(found)), title=title, out=folder)


def write_all(folder, *, trials=TRIALS):
    """Every panel and the race."""
    for name in TABLES:
        write_panel(folder, name, trials=trials)
    write_race(folder)


def change_table(folder, panel, sql):
    """Replace a panel's stored table by what a query of it, called `curves`, gives."""
    from albatross.store.results import Stored

    write_table(Stored(folder).table(panel, sql), folder / panel / "curves.parquet")

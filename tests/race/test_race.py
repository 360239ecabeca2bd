"""The race, and its arithmetic."""

from __future__ import annotations

import json
import sys

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

from albatross.cli.commands import albatross
from albatross.environments import Ball, FixedArms, Mixture
from albatross.policies import CATALOGUE, ED2RB, UCB, LinTS
from albatross.race import problems, run
from albatross.race.problems import Problem
from albatross.race.standings import Raced, problem_rows, standings

SMALL = {"small": Problem(Mixture(n_arms=3, dim=2, noise_sd=0.5), 60, trials=4, biases=True)}


def raced(**regrets):
    return Raced({name: np.array(values, float) for name, values in regrets.items()}, dict.fromkeys(regrets, 1.0), {})


def test_ratios_are_to_the_best_policy_of_each_problem():
    found = {"p": raced(a=[10, 30], b=[40, 40], c=[80, 80]), "q": raced(a=[60, 60], b=[30, 30], c=[30, 30])}
    lines = standings(found)
    assert [(line.name, line.worst, round(line.mean, 6)) for line in lines] == [
        ("a", 2.0, round(2**0.5, 6)),
        ("b", 2.0, round(2**0.5, 6)),
        ("c", 4.0, 2.0),
    ]
    assert lines[2].ratios == {"p": 4.0, "q": 1.0}
    assert lines[2].worst_interval == pytest.approx((80 / 30, 80 / 10))  # as a's trials are drawn


def test_a_policy_that_did_not_run_everywhere_has_no_standing():
    found = {"p": raced(a=[1], b=[2]), "q": raced(a=[1])}
    assert [line.name for line in standings(found)] == ["a"]


def test_a_regret_of_zero_has_a_ratio():
    assert standings({"p": raced(a=[0.0], b=[0.0])})[1].worst == 1.0


def test_the_table_of_problems_names_the_best_and_ours():
    found = {"p": raced(a=[10, 30], b=[40, 40])}
    rows = problem_rows(found, standings(found)[1])
    assert rows == [("p", "a", "20 ± 10", "40 ± 0", "2", "1.33 to 4")]  # as a's trials are drawn


def test_every_policy_without_feature_maps_races():
    weaker_twins = {"ucb1", "uniform", "corral", "regret-balancing", "d3rb"}  # of policies that race
    given_more = {"successive-rejects", "online-to-confidence"}  # a budget; the sparsity, and few coordinates
    maps = {name for name, entry in CATALOGUE.items() if "maps" in entry.setting or "without biases" in entry.setting}
    assert set(CATALOGUE) - weaker_twins - given_more - maps <= set(problems.ARM_POLICIES) | set(problems.BALL_POLICIES)


@pytest.mark.parametrize("name", [*problems.ARMS, *problems.DRIFT, *problems.BALL])
def test_policies_are_told_the_noise_level_and_whether_there_are_biases_but_not_albatross(name):
    problem = {**problems.ARMS, **problems.DRIFT, **problems.BALL}[name]
    built = problems.contenders(problem)
    told = problem.given_sigma * problem.env.noise_sd
    if isinstance(problem.env, Ball):
        assert built["ball-oful"].sigma == told
        return
    assert built["lints"].sigma == told
    assert built["lints"].biases == problem.biases
    assert built["albatross"].sigma is None
    assert built["albatross"].biases


def test_the_standings_say_what_each_policy_is_given():
    given = problems.given_in_words(problems.ARMS["10 x 10, norm 1"])
    assert given["albatross"] == given["uniform"] == "nothing"
    assert given["lints"] == "noise level, biases or none"
    assert given["oful"] == "noise level, norm bound, biases or none"
    drift = problems.given_in_words(problems.DRIFT["redrawn every 600"])
    assert (drift["albatross-learnt"], drift["d-linucb"]) == ("nothing", "biases or none, memory")
    assert problems.given_in_words(problems.BALL["5 of 50"])["albatross-dim"] == "norm bound"
    assert standings({"p": raced(albatross=[1.0])}, given)[0].given == "nothing"


def test_a_problem_is_not_raced_again_by_the_same_code(tmp_path, monkeypatch):
    first = run.run(SMALL, out=tmp_path, seed=0, chosen=["greedy", "ucb"])
    monkeypatch.setattr(run, "race", lambda *args, **options: pytest.fail("raced again"))
    again = run.run(SMALL, out=tmp_path, seed=0, chosen=["greedy", "ucb"])
    np.testing.assert_equal(first, again)


@pytest.mark.parametrize("change", ["seed", "policies", "damage", "sources"])
def test_a_problem_is_raced_again_where_anything_differs(tmp_path, monkeypatch, change):
    run.run(SMALL, out=tmp_path, seed=0, chosen=["greedy"])
    (path,) = (tmp_path / "race").glob("small-*.json")
    if change == "damage":
        path.write_text(path.read_text()[:200])
    if change == "sources":
        monkeypatch.setattr("albatross.store.identity.digest", lambda *modules, **options: "others")
    calls = []
    original = run.race
    monkeypatch.setattr(run, "race", lambda *args, **options: calls.append(1) or original(*args, **options))
    chosen = ["greedy", "ucb"] if change == "policies" else ["greedy"]
    run.run(SMALL, out=tmp_path, seed=int(change == "seed"), chosen=chosen)
    assert calls == [1]
    kept = [json.loads(each.read_text()) for each in (tmp_path / "race").glob("small-*.json")]
    assert sorted(each["seed"] for each in kept) == ([0, 1] if change == "seed" else [0, 0][: len(kept)])
    assert len(kept) == 1 + (change in ("seed", "policies"))  # another race does not replace this one


def fixed(n_before):
    arms = np.repeat([[0.0], [1.0], [0.0]], [n_before, 200, 1_000 - n_before], axis=0)
    return FixedArms(n_arms=1_200, dim=1, arms=arms, noise_sd=0.5)


KEPT = """
import numpy as np
from albatross.environments import Recorded

class Secretive:
    def __reduce__(self):
        raise RuntimeError

class Kept(Recorded):
    def __init__(self, paying=1, secretive=False):
        super().__init__(contexts=np.ones((60, 3, 1)), rewards=np.tile(np.arange(3.0) < paying, (60, 1)))
        object.__setattr__(self, "kept", Secretive() if secretive else None)
"""


@pytest.mark.parametrize("pair", ["long arrays", "a text without parameters", "not to be read"])
def test_problems_of_one_text_are_two_problems(tmp_path, monkeypatch, pair):
    (tmp_path / "kept.py").write_text(KEPT)
    monkeypatch.setattr("albatross.own_files._LOADED", {})
    if pair == "long arrays":
        one, other = fixed(100), fixed(500)
    else:
        words = f"{tmp_path}/kept.py:Kept(paying={{}}, secretive={pair == 'not to be read'}, horizon=60)"
        one, other = (problems.read_problem(words.format(paying)).env for paying in (1, 2))
    assert repr(one) == repr(other)
    calls, original = [], run.race
    monkeypatch.setattr(run, "race", lambda *args, **options: calls.append(1) or original(*args, **options))
    for env in (one, other, other):
        problem = Problem(env, 60, trials=2, biases=False)
        run.run({"mine": problem}, out=tmp_path / "out", seed=0, chosen=["uniform"])
    assert len(calls) == (3 if pair == "not to be read" else 2)


PLAIN = """
import numpy as np
from albatross.protocol import begin, draw

class Plain:
    dim = 1

    def __init__(self, n_arms=3):
        self.n_arms = n_arms
{}
@begin.register
def begin_plain(env: Plain, rng):
    return env

@draw.register
def draw_plain(env: Plain, chunk, rng):
    chunk.contexts[:], chunk.noise[:] = 1.0, 0.0
    chunk.means[:] = np.arange(env.n_arms)
"""


TEXTS = {
    "no text": "",
    "a text": '    def __repr__(self):\n        return "Plain"\n',
    "a text with an address": '    def __repr__(self):\n        return f"Plain({object()})"\n',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_an_edit_of_a_plain_class_is_raced_again_and_nothing_else(tmp_path, monkeypatch, text):
    calls, original = [], run.race
    monkeypatch.setattr(run, "race", lambda *args, **options: calls.append(1) or original(*args, **options))
    path = tmp_path / f"plain{len(text)}.py"
    for factor in ("", "", " * 5"):
        path.write_text(PLAIN.format(text).replace("arange(env.n_arms)", f"arange(env.n_arms){factor}"))
        monkeypatch.setattr("albatross.own_files._LOADED", {})
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
        env = problems.read_problem(f"{path}:Plain(horizon=60)").env
        run.run({"mine": Problem(env, 60, trials=2, biases=False)}, out=tmp_path / "out", seed=0, chosen=["uniform"])
    assert len(calls) == 2
    assert len(list((tmp_path / "out" / "race").glob("mine-*.json"))) == 1


def test_a_race_depends_on_its_environment_its_policies_and_the_simulation_alone():
    bases = (LinTS(sigma=1.0), UCB(sigma=1.0))
    assert run.sources(SMALL["small"].env, {"ed2rb": ED2RB(bases=bases)}) == [
        "albatross.environments.mixture",
        "albatross.policies.arms.lints",
        "albatross.policies.arms.ucb",
        "albatross.policies.over_policies.ed2rb",
        "albatross.simulation",
    ]


def test_problems_are_read_from_words():
    problem = problems.read_problem("FixedArms(n_arms=4, dim=2, theta=[1.0, 0.0], horizon=70)")
    assert isinstance(problem.env, FixedArms)
    assert (problem.horizon, problem.biases) == (70, False)
    assert problems.read_problem("Mixture(n_arms=4, dim=2)").biases


@pytest.mark.parametrize(
    "text",
    [
        "Mixture",
        "Mixture(4)",
        "Mixture(4, dim=2)",
        "Casino(n_arms=4)",
        "Mixture(n_arms=f())",
        "Mixture(arms=4)",
        "Mixture(n_arms=0, dim=1)",
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, text):
    outcome = CliRunner().invoke(albatross, ["race", "--problem", text, "--out", str(tmp_path)])
    assert outcome.exit_code == 1
    assert outcome.output.startswith("Error: ")
    assert "Traceback" not in outcome.output


@pytest.mark.parametrize("horizon", [0, -3, 1e9, "'long'"])
def test_a_race_of_no_number_of_rounds_leaves_nothing_behind(tmp_path, horizon):
    text = f"Mixture(n_arms=2, dim=2, horizon={horizon})"
    outcome = CliRunner().invoke(
        albatross, ["race", "--problem", text, "--policies", "uniform", "--out", str(tmp_path)]
    )
    assert outcome.exit_code == 1, outcome.output
    assert "horizon must be" in outcome.output
    assert list(tmp_path.iterdir()) == []


def test_an_oracle_cannot_race(tmp_path):
    outcome = CliRunner().invoke(albatross, ["race", "--policies", "oracle", "--out", str(tmp_path)])
    assert outcome.exit_code == 1
    assert outcome.output.startswith("Error: there is no oracle here")


def test_problems_with_arms_and_on_the_ball_are_raced_apart(tmp_path):
    texts = ("Mixture(n_arms=4, dim=2, horizon=30)", "Ball(dim=3, sparsity=1, smallest=0.5, noise_sd=0.0, horizon=30)")
    families = problems.own_families(texts)
    assert {title: list(family) for title, family in families.items()} == {
        "your problems": ["1: Mixture"],
        "your problems on the ball": ["2: Ball"],
    }
    finished = run.run_all(families, out=tmp_path, seed=0, chosen=["albatross", "albatross-dim"])
    assert [[line.name for line in result.standings] for result in finished.values()] == [
        ["albatross"],
        ["albatross-dim"],
    ]


def test_the_command_races_on_a_problem_of_ones_own(tmp_path):
    outcome = CliRunner().invoke(
        albatross,
        [
            *(
                "race",
                "--problem",
                "Mixture(n_arms=4, dim=2, horizon=200)",
                "--policies",
                "albatross,uniform,ball-oful",
            ),
            *("--out", str(tmp_path)),
        ],
    )
    assert outcome.exit_code == 0, outcome.output
    assert "albatross" in outcome.output
    assert "ball-oful" not in outcome.output  # it cannot play this
    assert (tmp_path / "race" / "figure.png").stat().st_size > 5_000
    table = duckdb.sql(f"SELECT * FROM '{tmp_path}/race/regret-your-problems.parquet'").fetchnumpy()
    assert sorted(set(table["policy"])) == ["albatross", "uniform"]
    assert table["trial"].max() == 19


def test_albatross_has_the_smallest_worst_ratio_of_the_usual_policies(tmp_path):
    found = run.run(
        problems.in_short(problems.ARMS), out=tmp_path, seed=0, chosen=["albatross", "lints", "greedy", "ucb"]
    )
    lines = standings(found)
    assert lines[0].name == "albatross"
    assert lines[0].worst < 3.0

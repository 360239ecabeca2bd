"""Policies named in words, and the numbers of a comparison."""

from __future__ import annotations

import math

import numpy as np
import pytest

from albatross import policies
from albatross.policies.in_words import build, split_names
from albatross.race.compare import ball, lines, mixture, nested
from albatross.race.problems import read_problem
from albatross.runs import Run

KNOWN = {"sigma": 0.7, "norm_bound": 10.0}


def test_what_the_problem_tells_is_filled_in_where_a_policy_must_know_it():
    assert build("oful-plus", KNOWN) == policies.OFULPlus(norm_bound=10.0, sigma=0.7)
    assert build("lints", KNOWN) == policies.LinTS(sigma=0.7)
    assert build("greedy", KNOWN) == policies.Greedy()


def test_alb_norm_is_told_no_norm_unless_the_text_says_so():
    assert build("alb-norm", KNOWN) == policies.ALBNorm(sigma=0.7)
    assert build("alb-norm(norm_bound=3, restart=True)", KNOWN) == policies.ALBNorm(
        sigma=0.7, norm_bound=3, restart=True
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("linear", "there is no policy 'linear'; known are albatross, alb-norm, "),
        ("LinTS", r"there is no policy 'LinTS': did you mean lints\? `albatross policies` lists all"),
        ("LinTs(sigma=1)", r"did you mean lints\?"),
        ("OFULPlus", r"did you mean oful-plus\?"),
        ("albatros", r"did you mean albatross\?"),
        ("albatross dim", r"did you mean albatross-dim\?"),
        ("albatross LinTS(sigma=1)", "'albatross LinTS': separate names by commas, albatross,lints$"),
        ("random", "there is no policy 'random'; known are albatross, alb-norm, "),
        ("ucb(width=3)", "ucb has no parameter 'width'; it has sigma, delta, form, scale, ties"),
        ("ucb(3)", r"write it as ucb\(parameter=value"),
        ("ucb(scale=", r"write it as ucb\(parameter=value"),
        ("ucb(scale=open('x'))", r"write it as ucb\(parameter=value"),
        ("ucb(scale=-1)", "scale must be a positive number"),
        ("ucb(scale=1, scale=2)", r"write it as ucb\(parameter=value"),
    ],
)
def test_a_text_that_names_no_policy_is_explained(text, message):
    with pytest.raises(ValueError, match=message):
        build(text, KNOWN)


HOSTILE = {
    "400 digits": "9" * 400,
    "5,000 digits": "9" * 5_000,
    "an unhashable key": "{[]: 1}",
    "minus signs": "-" * 9_000 + "1",
    "a long sum": "1+" * 4_000 + "1",
    "a deep list": "[" * 4_000 + "]" * 4_000,
    "a deep call": "LinTS(sigma=" * 500 + ")" * 500,
    "keywords of keywords": "1, **{'delta': 0.1}",
    "nothing": "",
    "a null": "\0",
    "half a letter": "'\ud800'",
    "100,000 minus signs": "-" * 100_000 + "1",
    "a sum of 50,000": "1+" * 50_000 + "1",
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda text: build(text, KNOWN), "oful(sigma={})"),
        (lambda text: build(text, KNOWN), "corral(bases=(LinTS(sigma={}), UCB()))"),
        (read_problem, "Mixture(n_arms=3, dim=2, noise_sd={})"),
        (read_problem, "Ball(dim=3, sparsity={}, smallest=0.1)"),
    ],
    ids=["policy", "policy in a policy", "problem", "ball"],
)
def test_no_value_breaks_the_reader_and_the_error_is_one_line_that_can_be_read(read, text, value):
    with pytest.raises(ValueError) as caught:
        read(text.replace("{}", value))
    said = str(caught.value)
    assert len(said) < 700
    assert said.isprintable()


@pytest.mark.parametrize("text", ["lints " * 50_000, "lints(" * 50_000, "x" * 100_000])
def test_a_long_text_is_not_repeated_in_full(text):
    with pytest.raises(ValueError) as caught:
        [build(name, KNOWN) for name in split_names(text)]
    assert len(str(caught.value)) < 700


def test_commas_inside_parentheses_do_not_separate():
    assert split_names(" ucb(scale=1, delta=0.2) ,lints,, ") == ["ucb(scale=1, delta=0.2)", "lints"]


def test_differences_are_paired_and_intervals_are_students():
    def run(final):
        curve = np.array(final, float)[:, None]
        return Run(None, np.array([100]), curve, curve, [], seconds=0.003)

    first, second = lines({"one": run([1, 2, 3]), "two": run([2, 3, 4.3])})
    assert first.mean == 2.0
    assert first.margin == pytest.approx(4.302652729911275 / math.sqrt(3))
    assert second.difference == pytest.approx(1.1)
    assert second.difference_margin == pytest.approx(4.302652729911275 * np.std([1, 1, 1.3], ddof=1) / math.sqrt(3))
    assert first.microseconds == pytest.approx(10.0)


@pytest.mark.parametrize("text", ["greedy,lints(sigma=1", "greedy,lints(sigma=1)),ucb", "greedy)"])
def test_parentheses_that_do_not_match_are_an_error_and_drop_no_policy(text):
    with pytest.raises(ValueError, match="do not match"):
        split_names(text)


def test_the_oracle_takes_parameters_like_any_other():
    known = mixture(arms=5, dim=3, theta_norm=0.5, noise_sd=0.7, norm_bound=10.0).known
    assert build("oracle(scale=1)", known) == policies.OFULPlus(norm_bound=0.5, sigma=0.7, scale=1)


def test_on_the_ball_the_oracle_is_told_the_support_and_among_maps_the_map():
    known = ball(dim=5, sparsity=2, smallest=0.3, noise_sd=0.7).known
    told = build("oracle(switch=1.0)", known)({"support": [1, 4]})
    assert told == policies.BallOFUL(sigma=0.7, switch=1.0, support=(1, 4))
    known = nested(arms=5, dims=(2, 4), true_dim=2, theta_norm=1.0, noise_sd=0.7).known
    told = build("oracle(alpha=2.0)", known)({"dim": 2})
    assert told == policies.FirstFeatures(policy=policies.LinUCB(alpha=2.0, biases=False), dim=2)


def test_policies_inside_policies_are_written_with_their_classes():
    policy = build("ed2rb(bases=(LinUCB(alpha=2), Corral(bases=[UCB(), LinTS(sigma=1)], eta=0.5)), share=True)", KNOWN)
    inner = policies.Corral(bases=(policies.UCB(sigma=0.7), policies.LinTS(sigma=1)), eta=0.5)
    assert policy == policies.ED2RB(bases=(policies.LinUCB(alpha=2), inner), share=True)


def test_what_a_policy_must_be_told_is_said():
    with pytest.raises(ValueError, match="alb-dim-finite needs 'dims'"):
        build("alb-dim-finite", KNOWN)
    with pytest.raises(ValueError, match="LinUCB has no parameter 'beta'"):
        build("ed2rb(bases=(LinUCB(beta=2), UCB()))", KNOWN)

"""What every policy is held to: the checks of `albatross.contract`, and what the library's own promise besides."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from processes import LIMIT
from stepping import same_state, state_of
from variants import DIM, N_ARMS, ON_THE_BALL, VARIANTS, case, new_agent, offered

from albatross import policies
from albatross.contract import Broken, arms_and_scores, checks, checks_for

every_policy = pytest.mark.parametrize("name", VARIANTS)
every_policy_with_arms = pytest.mark.parametrize("name", [name for name in VARIANTS if name not in ON_THE_BALL])


def test_every_policy_of_the_catalogue_is_held_to_the_contract():
    assert {type(policy) for policy in VARIANTS.values()} == {entry.policy for entry in policies.CATALOGUE.values()}


@pytest.mark.parametrize(
    ("name", "check"),
    [pytest.param(name, check, id=f"{check.__name__}-{name}") for name in VARIANTS for check in checks_for(case(name))],
)
def test_every_policy_keeps_the_contract(name, check):
    check(case(name))


def test_a_policy_that_hardly_beats_uniform_play_is_told_by_how_much(monkeypatch):
    monkeypatch.setattr(checks, "ratio_to_uniform", lambda case: 0.61)
    with pytest.raises(Broken, match=r"^the regret is 0\.61 of that of uniform play, not below 0\.5$"):
        checks.it_beats_uniform_play(case("linucb"))


def test_without_compilation_the_same_arms_are_played():
    script = (
        "import json, sys; sys.path.insert(0, 'tests'); from variants import VARIANTS, case;"
        "from albatross.contract import arms_and_scores;"
        "print(json.dumps({name: arms_and_scores(case(name), 50) for name in VARIANTS}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=os.path.dirname(os.path.dirname(__file__)),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    interpreted = json.loads(done.stdout)
    for name in VARIANTS:
        slow, fast = np.array(interpreted[name]), np.array(arms_and_scores(case(name), 50))
        assert slow[:, 0].tolist() == fast[:, 0].tolist(), name
        np.testing.assert_allclose(slow, fast, rtol=1e-9, atol=1e-12, err_msg=name)


@every_policy_with_arms
def test_its_diagnostics_count_the_pulls_of_every_arm(name):
    assert new_agent(name, seed=0).diagnostics()["pulls"].shape == (N_ARMS,)


@every_policy_with_arms
def test_input_that_is_not_finite_or_of_the_wrong_shape_is_refused_before_the_state_changes(name):
    agent, rng = new_agent(name, seed=0), np.random.default_rng(1)
    for _ in range(30):
        agent.update(agent.select(*offered(name, rng)), float(rng.standard_normal()))
    decision = agent.select(np.ones((N_ARMS, DIM)))
    before, stream = state_of(agent), json.dumps(agent._rng.bit_generator.state, default=str)
    spoilt = np.ones((N_ARMS, DIM))
    spoilt[2, 1] = np.nan
    for wrong in (spoilt, np.ones((N_ARMS, DIM + 1)), np.ones((N_ARMS - 1, DIM)), np.full((N_ARMS, DIM), np.inf)):
        with pytest.raises(ValueError):
            agent.select(wrong)
    for wrong in (np.nan, np.inf, "much", None):
        with pytest.raises(ValueError):
            agent.update(decision, wrong)
    assert same_state(before, state_of(agent))
    assert stream == json.dumps(agent._rng.bit_generator.state, default=str)
    agent.update(decision, 1.0)


@pytest.mark.parametrize("name", policies.CATALOGUE)
def test_its_docstring_cites_its_paper(name):
    entry = policies.CATALOGUE[name]
    cited = re.search(r"\d{4}", entry.policy.__doc__)
    assert cited or name == "uniform"


@every_policy
def test_its_repr_makes_it_again_and_equality_is_by_type_and_value(name):
    policy = VARIANTS[name]
    assert eval(repr(policy), vars(policies)) == policy
    assert all(policy != other for other in VARIANTS.values() if other is not policy)

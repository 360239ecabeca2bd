"""UCB and UCB1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from golden_norm import CASES, Case, assert_plays_as

from albatross import Agent, policies


@pytest.mark.parametrize("name", CASES)
def test_it_plays_the_golden_case(name):
    case = Case(name)
    assert_plays_as(case, "ucb", Agent(policies.UCB(**case.index), n_arms=case.n_arms, dim=case.dim))


def test_ucb1_adds_the_published_width():
    agent = Agent(policies.UCB1(scale=2.0), n_arms=3, dim=1)
    for reward in (0.5, 0.1, 0.2, 0.7):
        agent.update(agent.select(np.ones(1)), reward)
    decision = agent.select(np.ones(1))
    plays, mean = agent.diagnostics()["pulls"][decision.arm], agent.diagnostics()["means"][decision.arm]
    width = 2.0 * math.sqrt(2.0 * math.log(4) / plays)
    assert decision.width == pytest.approx(width, rel=1e-12)
    assert decision.score == pytest.approx(mean + width, rel=1e-12)

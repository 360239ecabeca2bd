"""What the bar of an evaluation counts."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from albatross import environments, evaluation, policies

N = 60
RNG = np.random.default_rng(0)
LOG = environments.Logged(
    contexts=RNG.standard_normal((N, 3, 2)),
    actions=RNG.integers(3, size=N),
    rewards=RNG.random(N),
    propensities=np.full(N, 1 / 3),
)


@pytest.fixture
def bars(monkeypatch):
    """The total of every bar that was asked for, and all by which it advanced."""
    seen = []

    @contextmanager
    def bar(total, wanted):
        advanced = []
        seen.append((total, advanced))
        yield advanced.append

    monkeypatch.setattr(evaluation.playing, "progress_bar", bar)
    return seen


def test_no_bar_is_drawn_where_there_are_no_standard_streams(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)  # as in a program without a console
    found = evaluation.evaluate({"uniform": np.full((N, 3), 1 / 3)}, LOG)
    assert found["uniform"].ips.value == pytest.approx(LOG.rewards.mean())


def test_every_choice_and_every_row_learnt_is_a_step_so_that_the_time_left_is_right(bars):
    named = {"draws": policies.LinTS(), "draws nothing": policies.UCB()}
    evaluation.evaluate(named, LOG, folds=3, trials=2, draws=10)
    [(total, advanced)] = bars
    predicting, learning, replaying = 3, 2, 2
    assert total == N * (predicting + 2 * (learning + replaying) + 10 + 1)
    assert sum(advanced) == total


def test_probabilities_count_their_draws_too(bars):
    evaluation.probabilities(policies.LinTS(), LOG, trained_on=slice(40), rows=slice(40, None), draws=7)
    [(total, advanced)] = bars
    assert sum(advanced) == total == 40 + 20 * 7

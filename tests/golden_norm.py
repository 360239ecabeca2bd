"""The golden cases of the norm half, made by an independent reference, and how to play them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "golden" / "norm"
CASES = ("literal", "recommended", "recommended_tau")


class Case:
    """One case: its arrays by name, and the keywords of the policies that play it."""

    def __init__(self, name):
        with np.load(FOLDER / f"{name}.npz") as file:
            self.arrays = {key: file[key] for key in file.files}
        given = json.loads(str(self.arrays["params"]))
        form = given["conf"]
        assert form["c_K"] == form["c_mu"]
        self.horizon, self.n_arms, self.dim = self.arrays["contexts"].shape
        self.index = {
            "sigma": float(self.arrays["sigma"]),
            "delta": given["delta1"],
            "form": form["form"],
            "scale": form["c_K"],
            "ties": "first",
        }
        self.ball = {
            **self.index,
            "rho_min": form["rho_min"],
            "estimator": {"frozen": "paper", "centered": "centered"}[given["residual"]],
        }
        self.epochs = {
            **self.ball,
            "norm_bound": given["b1"],
            "epoch_length": given["T1"],
            "restart": given["restart"],
        }
        if given["b1"] is None:
            self.epochs.update(explore=given["tau"], explore_arm=given["explore_arm"], delta_explore=given["delta_s"])

    def __getitem__(self, key):
        return self.arrays[key]

    def play(self, agent):
        """Play all rounds; yields after each its arm, its reward and the regret so far."""
        means = self["mu"] + self["contexts"] @ self["theta"]
        regret = 0.0
        for t in range(self.horizon):
            decision = agent.select(self["contexts"][t])
            reward = means[t, decision.arm] + self["noise"][t, decision.arm]
            agent.update(decision, reward)
            regret += means[t].max() - means[t, decision.arm]
            yield decision.arm, reward, regret


def assert_plays_as(case, prefix, agent):
    """Arms equal round for round, floats to rtol 1e-7."""
    arms, rewards, regret = (np.array(column) for column in zip(*case.play(agent)))
    assert arms.tolist() == case[f"{prefix}_arms"].tolist()
    np.testing.assert_allclose(regret, case[f"{prefix}_cumreg"], rtol=1e-7, atol=1e-12)
    if f"{prefix}_rewards" in case.arrays:
        np.testing.assert_allclose(rewards, case[f"{prefix}_rewards"], rtol=1e-7)

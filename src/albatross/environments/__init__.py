"""Environments: the problems that policies are simulated on, and logs to evaluate them on."""

from __future__ import annotations

from albatross.environments.ball import Ball
from albatross.environments.clusters import Clusters
from albatross.environments.drifting import Drifting
from albatross.environments.fixed_arms import FixedArms
from albatross.environments.logged import Logged
from albatross.environments.mixture import Mixture
from albatross.environments.nested import Nested
from albatross.environments.recorded import Recorded

__all__ = ["Ball", "Clusters", "Drifting", "FixedArms", "Logged", "Mixture", "Nested", "Recorded"]

"""The paper's panels, and some beyond the paper: the settings of each, and the function that runs it."""

from __future__ import annotations

from albatross.experiments import (
    dim_refinement,
    dim_regret,
    drift,
    flock,
    nested,
    news,
    norm_estimates,
    norm_regret,
    rated_rows,
    scaling,
    simple_bandit,
    theorems,
    users,
)
from albatross.experiments.panel import Panel

PANELS: dict[str, Panel] = {
    **norm_regret.PANELS,
    **norm_estimates.PANELS,
    **dim_regret.PANELS,
    **dim_refinement.PANELS,
    **rated_rows.PANELS,
    **nested.PANELS,
    **simple_bandit.PANELS,
    **users.PANELS,
    **flock.PANELS,
    **drift.PANELS,
    **scaling.PANELS,
    **dim_regret.LITERAL,
    **news.PANELS,
    **theorems.PANELS,
}

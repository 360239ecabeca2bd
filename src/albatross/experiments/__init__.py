"""The paper's panels: for each its settings, what it runs and how it is drawn."""

from __future__ import annotations

from albatross.experiments import (
    dim_refinement,
    dim_regret,
    nested,
    norm_estimates,
    norm_regret,
    rated_rows,
    scaling,
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
    **users.PANELS,
    **scaling.PANELS,
    **dim_regret.LITERAL,
    **theorems.PANELS,
}

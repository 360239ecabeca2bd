"""results/report.html: one page that works offline, with every panel and every claim that is in a results folder.

The same results give the same page, byte for byte: it carries no date and no duration.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from albatross.report import claims
from albatross.report.figures import panels, race
from albatross.report.tables import policy_rows
from albatross.store.files import write_text
from albatross.store.results import Stored

# What a reader should know before looking at a panel; what was found is measured, and does not stand here.
CAPTIONS = {
    "a": "theta* has norm 0.1, and OFUL+ is told 10. Dashed: the constants of Appendix A to the letter. Thompson "
    "sampling and ridge greedy ask for no norm.",
    "b": "theta* has norm 1, and OFUL+ is told 10. Dashed: the constants of Appendix A to the letter. UCB does not "
    "look at contexts.",
    "c": "What ALB-Norm believes of the norm after each epoch, on the problems of panels a and b: in the default "
    "reading, with the paper's own estimator, and with all of Appendix A.",
    "d": "20 of 500 coordinates matter. ALB-Dim explores outside the unit ball.",
    "e": "20 of 200 coordinates matter. ALB-Dim explores outside the unit ball.",
    "e-literal": "Panel e with exploration on the unit sphere, as the paper has it. The first phase is then 140 "
    "million rounds long, because a shorter one does not find the support.",
    "f": "Which coordinates ALB-Dim holds active, phase by phase, on the problems of panels d and e.",
    "g": "Clusters of rated rows are arms. Reward so far, as a multiple of what uniform play gets. The first "
    "reading has a true model behind it; the other two are ill-posed and stand beside it for comparison.",
    "h": "ALB-Norm's estimate over the norm, from a first bound of 25 on. Every draw takes other columns and clusters.",
    "nested": "Beyond the paper's figure: finitely many arms, and maps of 5, 10 and 20 features of which the smallest "
    "is enough. Solid: SupLinRel, dashed: SupLinUCB, dotted: LinUCB.",
    "users": "Beyond the paper's figure: the motivating example. Every user has a bandit of their own. OFUL+ and OSOM "
    "are told one bound that fits all users; ALB-Norm looks for each user's own.",
    "scaling": "Beyond the paper's figure: final regret against one property of the problem, the others fixed, on log "
    "axes. After a name stands its slope. Dotted: what of a theorem's bound grows with T, scaled to meet the adaptive "
    "policy's last point. AlbatrossDim plays far fewer rounds.",
}


def write_report(folder: Path) -> Path:
    """Write report.html and all figures into a results folder, from what is stored there; returns the page's path.

    Nothing is run.
    """
    stored, path = Stored(folder), folder / "report.html"
    page = render(stored)
    panels.write_figures(stored)
    write_text(path, page)
    return path


def render(stored: Stored) -> str:
    """The page."""
    stored.check_format()
    if not stored.summaries and not stored.standings:
        raise ValueError(f"there are no results in {stored.folder}: run `albatross reproduce` first")
    templates = Environment(
        loader=PackageLoader("albatross.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["short"] = short
    templates.filters["wanted"] = wanted
    results = claims.measured(stored)
    verdicts = [claims.HOLDS, claims.CHANGED, claims.FAILS, claims.MISSING]
    return templates.get_template("report.html").render(
        plotly=get_plotlyjs(),
        results=results,
        counts={verdict: sum(each.verdict == verdict for each in results) for verdict in verdicts},
        panels=[_section(stored, name) for name in stored.summaries],
        race=_race(stored),
        runs=_runs(stored),
        doubts=_doubts(stored),
    )


def short(value: float) -> str:
    """Three digits, with commas where it is long.

    >>> short(2.3841), short(458_200.0), short(-0.26)
    ('2.38', '458,200', '-0.26')
    """
    return f"{value:,.0f}" if abs(value) >= 1_000.0 else f"{value:.3g}"


def wanted(limits: tuple[float, float]) -> str:
    """A range in words.

    >>> wanted((1.5, 3.0)), wanted((5.0, math.inf)), wanted((-math.inf, 2.0))
    ('1.5 to 3', 'at least 5', 'at most 2')
    """
    low, high = limits
    if math.isinf(high):
        return f"at least {short(low)}"
    return f"at most {short(high)}" if math.isinf(low) else f"{short(low)} to {short(high)}"


def _section(stored: Stored, name: str) -> dict[str, Any]:
    """What the template needs of a panel."""
    summary = stored.summaries[name]
    headings, rows = policy_rows(summary)
    return {
        "name": name,
        "title": panels.title(name),
        "caption": CAPTIONS.get(name, ""),
        "trials": summary["trials"],
        "figures": panels.plots(stored, name),
        "headings": headings,
        "rows": rows,
        "claims": summary["claims"],
        "settings": summary["settings"],
    }


def _race(stored: Stored) -> list[dict[str, Any]]:
    """A family of problems each: its figure, its standings and the problems themselves."""
    found = []
    for title, lines in stored.standings.items():
        names = list(lines[0]["ratios"])
        worst_on = {line["name"]: max(line["ratios"], key=line["ratios"].get) for line in lines}
        found.append(
            {
                "title": title,
                "figure": race.plot(lines),
                "lines": lines,
                "worst_on": worst_on,
                "problems": [stored.races[name] for name in names if name in stored.races],
            }
        )
    return found


def _runs(stored: Stored) -> list[dict[str, Any]]:
    """With what seed and what versions results were made, and which."""
    found: list[dict[str, Any]] = []
    made = {**stored.summaries, **{f"race: {name}": race for name, race in stored.races.items()}}
    for name, each in made.items():
        same = next((run for run in found if (run["seed"], run["versions"]) == (each["seed"], each["versions"])), None)
        if same is None:
            found.append(same := {"seed": each["seed"], "versions": each["versions"], "names": []})
        same["names"].append(name)
    return found


def _doubts(stored: Stored) -> list[str]:
    """What in this very folder should make a reader careful."""
    found = []
    few = [name for name, summary in stored.summaries.items() if summary["trials"] < 5]
    if few:
        found.append(f"Fewer than 5 trials were run of {_listed(few)}: intervals are wide, or there are none.")
    if len(_runs(stored)) > 1:
        found.append("Not everything here was made with the same seed and versions; the end of the page says what was.")
    return found


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]

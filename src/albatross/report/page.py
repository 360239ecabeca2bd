"""results/report.html: one page that works offline, with every panel and every claim of a results folder.

The same results give the same page, byte for byte: it has no date and no durations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from albatross.report import claims
from albatross.report.claims.engine import EXPERIMENT, MISSING, OURS, PAPERS, STATEMENT, VERDICTS, Result
from albatross.report.figures import panels, race
from albatross.report.tables import policy_rows
from albatross.report.wording import short, trials, wanted
from albatross.store.files import write_text
from albatross.store.results import Stored, check_ours, usable

_INSIDE = (
    "ALB-Dim explores outside the unit ball. Beside it, a form of ALB-Dim that stays inside: it learns from all plays, "
    "also from OFUL's own, and confidence intervals take the place of its threshold. SL-UCB stays inside, too."
)
# What a reader should know before looking at a panel; what was found is measured, and does not stand here.
CAPTIONS = {
    "a": "theta* has norm 0.1, and OFUL+ is given 10. Every reading has its own OFUL+ and its own oracle. Thompson "
    "sampling and ridge greedy need no norm, and Albatross is given nothing at all.",
    "b": "theta* has norm 1, and OFUL+ is given 10. Every reading has its own OFUL+ and its own oracle. UCB ignores "
    "contexts.",
    "c": "ALB-Norm's estimate of the norm after each epoch, on the problems of panels a and b: in the default "
    "reading, with the paper's own estimator, and with all of Appendix A.",
    "d": f"20 of 500 coordinates matter. {_INSIDE}",
    "e": f"20 of 200 coordinates matter. {_INSIDE}",
    "e-literal": "Panel e with exploration on the unit sphere, as the paper has it. The first phase is then 140 "
    "million rounds long, because a shorter one does not find the support.",
    "f": "The coordinates that ALB-Dim keeps active, phase by phase, on the problems of panels d and e. Its monotone "
    "ablation, ours, never takes back a coordinate that it has dropped.",
    "g": "Clusters of rated rows are arms. Cumulative reward, as in the paper, here also of OFUL+ given 25 and given "
    "the norm. The first reading has a true model behind it; the other two are ill-posed and stand beside it for "
    "comparison. The band is ALB-Norm's: draws differ more than policies.",
    "h": "ALB-Norm's estimate of the norm, from a first bound of 25 on, and the norm itself. Every draw has its own "
    "columns and clusters.",
    "simple": "Beyond the paper's figure: its Remark 3. Contexts say nothing about rewards. ALB-Norm does not know it, "
    "UCB ignores them. The remark's proviso is K > d.",
    "nested": "Beyond the paper's figure: finitely many arms, and maps of 5, 10 and 20 features of which the smallest "
    "is enough. Dashed: Algorithm 3 to the letter.",
    "users": "Beyond the paper's figure: the motivating example. Every user has a bandit of their own. OFUL+ and OSOM "
    "are given one bound that fits all users; ALB-Norm looks for each user's own.",
    "flock": "Beyond the paper's figure: users who learn from each other. A flock and one Albatross per user are given "
    "nothing; HierTS is given the covariance of the users, the size of their mean, and the noise. Newcomers come when "
    "others have been there for long, and only their regret counts.",
    "drift": "Beyond the paper's figure: theta* changes over time. Of Albatross with a half-life, D-LinUCB and "
    "SW-LinUCB the best setting of each problem is shown, chosen in hindsight. D-LinUCB and SW-LinUCB "
    "are given that there are no biases, which is wrong in the last problem.",
    "scaling": "Beyond the paper's figure: final regret against one property of the problem, the others fixed, on log "
    "axes. The number after a name is its slope. Dotted: the part of a theorem's bound that grows with T, "
    "scaled to meet the adaptive policy's last point. AlbatrossDim plays far fewer rounds.",
    "news": "Beyond the paper's figure: the motivating example on real headlines. Readers differ in the norm and in "
    "the support of their interest. ALB-Norm estimates its first bound, OFUL+ and OSOM are given one bound for all "
    "readers, the oracles are given each reader's norm or map. Dashed: the main text with the paper's own estimator.",
    "theorems": "Beyond the paper's figure: problems on which all conditions of the theorems hold. To the letter; with "
    "contexts centred within arms; and with the sets, widths and sample sizes that the documentation proves.",
}


def write_report(folder: Path) -> Path:
    """Write report.html and all figures of a results folder from its tables; return its path. Nothing is run."""
    stored, path = Stored(folder), folder / "report.html"
    check_ours(folder, [path.name])
    page = render(stored)
    panels.write_figures(stored)
    write_text(path, page)
    return path


def render(stored: Stored) -> str:
    """Return the page."""
    stored.check_format()
    if not stored.summaries and not stored.standings:
        raise ValueError(f"there are no results in {stored.folder}: run `albatross reproduce` first")
    with usable(stored.folder):
        return _page(stored)


def _page(stored: Stored) -> str:
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
    sections = [shown(stored, name) for name in stored.summaries]  # first: they know which panel is damaged
    results = claims.measured(stored)
    return templates.get_template("report.html").render(
        plotly=get_plotlyjs(),
        there=[*stored.summaries, *["race"] * bool(stored.standings)],
        groups=[_group(results, whose) for whose in _GROUPS],
        extent=_extent(stored),
        panels=[{**section, "judged": _judged(results, section["name"])} for section in sections],
        race=_race(stored),
        runs=_runs(stored),
        doubts=_doubts(stored),
        kinds={EXPERIMENT: "an experiment of the paper", STATEMENT: "a statement of the paper"},
    )


_GROUPS = {
    PAPERS: (
        "claims",
        "The paper's claims",
        "What the paper reports of its experiments, and what it proves or states, with the words that were judged. The "
        "default reading stands first. To hold plainly, a claim must hold to the letter.",
    ),
    OURS: (
        "questions",
        "Our own questions",
        "What the paper does not claim and a reader may want to know. These are not counted among its claims.",
    ),
}


def _group(results: Sequence[Result], whose: str) -> dict[str, Any]:
    """Return the paper's claims or ours, with those that were not run apart."""
    id, title, about = _GROUPS[whose]
    mine = [result for result in results if result.claim.whose == whose]
    return {
        "id": id,
        "title": title,
        "about": about,
        "counts": {verdict: sum(each.verdict == verdict for each in mine) for verdict in VERDICTS},
        "run": [each for each in mine if each.verdict != MISSING],
        "not_run": [each for each in mine if each.verdict == MISSING],
    }


def _extent(stored: Stored) -> str:
    """Return the number of trials, in words."""
    run = [summary["trials"] for summary in stored.summaries.values()]
    least, most = min(run, default=0), max(run, default=0)
    numbers = f"{least} to {trials(most)}" if least < most else trials(most)
    panels = [f"{len(run)} panel{'s' * (len(run) > 1)} of {numbers}"] if run else []
    return f"Run: {' and '.join([*panels, *['the race'] * bool(stored.standings)])}."


def shown(stored: Stored, name: str) -> dict[str, Any]:
    """Collect what the template shows of a panel."""
    with usable(stored.folder / name):
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
            "settings": summary["settings"],
        }


def _judged(results: Sequence[Result], name: str) -> list[Result]:
    """Return the claims that a panel gives numbers to."""
    return [each for each in results if name in each.claim.panels and each.verdict != MISSING]


def _race(stored: Stored) -> list[dict[str, Any]]:
    """Return figure, standings and problems of each family of problems."""
    with usable(stored.folder / "race"):
        return [
            {
                "title": title,
                "figure": race.plot(lines),
                "lines": [_cells(line) for line in lines],
                "problems": [
                    (name, short(stored.races[name]["horizon"]), stored.races[name]["trials"])
                    for name in lines[0]["ratios"]
                    if name in stored.races
                ],
            }
            for title, lines in stored.standings.items()
        ]


def _cells(line: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a policy's line of the standings, cell by cell."""
    ratios = line["ratios"]
    numbers = (
        text
        for key in ("worst", "mean")
        for text in (short(line[key]), "{} to {}".format(*map(short, line[f"{key}_interval"])))
    )
    return line["name"], *numbers, max(ratios, key=ratios.get)


def _runs(stored: Stored) -> list[dict[str, Any]]:
    """Return seeds and versions, each with the results made with them."""
    found: list[dict[str, Any]] = []
    made = {**stored.summaries, **{f"race: {name}": race for name, race in stored.races.items()}}
    for name, each in made.items():
        same = next((run for run in found if (run["seed"], run["versions"]) == (each["seed"], each["versions"])), None)
        if same is None:
            found.append(same := {"seed": each["seed"], "versions": each["versions"], "names": []})
        same["names"].append(name)
    return found


def _doubts(stored: Stored) -> list[str]:
    """List what should make a reader of this folder careful."""
    found = []
    few = [name for name, summary in stored.summaries.items() if summary["trials"] < 5]
    if few:
        which = "each panel" if len(few) == len(stored.summaries) > 1 else _listed(few)
        found.append(f"Fewer than 5 trials were run of {which}: intervals are wide, or there are none.")
    if len(_runs(stored)) > 1:
        found.append("Not everything here was made with the same seed and versions; the end of the page says what was.")
    return found


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]

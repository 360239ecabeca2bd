"""`GET /dashboard` and `GET /dashboard/{model}`: HTML without scripts, under a strict content security policy."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from albatross.features import Category, Number
from albatross.service.dashboard import charts
from albatross.service.dashboard.facts import DAYS, LEAST, MOST_USERS, Facts, Readers, gathered
from albatross.service.dashboard.warnings import warnings
from albatross.service.endpoints import endpoint
from albatross.service.model import Model

if TYPE_CHECKING:
    from albatross.service.http import Service

_MOST_ARMS, _MOST_FEATURES = 20, 20  # rows of a table
_LEGEND = {"policy": "policy", "floor": "floor: random arms", "baseline": "baseline"}
_OUTCOMES = {
    "learnt": "learnt when the reward came",
    "closed": "learnt at the end of the wait",
    "default": "default reward",
    "expired": "expired without a reward",
    "frozen": "not learnt: frozen",
    "frozen_default": "default reward, not learnt: frozen",
    "late": "reward came late",
}


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("albatross.service.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _style() -> str:
    return files("albatross.service.dashboard").joinpath("templates", "style.css").read_text("utf-8")


@cache
def _headers() -> dict[str, str]:
    """Headers of every page: nothing is loaded from anywhere, and only our own style sheet applies."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'none'; frame-ancestors 'none'; "
        "base-uri 'none'"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }


@endpoint("GET", "/dashboard", scope="read", gives="text/html")
async def list_dashboards(service: Service, request: Request, body: bytes) -> Response:
    """Show all models as a page."""
    header = request.headers.get("authorization", "")
    models = [model for name, model in sorted(service.engine.models.items()) if not model.archived]
    mine = [model for model in models if service.keys.may(header, model.name)]
    return _page("models.html", "Albatross", models=mine, curl=_put_curl(_url(request)))


@endpoint("GET", "/dashboard/{model}", scope="read", gives="text/html", statuses=(404,))
async def show_dashboard(service: Service, request: Request, body: bytes) -> Response:
    """Show what a model earns and learns as a page."""
    engine = service.engine
    model = engine.model(request.path_params["model"])
    users = [user for user in model.hot if user in model.bandits]
    sample = users[:: max(1, -(-len(users) // MOST_USERS))]
    smallest = engine.metrics.smallest(model.name)
    # In a thread of its own: it may look at hundreds of users, and others should not wait for it.
    facts = await engine.aside(gathered, engine.store, model, sample, engine.now, smallest)
    return _page("model.html", f"{model.name}: Albatross", **_shown(facts, _url(request)))


def _page(template: str, title: str, **values: Any) -> Response:
    now = datetime.now(UTC).strftime("%d %b %Y, %H:%M").lstrip("0")
    text = _templates().get_template(template).render(title=title, now=now, style=Markup(_style()), **values)
    return Response(text, 200, _headers(), "text/html")


def _shown(facts: Facts, url: str) -> dict[str, Any]:
    """Return the facts as the template takes them."""
    model, readers = facts.model, facts.readers
    return {
        "model": model,
        "facts": facts,
        "days": DAYS,
        "least": LEAST,
        "subtitle": _subtitle(model),
        "warnings": warnings(facts),
        "tiles": _tiles(facts),
        "lines": _lines(facts),
        "legend": [(name, _LEGEND[name]) for name in facts.series],
        "arms": facts.arms[:_MOST_ARMS],
        "more_arms": max(len(facts.arms) - _MOST_ARMS, 0),
        "readers": readers if readers and readers.looked_at else None,
        "norms": _norms(readers) if readers and readers.looked_at else None,
        "kinds": _kinds(readers) if readers else "",
        "examples": readers.examples() if readers else [],
        "no_readers": _no_readers(model, readers),
        "outcomes": [(text, facts.outcomes[name]) for name, text in _OUTCOMES.items() if name in facts.outcomes],
        "delays": [(f"up to {name}" if name != "longer" else name, count) for name, count in facts.delays],
        "propensities": _propensities(facts),
        "features": facts.features[:_MOST_FEATURES],
        "more_features": max(len(facts.features) - _MOST_FEATURES, 0),
        "rank_curl": _rank_curl(url, model),
        "reward_curl": _curl(f"{url}/v1/decisions/$ID/reward", {"value": 1}),
        "share_bar": charts.share_bar,
        "shown": charts.shown,
        "two": charts.two,
        "percent": _percent,
    }


def _subtitle(model: Model) -> str:
    settings = model.settings
    whose = "one bandit per user" if settings.users == "own" else "one bandit for all users"
    parts = (f"policy {settings.policy}", whose, f"mode {settings.mode}", f"floor {settings.floor:g}")
    return f"{', '.join(parts)}, version {model.version}. Counts are of the last {DAYS} days."


def _tiles(facts: Facts) -> list[tuple[str, str]]:
    rewards, model = facts.all_rewards, facts.model
    tiles = [(f"{facts.n_decisions:,}", "decisions"), (f"{rewards.n:,}", "rewards learnt")]
    names = {"policy": "the policy", "floor": "random arms", "baseline": "the baseline"}
    for by, name in names.items():
        cell = facts.rewards.get(by)
        if cell is not None and cell.mean is not None:
            half = f"± {charts.two(cell.half)}, " if cell.half else ""
            tiles.append((charts.shown(cell.mean), f"{half}mean reward of {name}"))
    if facts.agreed.mean is not None:
        tiles.append((_percent(facts.agreed.mean), "of decisions agree with the baseline"))
    if model.settings.users == "own":
        tiles += [(f"{facts.newcomers:,}", "new users"), (f"{model.bandits.n_users:,}", "users in memory")]
    tiles.append((f"{len(model.fold.open):,}", "open decisions in memory"))
    return tiles


def _lines(facts: Facts) -> Markup | None:
    if not facts.series:
        return None
    said = "; ".join(f"{name} {charts.shown(cell.mean or 0.0)}" for name, cell in facts.rewards.items())
    return charts.lines(facts.series, first=facts.first, last=facts.last, label=f"Mean reward over time. {said}")


def _norms(readers: Readers) -> Markup:
    said = f"{len(readers.outlet)} outlet readers, {len(readers.topic)} topic readers"
    return charts.histogram(readers.bins(), ("outlet", "topic"), label=f"Users by norm: {said}", unit="norm")


def _kinds(readers: Readers) -> str:
    outlet = readers.shares["outlet readers"]
    return f"The population has learnt a share of {_percent(outlet)} outlet readers."


def _no_readers(model: Model, readers: Readers | None) -> str:
    if readers is not None and readers.n:
        return "Kinds of users are not known before the first look at the population."
    if readers is not None:
        return "No user is in memory: users are read from the log when they come."
    if model.settings.users == "shared":
        return "All users share one bandit."
    return f"Every user has a bandit of their own, {model.settings.policy}. Only a flock compares users."


def _propensities(facts: Facts) -> list[tuple[str, str]]:
    active = len(facts.model.counted_arms)
    weighed, effective = facts.weight.n, facts.effective
    rows = [("Decisions with a known propensity", f"{weighed:,}")]
    if effective is not None:
        rows.append(("Effective decisions for a uniform policy", f"{effective:,.0f}"))
    if facts.smallest is not None:
        rows.append(("Smallest propensity since the start", charts.shown(facts.smallest)))
    floor = facts.decisions.get("floor", 0)
    rows.append(("Random plays of the floor", f"{floor:,} ({_percent(floor / (facts.n_decisions or 1))})"))
    return [*rows, ("Active arms never played", f"{len(facts.never_played):,} of {active:,}")]


# ---------------------------------------------------------------------------------------------------- what to do next


def _url(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _curl(url: str, content: Any, method: str = "") -> str:
    """Return a command for a shell, in which $KEY stands for the key."""
    given = shlex.quote(json.dumps(content, ensure_ascii=False))
    how = f"-X {method} " if method else ""
    lines = (
        f"curl -s {how}{url}",
        '-H "Authorization: Bearer $KEY"',
        "-H 'Content-Type: application/json'",
        f"-d {given}",
    )
    return " \\\n  ".join(lines)


def _rank_curl(url: str, model: Model) -> str:
    context = {name: _example(each) for name, each in model.features.schema.items() if each.of == "situation"}
    of_arm = {name: _example(each) for name, each in model.features.schema.items() if each.of == "arm"}
    arms = {name: {key: value for key, value in of_arm.items() if key not in known} for name, known in _first(model)}
    content = {"user": "u-1", **({"context": context} if context else {}), "arms": arms}
    return _curl(f"{url}/v1/models/{model.name}/rank", content)


def _first(model: Model) -> list[tuple[str, Any]]:
    return [("article 1", {}), ("article 2", {})] if model.settings.passing else list(model.arms.items())[:2]


def _example(feature: Any) -> Any:
    if isinstance(feature, Number):
        return feature.mean
    if isinstance(feature, Category):
        return feature.values[0] if feature.values else "a"
    return [0.0] * feature.length


def _put_curl(url: str) -> str:
    topics = {"kind": "category", "values": ["sport", "politics"]}
    return _curl(f"{url}/v1/models/news", {"arms": ["morning", "evening"], "features": {"topic": topics}}, "PUT")


def _percent(share: float) -> str:
    """Return a share of 1.

    >>> _percent(0.005), _percent(0.25), _percent(0.0)
    ('0.5 %', '25 %', '0 %')
    """
    return f"{100 * share:.0f} %" if share < 0.0005 or share >= 0.0995 else f"{100 * share:.1f} %"

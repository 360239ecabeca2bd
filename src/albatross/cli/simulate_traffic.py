"""`albatross simulate-traffic`."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from albatross.cli.plainly import Real, plainly, seed_option

if TYPE_CHECKING:
    from albatross.traffic import Result

_LOCAL = ("127.0.0.1", "::1", "localhost")


@click.command("simulate-traffic")
@click.argument("url", default="http://127.0.0.1:8000")
@click.option("--key", envvar="ALBATROSS_KEY", required=True, help="Admin key, or set ALBATROSS_KEY.")
@click.option("--decisions", type=click.IntRange(1, 10**7), default=2_000, show_default=True, help="Decisions at most.")
@click.option("--seconds", type=Real(1.0, 86_400.0), default=120.0, show_default=True, help="Time at most.")
@click.option("--rate", type=Real(0.1, 10_000.0), default=100.0, show_default=True, help="Decisions a second.")
@click.option("--users", type=click.IntRange(1, 10**6), default=200, show_default=True, help="Readers.")
@click.option("--arms", type=click.IntRange(2, 500), default=10, show_default=True, help="Outlets.")
@click.option("--delay", type=Real(0.0, 600.0), default=0.5, show_default=True, help="Mean seconds to a reward.")
@click.option("--duplicates", type=Real(0.0, 1.0), default=0.05, show_default=True, help="Share sent twice.")
@click.option(
    "--churn", type=click.IntRange(0), default=500, show_default=True, help="Decisions per new outlet; 0: none."
)
@click.option("--policy", default="flock", show_default=True, help='"flock", or a policy in words.')
@click.option("--model", default=None, help="Name of the new model; by default one that is not in use.")
@click.option("--anywhere", is_flag=True, help="Allow a service on another machine.")
@seed_option
@plainly
def simulate_traffic(url: str, key: str, model: str | None, anywhere: bool, **plan: Any) -> None:
    """Send simulated readers to the service at URL, and say what it earns from them.

    It makes a model of its own. Some readers choose by outlet and others by topic; rewards are clicks that come late
    and out of order, some of them twice. Ctrl-C stops it, and shows what was measured until then.
    """
    from albatross.client import ServiceError, address
    from albatross.traffic import Plan

    if address(url).host not in _LOCAL and not anywhere:
        raise ValueError(f"{url} is not on this machine: add --anywhere if that is meant")
    name = model or f"traffic-{secrets.token_hex(4)}"
    try:
        result = asyncio.run(_run(url, key, name, Plan(**plan)))
    except ServiceError as error:
        raise ValueError(str(error)) from None
    click.echo(_summary(name, result))
    if result.failures:
        sys.exit(1)


async def _run(url: str, key: str, model: str, plan: Any) -> Result:
    from albatross.client import AsyncClient
    from albatross.traffic import Traffic

    async with AsyncClient(url, key) as client:
        traffic = Traffic(client, model, plan)
        loop = asyncio.get_running_loop()

        def stop() -> None:
            traffic.stop()
            loop.remove_signal_handler(signal.SIGINT)  # a second Ctrl-C ends at once

        loop.add_signal_handler(signal.SIGINT, stop)
        shown = 0

        def report(result: Result) -> None:
            nonlocal shown
            if sys.stderr.isatty() and len(result.earned) >= shown + 50:
                shown = len(result.earned)
                click.echo(f"\r{shown} of {plan.decisions} decisions, {result.share():.0%} earned ", nl=False, err=True)

        result = await traffic.run(report)
        if shown:
            click.echo(err=True)
        return result


def _summary(model: str, result: Result) -> str:
    import numpy as np

    n = len(result.earned)
    if not n:
        return "\n".join([f"{model}: no decisions", *_failures(result)])
    early = np.array(result.early)

    def milliseconds(seconds: list[float]) -> str:
        return "p50 {:.1f} ms, p99 {:.1f} ms".format(*(1e3 * np.quantile(seconds, (0.5, 0.99)))) if seconds else "none"

    last = slice(-max(n // 4, 1), None)
    rows = [
        f"{model}: {n:,} decisions",
        f"clicks per decision: {np.mean(result.earned):.3f}, at random {np.mean(result.random):.3f}, "
        f"at best {np.mean(result.best):.3f}",
        f"earned of what is possible beyond random: {result.share():.0%}, in the last quarter {result.share(last):.0%}",
        f"in the first 20 decisions of a reader {result.share(early):.0%}, later {result.share(~early):.0%}",
        f"rank: {milliseconds(result.rank_seconds)}; reward: {milliseconds(result.reward_seconds)}",
        "rewards: " + ", ".join(f"{status} {count:,}" for status, count in result.statuses.most_common()),
    ]
    return "\n".join([*rows, *_failures(result)])


def _failures(result: Result) -> list[str]:
    return [f"failed {count:,} times: {text}" for text, count in result.failures.most_common(5)]

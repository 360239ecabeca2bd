"""One bar for a run of many parts: by what each is expected to take, and by how fast this machine has been so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from albatross.simulation import without_bars

_ALMOST = 0.97  # of a part that takes longer than expected


class Pace:
    """How far a run is, from the expected seconds of its parts and the real ones of those that are done."""

    def __init__(self, expected: Mapping[str, float]) -> None:
        self._expected = dict(expected)
        self._done: dict[str, float] = {}

    def finish(self, name: str, seconds: float) -> None:
        """A part is done, and took so long."""
        self._done[name] = seconds

    def share(self, name: str, seconds: float) -> float:
        """How much of the whole is done, so many seconds into this part."""
        now = min(seconds / (self._expected[name] * self._slowness()), _ALMOST) * self._expected[name]
        return (sum(self._expected[part] for part in self._done) + now) / sum(self._expected.values())

    def left(self, name: str, seconds: float) -> float:
        """Seconds that are left."""
        return (1.0 - self.share(name, seconds)) * sum(self._expected.values()) * self._slowness()

    def _slowness(self) -> float:
        """Of this machine against the one that the expectations are of; parts that were done before say nothing."""
        real = {name: seconds for name, seconds in self._done.items() if seconds > 0.0}
        return sum(real.values()) / sum(self._expected[name] for name in real) if real else 1.0


class WholeRun:
    """Draws the bar while a part runs; on anything but a terminal it only says which part begins."""

    def __init__(self, expected: Mapping[str, float], console: Console) -> None:
        self._pace, self._console = Pace(expected), console
        self._names = list(expected)

    def skip(self, name: str) -> None:
        """A part that was done before."""
        self._pace.finish(name, 0.0)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Run one part in here."""
        begun = time.monotonic()
        title = f"{name}, {self._names.index(name) + 1} of {len(self._names)}"
        with without_bars():
            if self._console.is_terminal:
                with self._bar(name, title, begun):
                    yield
            else:
                self._console.print(title, highlight=False)
                yield
        self._pace.finish(name, time.monotonic() - begun)

    @contextmanager
    def _bar(self, name: str, title: str, begun: float) -> Iterator[None]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %  {task.fields[left]}"),
        )
        over = threading.Event()
        with Progress(*columns, console=self._console, transient=True) as bar:
            task = bar.add_task(title, total=1.0, left="")

            def draw() -> None:
                while True:
                    seconds = time.monotonic() - begun
                    minutes = self._pace.left(name, seconds) / 60.0
                    left = f"about {minutes:.0f} min left" if minutes >= 1.0 else "less than a minute left"
                    bar.update(task, completed=self._pace.share(name, seconds), left=left)
                    if over.wait(0.5):
                        return

            clock = threading.Thread(target=draw, daemon=True)
            clock.start()
            try:
                yield
            finally:
                over.set()
                clock.join()

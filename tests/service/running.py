"""The service as a process of its own, on a free port of this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path


class Running:
    """`albatross serve` on a folder. `key` is the admin key of the first start; `under` is a command that runs it."""

    def __init__(self, folder: Path, *options: str, under: Sequence[str] = ()) -> None:
        self.folder, self._options, self._under = folder, options, under
        self.port, self.key = _free_port(), ""
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = [*self._under, sys.executable, "-m", "albatross", "serve", str(self.folder), "--port", str(self.port)]
        with open(self.folder.parent / "serve.log", "ab") as said:
            self.process = subprocess.Popen(
                [*command, *self._options],
                stdout=subprocess.PIPE,
                stderr=said,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        until = time.monotonic() + 120
        while not self.answers():
            assert self.process.poll() is None, (self.folder.parent / "serve.log").read_text()[-2_000:]
            assert time.monotonic() < until, "the service did not start"
            time.sleep(0.05)
        if not self.key:
            assert self.process.stdout is not None
            found = re.search(rb"alb_[\w-]+", self.process.stdout.peek())
            assert found
            self.key = found[0].decode()

    def answers(self) -> bool:
        """Return whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return json.load(answer)["status"] == "ok"
        except OSError:
            return False

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait(30)

    def terminate(self) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])

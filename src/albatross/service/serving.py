"""Start the service: a folder with a log and models, keys, and an HTTP server."""

from __future__ import annotations

import gc
import json
import logging
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from albatross.service.engine import Engine
from albatross.service.http import Service
from albatross.service.model import Ticket, created
from albatross.service.settings import ModelSettings, read_model
from albatross.service.sqlite import SQLiteStore
from albatross.service.writer import Group
from albatross.store.files import try_lock

LOG, LOCK, MODELS = "log.db", "lock", "models"
_SWITCH = 0.0005  # seconds of the interpreter's switch interval: with 5 ms the writer waits for the loop
_GARBAGE = 20_000  # new objects, after which Python looks for garbage
_DRAIN = 10  # seconds for open requests after SIGTERM


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder of a service: two processes would not see each other's users."""
    with open(folder / LOCK, "ab") as file:
        if not try_lock(file):
            raise ValueError(f"{folder} is in use by another process: one process serves a folder")
        yield


@contextmanager
def usable(folder: Path) -> Iterator[None]:
    """Raise whatever goes wrong with a log as one sentence: in a damaged file, anything may."""
    try:
        yield
    except (OSError, ValueError, MemoryError, ImportError):
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"{folder / LOG} cannot be used ({why}): it may be damaged, or there is no room") from error


def prepare(folder: Path) -> SQLiteStore:
    """Return the log of a folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SQLiteStore(folder / LOG, create=True)


def example(folder: Path) -> None:
    """Put the example model into a folder that has none."""
    models = folder / MODELS
    if not models.exists():
        models.mkdir(mode=0o700)
        text = files("albatross.service").joinpath("example", "news.toml").read_text("utf-8")
        (models / "news.toml").write_text(text, "utf-8")


def declared(folder: Path) -> dict[str, ModelSettings]:
    """Return the models that the folder declares, one TOML file each. Hidden files are those of editors."""
    paths = sorted(path for path in (folder / MODELS).glob("*.toml") if not path.name.startswith("."))
    return {path.stem: read_model(path) for path in paths}


def declare(engine: Engine, models: dict[str, ModelSettings]) -> list[str]:
    """Create the models that are new, before the service starts. Return the others that are not as the log has them."""
    differ = []
    for name, settings in models.items():
        if name in engine.models:
            present = engine.models[name].settings
            if msgspec.structs.replace(settings, arms=present.arms) != present:  # arms come and go
                differ.append(name)
        else:
            group, number = Group(), 1 + max(engine.models_by_number, default=0)
            ticket = Ticket(int(1_000 * time.time()), engine.next_seq)
            group.happenings.append(created(settings, number, name, ticket))
            engine.store.write(group)
            engine.read()
    return differ


class JsonLines(logging.Formatter):
    """One JSON object per line. No user ids and no features are ever logged."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        line: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in _EXTRAS if hasattr(record, name)}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


_EXTRAS = ("detail", "model", "path", "status", "seconds")


def log_as_json() -> None:
    """Write the service's log as JSON lines to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("albatross.service", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def bound(host: str, port: int) -> socket.socket:
    """Take an address before anybody is told of it. Connections are refused until the service listens."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except (OSError, TypeError) as error:  # TypeError: no name of a host
        found.close()
        why = f"{host}:{port} cannot be listened on ({getattr(error, 'strerror', error)})"
        raise ValueError(f"{why}: take another --port or --host") from None
    return found


def run(engine: Engine, listening: socket.socket, *, tls: tuple[str, str] | None, behind_proxy: bool) -> None:
    """Serve until SIGTERM or Ctrl-C. Open requests are answered first; a second signal ends at once."""
    import uvicorn

    sys.setswitchinterval(_SWITCH)
    gc.freeze()  # modules and models stay; looking for garbage as often as usual costs a tenth of a rank
    gc.set_threshold(_GARBAGE)
    config = uvicorn.Config(
        Service(engine),
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=_DRAIN,
        proxy_headers=behind_proxy,
        server_header=False,
        ssl_certfile=tls[0] if tls else None,
        ssl_keyfile=tls[1] if tls else None,
    )

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            """End at the second signal, whichever it is; uvicorn knows this of Ctrl-C alone."""
            self.force_exit = self.should_exit
            super().handle_exit(sig, frame)

    with suppress(KeyboardInterrupt):  # a signal that has been obeyed
        Server(config).run([listening])

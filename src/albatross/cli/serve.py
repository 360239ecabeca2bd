"""`albatross serve`."""

from __future__ import annotations

import ssl
from pathlib import Path

import click

from albatross.cli.plainly import plainly

_LOCAL = ("127.0.0.1", "::1", "localhost")


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default="albatross-service")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8_000, show_default=True, help="Port to listen on.")
@click.option("--memory", default="1 GiB", show_default=True, help="Memory for users; others wait in the log.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), default=None, help="TLS certificate, PEM.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), default=None, help="Key of the certificate.")
@click.option("--behind-proxy", is_flag=True, help="A proxy in front of it does TLS; needed for other addresses.")
@click.option("--example/--no-example", default=True, help="Put an example model into a new folder.")
@plainly
def serve(
    folder: Path,
    host: str,
    port: int,
    memory: str,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    example: bool,
) -> None:
    """Decide over HTTP, with one bandit per user. FOLDER holds the log and the models.

    The first start prints an admin key, once. Models are the TOML files in FOLDER/models, or come by PUT. Nothing is
    answered before it is on disk.
    """
    if (tls_cert is None) != (tls_key is None):
        raise ValueError("--tls-cert and --tls-key belong together")
    if tls_cert is not None and tls_key is not None:
        _check_tls(tls_cert, tls_key)
    if host not in _LOCAL and tls_cert is None and not behind_proxy:
        raise ValueError(f"keys would cross the network in the open: {host} needs --tls-cert, or --behind-proxy")
    from albatross.service import serving
    from albatross.service.engine import Engine
    from albatross.service.keys import RATE, new_key
    from albatross.service.sqlite import shown_key

    size = _bytes(memory)
    with serving.usable(folder):
        store = serving.prepare(folder)
    with serving.locked(folder):
        with serving.usable(folder):
            engine = Engine(store, memory=size)
            if example and not engine.models:  # otherwise the folder is new, and the log is not: a backup
                serving.example(folder)
            differ = serving.declare(engine, serving.declared(folder))
        for name in differ:
            click.echo(f"note: {name}.toml is not as the log has it, which counts: change the model by PUT", err=True)
        click.echo(f"compiling {', '.join(engine.models) or 'nothing'} ...", err=True)
        for model in engine.models.values():
            model.compile()
        with serving.bound(host, port) as listening:
            port = listening.getsockname()[1]  # the one that was found for 0
            place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            if tls_cert is None or tls_key is None:
                tls, url = None, f"http://{place}"
            else:
                tls, url = (tls_cert, tls_key), f"https://{place}"
            with serving.usable(folder):
                if not store.all_keys():  # last: a start that fails before this would take the key with it
                    key, row = new_key("admin", ["admin"], None, None, RATE)
                    with shown_key(store, row):
                        click.echo(_welcome(url, key, list(engine.models)))
            click.echo(f"albatross serves {folder} on {url}", err=True)
            serving.log_as_json()
            serving.run(engine, listening, tls=tls, behind_proxy=behind_proxy)


def _check_tls(cert: str, key: str) -> None:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key)
    except OSError as error:  # of ssl too
        raise ValueError(f"{cert} and {key} are not a certificate and its key in PEM: {error}") from None


def _welcome(url: str, key: str, models: list[str]) -> str:
    lines = ["The admin key, shown only now. Keep it, or make others with `albatross keys add`:", "", f"  {key}", ""]
    if "news" in models:
        lines += [
            "Ask which outlet a reader should see, and say later what it brought:",
            "",
            f"curl -s {url}/v1/models/news/rank -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' "
            """-d '{"user": "u-1", "context": {"device": "phone"}, """
            """"arms": {"tagesblatt": {"topic": "sport", "age": 2}, "morgenpost": {"topic": "politics", "age": 1}}}'""",
            "",
            f"curl -s {url}/v1/decisions/$(curl -s {url}/v1/models/news/rank -H 'Authorization: Bearer {key}' "
            """-H 'Content-Type: application/json' -d '{"user": "u-2", "context": {"device": "desktop"}}' """
            f"| cut -d '\"' -f 6)/reward -H 'Authorization: Bearer {key}' "
            """-H 'Content-Type: application/json' -d '{"value": 1}'""",
            "",
        ]
    return "\n".join(lines)


def _bytes(text: str) -> int:
    """Return a size in bytes.

    >>> _bytes("1 GiB"), _bytes("500 MB")
    (1073741824, 500000000)
    """
    units = {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9, "B": 1, "": 1}
    number = text.strip().rstrip("KMGIBkmgib ")
    unit = text.strip()[len(number) :].strip().upper()
    try:
        size = int(float(number) * units[unit])
    except (KeyError, ValueError, OverflowError):
        raise ValueError(f"memory must be a size such as 1 GiB or 500 MB, not {text!r}") from None
    if size < 2**20:
        raise ValueError(f"memory must be at least 1 MiB, not {text!r}")
    return size

"""Flocks in files: arrays and JSON, no code."""

from __future__ import annotations

from typing import Any

from albatross import checks, saving
from albatross.crowd.arms import NumberedArms
from albatross.crowd.named_arms import NamedArms
from albatross.crowd.users import NamedUsers, NumberedUsers
from albatross.features import Features, given_dim
from albatross.flocking.crowd import FlockCrowd
from albatross.flocking.origin import check_origin
from albatross.flocking.population import Common
from albatross.floor import check_floor

INDICES = ("optimism", "sampling")


def check_options(index: Any, floor: Any, looks: Any) -> None:
    """Check the keywords of a flock."""
    checks.one_of("index", index, INDICES)
    checks.flag("looks", looks)
    check_floor(floor)


def write_flock(flock: Any, target: saving.Source) -> None:
    """Save all users and the population of a flock."""
    header = {
        "dim": flock.dim,
        "index": flock.index,
        "floor": flock.floor,
        "looks": flock.looks,
        "features": None if flock.features is None else flock.features.to_dict(),
        "noise_key": flock._secret.tolist(),
        "origin": flock._origin.tolist(),
        **flock._common.header(),
        **flock._crowd.header(),
    }
    saving.write(target, kind="flock", header=header, arrays=flock._crowd.arrays() | flock._common.arrays())


def read_flock(flock: Any, source: saving.Source) -> None:
    """Give a flock without anything what a file holds. Damaged and malicious files are refused."""
    with saving.reading(source, kind="flock") as saved:
        header = saved.header
        for name in ("n_arms", "dim"):
            checks.whole(name, header[name], least=1)
        schema, named, dim = header["features"], header["users"], header["dim"]
        checks.whole("n_users", header["n_users"], least=0)
        # Two matrices of the population, and of every user at least counts, would be in it.
        if max(16 * (header["n_arms"] + dim) ** 2, 4 * header["n_users"] * header["n_arms"]) > saved.nbytes:
            raise ValueError("what it claims to hold is larger than this file")
        flock.features = None if schema is None else Features.from_dict(schema)
        flock.dim, flock.index, flock.looks = given_dim(dim, flock.features), header["index"], header["looks"]
        flock.floor = float(header["floor"])
        check_options(flock.index, flock.floor, flock.looks)
        flock._secret = checks.words("noise_key", header["noise_key"], 2)
        flock._origin = checks.finite_array("origin", header["origin"], (3,))
        check_origin(flock._origin)
        flock._common = Common.restored(saved, header["n_arms"], dim)
        arms, n_slots = header["arms"], header["n_arms"]
        known = NumberedArms(n_slots) if arms is None else NamedArms.from_dict(arms, n_slots=n_slots)
        users = NumberedUsers(header["n_users"]) if named is None else NamedUsers()
        if named is not None:
            users.admit(users.listed(named)[2])
        flock._crowd = FlockCrowd(users, known, dim, bytes.fromhex(header["key"]), flock._origin)
        if flock._crowd.n_slots != n_slots or len(users) != header["n_users"]:
            raise ValueError("arms and users must be as many as there are names")
        flock._crowd.restore(saved)

"""Records that are older than their model keeps them are deleted; what was learnt from them stays.

From then on the fold of a user begins with a base, a snapshot that stands for all records before it. A user's turn
comes when the first record is an eighth too old, and then all that are too old go: not every hour a few.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from albatross.service.hot import HotUsers
from albatross.service.model import Model, Ticket
from albatross.service.problems import Problem
from albatross.service.snapshots import begin_with_snapshot
from albatross.service.writer import Group

_LATE = 9 / 8  # times the age that records are kept for
_WINDOW, _AT_ONCE = 10_000, 500  # records that are looked through in one query, and deleted in one commit


class Retention:
    """Deletes old records of all models."""

    def __init__(self, users: HotUsers) -> None:
        self._users = users
        self._done: dict[int, int] = {}  # by model: earlier decisions are gone

    async def delete_old(self) -> None:
        """Delete what is too old now, user by user."""
        users, store = self._users, self._users.store
        for model in list(users.models_by_number.values()):
            keep, number = model.settings.keep_ms, model.number
            if keep is None:
                continue
            end = await users.from_log(store.number_at, users.now - int(_LATE * keep))
            since = await users.from_log(store.number_at, users.now - keep)
            still_open = await users.from_log(store.first_open)  # what closes meanwhile is looked at next time
            for first in range(self._done.get(number, 0), end, _WINDOW):
                last = min(first + _WINDOW, end)
                for user in await users.from_log(store.users_of_closed, number, first, last):
                    await self._delete(number, user, since)
            self._done[number] = end if still_open is None else min(end, still_open)

    async def _delete(self, number: int, user: bytes, since: int) -> None:
        users = self._users

        def act(model: Model, group: Group, ticket: Ticket) -> None:
            if user in model.bandits:  # and not erased meanwhile
                begin_with_snapshot(model, user, group, users.seq)

        try:
            await users.command(number, user, act)
        except Problem as problem:
            if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:  # the log cannot be written
                raise
            return  # what is kept of this user is damaged, and stays as it is
        while await users.from_log(users.store.delete_covered, user, since, _AT_ONCE):
            await asyncio.sleep(0.01)  # commits and loads go first

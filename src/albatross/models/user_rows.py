"""What a flock keeps of its users: lists of events of those who have few, triangles of those who have more.

An event is a context, a reward and an arm. A user's first events are kept one by one, chained through a common table,
so that a user who came twice costs two events and not a matrix. Past `LIST` events they become a triangle: the R of a
QR decomposition of the rows [x; e_arm], with R'R = Z'Z, to which a further event is turned in by Givens rotations
(Golub and Van Loan 2013, 5.2). Either way a user is at most max(p, LIST) rows, and nothing is lost (`data_of`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.models.population import Data

LIST = 20  # events of a user that are kept as a list: as large as a triangle at 10 arms of 16 features
NOBODY = -1
_GROWTH = 4  # tables that are full grow by a quarter: little is empty, and copies stay few


class Memory(NamedTuple):
    """Events and triangles of all users; tables have spare rows, chained in `free`."""

    plays: np.ndarray  # (N,) int64, rewards learnt of each user
    last: np.ndarray  # (N,) int64, the last event of a user with a list
    place: np.ndarray  # (N,) int64, the triangle of a user who has one
    # Lists.
    events: np.ndarray  # (E, d + 1) context and reward
    arms: np.ndarray  # (E,) int32
    before: np.ndarray  # (E,) int32, the event before this one of the same user; of a spare row, the next spare one
    # Triangles.
    triangles: np.ndarray  # (A, p (p + 1) / 2) R by rows
    sides: np.ndarray  # (A, p + 1) the rewards turned along with R, and the squares beyond
    spare: np.ndarray  # (A,) int32, next spare triangle
    free: np.ndarray  # (4,) int64, first spare event and first spare triangle, and how many there are of each


def no_memory(n_arms: int, dim: int) -> Memory:
    """Return the memory of nobody."""
    p = dim + n_arms
    return Memory(
        plays=np.empty(0, np.int64),
        last=np.empty(0, np.int64),
        place=np.empty(0, np.int64),
        events=np.empty((0, dim + 1)),
        arms=np.empty(0, np.int32),
        before=np.empty(0, np.int32),
        triangles=np.empty((0, p * (p + 1) // 2)),
        sides=np.empty((0, p + 1)),
        spare=np.empty(0, np.int32),
        free=np.array([NOBODY, NOBODY, 0, 0]),
    )


def with_room(memory: Memory, *, users: int, events: int, triangles: int) -> Memory:
    """Return the memory with at least so many users, spare events and spare triangles."""
    free = memory.free.copy()
    grown: dict[str, np.ndarray] = {"free": free}
    if users > memory.plays.size:
        more = max(users - memory.plays.size, memory.plays.size // _GROWTH)
        grown |= {"plays": longer(memory.plays, more, 0)}
        grown |= {"last": longer(memory.last, more, NOBODY), "place": longer(memory.place, more, NOBODY)}
    if events > free[2]:
        more = max(events - int(free[2]), memory.arms.size // _GROWTH)
        grown |= {"events": longer(memory.events, more, 0.0), "arms": longer(memory.arms, more, 0)}
        grown |= {"before": _chained(memory.before, more, free, 0)}
    if triangles > free[3]:
        more = max(triangles - int(free[3]), memory.spare.size // _GROWTH)
        grown |= {"triangles": longer(memory.triangles, more, 0.0), "sides": longer(memory.sides, more, 0.0)}
        grown |= {"spare": _chained(memory.spare, more, free, 1)}
    return memory._replace(**grown)


def longer(array: np.ndarray, more: int, value: float) -> np.ndarray:
    """Return an array with more rows, of one value."""
    return np.concatenate([array, np.full((more, *array.shape[1:]), value, array.dtype)])


def _chained(chain: np.ndarray, more: int, free: np.ndarray, which: int) -> np.ndarray:
    """Return a chain of spare rows with more of them in front."""
    first, chain = chain.size, longer(chain, more, NOBODY)
    chain[first:-1] = np.arange(first + 1, chain.size)
    chain[-1] = free[which]
    free[which], free[2 + which] = first, free[2 + which] + more
    return chain


@compiled
def data_of(memory, dim, n_arms, user, plays):
    """Return rows and rewards of a user: of the first `plays` events of a list, or of the whole triangle."""
    p = dim + n_arms
    place = memory.place[user]
    if place != NOBODY:
        rows, rewards, k = np.zeros((p, p)), np.empty(p), 0
        for i in range(p):
            for j in range(i, p):
                rows[i, j] = memory.triangles[place, k]
                k += 1
            rewards[i] = memory.sides[place, i]
        return Data(rows, rewards, np.array([memory.sides[place, p], float(memory.plays[user])]))
    rows, rewards = np.zeros((plays, p)), np.empty(plays)
    event = memory.last[user]
    for _ in range(memory.plays[user] - plays):
        event = memory.before[event]
    for i in range(plays - 1, -1, -1):
        for j in range(dim):
            rows[i, j] = memory.events[event, j]
        rows[i, dim + memory.arms[event]] = 1.0
        rewards[i] = memory.events[event, dim]
        event = memory.before[event]
    return Data(rows, rewards, np.array([0.0, float(plays)]))


@compiled
def parts_of(memory, dim, n_arms, user):
    """Return rows, rewards and the rest of a user's data, for Python."""
    data = data_of(memory, dim, n_arms, user, memory.plays[user])
    return data.rows, data.rewards, data.beyond


@compiled
def remember(memory, dim, n_arms, user, row, reward, arm):
    """Add one event of a user: the context at the head of `row`, the arm's indicator behind it."""
    if memory.place[user] == NOBODY and memory.plays[user] < LIST:
        event = np.empty(dim + 1)
        for j in range(dim):
            event[j] = row[j]
        event[dim] = reward
        append_event(memory, user, event, arm)
    else:
        if memory.place[user] == NOBODY:
            start_triangle(memory, dim, n_arms, user)
        place = memory.place[user]
        turn_in(memory.triangles[place], memory.sides[place], row.copy(), reward)
    memory.plays[user] += 1


@compiled
def append_event(memory, user, event, arm):
    """Append an event to the list of a user."""
    place = memory.free[0]
    memory.free[0] = memory.before[place]
    memory.free[2] -= 1
    memory.events[place] = event
    memory.arms[place] = arm
    memory.before[place] = memory.last[user]
    memory.last[user] = place


@compiled
def take_triangle(memory):
    """Return the number of a spare triangle, which is then in use."""
    place = memory.free[1]
    memory.free[1] = memory.spare[place]
    memory.free[3] -= 1
    return place


@compiled
def start_triangle(memory, dim, n_arms, user):
    """Turn the list of a user into a triangle."""
    data = data_of(memory, dim, n_arms, user, memory.plays[user])
    forget_list(memory, user)
    place = take_triangle(memory)
    memory.triangles[place] = 0.0
    memory.sides[place] = 0.0
    for i in range(data.rewards.size):
        turn_in(memory.triangles[place], memory.sides[place], data.rows[i].copy(), data.rewards[i])
    memory.place[user] = place


@compiled
def forget_list(memory, user):
    """Give the events of a list back."""
    event = memory.last[user]
    while event != NOBODY:
        following = memory.before[event]
        memory.before[event] = memory.free[0]
        memory.free[0] = event
        memory.free[2] += 1
        event = following
    memory.last[user] = NOBODY


@compiled
def forget(memory, user):
    """Forget a user."""
    forget_list(memory, user)
    place = memory.place[user]
    if place != NOBODY:
        memory.spare[place] = memory.free[1]
        memory.free[1] = place
        memory.free[3] += 1
    memory.plays[user], memory.place[user] = 0, NOBODY


@compiled
def turn_in(triangle, side, row, reward):
    """Add a row to R, and its reward to the side, by Givens rotations; `row` is used up."""
    p, start = row.size, 0
    for i in range(p):
        if row[i] != 0.0:
            length = math.hypot(triangle[start], row[i])
            cosine, sine = triangle[start] / length, row[i] / length
            for j in range(i, p):
                old, new = triangle[start + j - i], row[j]
                triangle[start + j - i] = cosine * old + sine * new
                row[j] = cosine * new - sine * old
            old = side[i]
            side[i] = cosine * old + sine * reward
            reward = cosine * reward - sine * old
        start += p - i
    side[p] += reward * reward


# ------------------------------------------------------------------------------------------- in files, and for new arms


class Packed(NamedTuple):
    """Users one after the other, without spare rows: as files hold them."""

    plays: np.ndarray  # (n,) int64
    listed: np.ndarray  # (n,) bool, whether a user is kept as a list
    events: np.ndarray  # (E, d + 1) of all lists, in order
    arms: np.ndarray  # (E,) int32
    triangles: np.ndarray  # (A, p (p + 1) / 2) of the others
    sides: np.ndarray  # (A, p + 1)


def packed(memory: Memory, users: np.ndarray) -> Packed:
    """Return what is kept of some users."""
    plays, places = memory.plays[users], memory.place[users]
    listed = places == NOBODY
    n_events = int(plays[listed].sum())
    events, arms = np.empty((n_events, memory.events.shape[1])), np.empty(n_events, np.int32)
    copy_lists(memory, users[listed], events, arms)
    return Packed(plays, listed, events, arms, memory.triangles[places[~listed]], memory.sides[places[~listed]])


@compiled
def put_back(memory, users, data):
    """Set users to what was packed of them, in place of all that there is. There must be room."""
    event, triangle = 0, 0
    for i in range(users.size):
        user = users[i]
        forget(memory, user)
        if data.listed[i]:
            for _ in range(data.plays[i]):
                append_event(memory, user, data.events[event], data.arms[event])
                event += 1
        else:
            place = take_triangle(memory)
            memory.triangles[place] = data.triangles[triangle]
            memory.sides[place] = data.sides[triangle]
            memory.place[user] = place
            triangle += 1
        memory.plays[user] = data.plays[i]


@compiled
def copy_lists(memory, users, events, arms):
    """Copy the lists of some users, in order."""
    end = 0
    for user in users:
        end += memory.plays[user]
        event = memory.last[user]
        for i in range(end - 1, end - 1 - memory.plays[user], -1):
            events[i] = memory.events[event]
            arms[i] = memory.arms[event]
            event = memory.before[event]


def widened(memory: Memory, dim: int, n_arms: int, more: int) -> Memory:
    """Return the memory with more arms, of which nobody has played one."""
    p, wide = dim + n_arms, dim + n_arms + more
    triangles = np.zeros((len(memory.triangles), wide * (wide + 1) // 2))
    start, new = 0, 0
    for i in range(p):
        triangles[:, new : new + p - i] = memory.triangles[:, start : start + p - i]
        start, new = start + p - i, new + wide - i
    sides = np.zeros((len(memory.sides), wide + 1))
    sides[:, :p], sides[:, -1] = memory.sides[:, :p], memory.sides[:, p]
    return memory._replace(triangles=triangles, sides=sides)


def without_arm(memory: Memory, dim: int, n_arms: int, arm: int, users: np.ndarray) -> Memory:
    """Return the memory without the bias of an arm: its plays say nothing but what they say of everything else.

    With a flat prior on the bias, that is what is left after a QR decomposition in which its column comes first,
    without the first row. That row is one play that only fixed the bias.
    """
    memory = Memory(*map(np.copy, memory))
    column, p = dim + arm, dim + n_arms
    for user in users.tolist():
        data = Data(*parts_of(memory, dim, n_arms, user))
        if not data.rows[:, column].any():
            continue
        order = [column, *(k for k in range(p) if k != column)]
        turned: Any = np.linalg.qr(np.column_stack([data.rows[:, order], data.rewards]), mode="r")
        table = turned[1:]
        rows = np.zeros((len(table), p))
        rows[:, order[1:]] = table[:, 1:-1]
        beyond, plays = data.beyond
        if memory.place[user] == NOBODY:
            memory = with_room(memory, users=0, events=0, triangles=1)
            forget_list(memory, user)
            memory.place[user] = take_triangle(memory)
        place = memory.place[user]
        memory.triangles[place], memory.sides[place] = 0.0, 0.0
        for row, reward in zip(rows, table[:, -1], strict=True):
            turn_in(memory.triangles[place], memory.sides[place], row, reward)
        memory.sides[place, p] += beyond
        memory.plays[user] = max(plays - 1, 0)  # of a row from elsewhere they may be too few
    return memory

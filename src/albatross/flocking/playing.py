"""The flock's policy: when a user's posterior is made anew, which arm it plays, and what it learns.

A user's posterior is made anew (*a look*) at the first decision under a new population, and whenever its rewards have
grown by a fifth; in between, single rewards are added to it. A user with a list of events keeps no posterior: that of
its last look follows from the list. The index is Albatross's,

    mean_i + sqrt(2 s2 h_i ln(1 + t h_i / D_eff)),

with h_i = z_i' Cov z_i under the user's own posterior, or a draw from that posterior (Thompson 1933).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.linalg.small import apply, cholesky
from albatross.loops import FLOOR_NUMBERS, above_floor
from albatross.models.population import IN_USE, NOISE, Posterior, absorb_reward, look, under_kinds
from albatross.models.population_looks import add_user
from albatross.models.user_rows import LIST, NOBODY, Memory, data_of, put_back, remember
from albatross.noise import fill_orders
from albatross.picking import pick_best
from albatross.protocol import Offer
from albatross.states import state_of

_GROWTH = 2.0**0.25  # of a user's rewards between looks


class FlockState(NamedTuple):
    """What a flock keeps of its users, beside names and pending decisions."""

    memory: Memory
    looked: np.ndarray  # (N,) int64, rewards at the user's last look
    version: np.ndarray  # (N,) int64, the population of that look; -1 if there was none
    posteriors: Posterior  # (A, ...), of the users with triangles


@compiled
def blank_posterior(p):
    """Return room for a posterior."""
    return Posterior(np.empty(p), np.empty((p, p)), np.empty(2))


@compiled
def posterior_of(prior, state, dim, n_arms, user):
    """Return the posterior of a user who has looked."""
    if state.memory.place[user] != NOBODY:
        return state_of(state.posteriors, state.memory.place[user])
    posterior, looked = blank_posterior(dim + n_arms), state.looked[user]
    look(prior, dim, data_of(state.memory, dim, n_arms, user, looked), posterior)
    if looked < state.memory.plays[user]:
        data = data_of(state.memory, dim, n_arms, user, state.memory.plays[user])
        for event in range(looked, state.memory.plays[user]):
            absorb_reward(posterior, data.rows[event], data.rewards[event])
    return posterior


@compiled
def look_now(prior, state, version, dim, n_arms, user):
    """Look at all rewards of a user. A user with a list only notes it."""
    plays = state.memory.plays[user]
    state.looked[user], state.version[user] = plays, version
    if state.memory.place[user] != NOBODY:
        posterior = state_of(state.posteriors, state.memory.place[user])
        look(prior, dim, data_of(state.memory, dim, n_arms, user, plays), posterior)


@compiled
def look_if_stale(prior, state, version, dim, n_arms, user):
    """Look, at a decision, if the user has not looked under the present population."""
    if state.version[user] != version:
        look_now(prior, state, version, dim, n_arms, user)


@compiled
def note_decisions(prior, state, version, dim, n_arms, users):
    """Do what decisions do to users, apart from choosing."""
    for user in users:
        look_if_stale(prior, state, version, dim, n_arms, user)


@compiled
def estimates(posterior, offer, unit, plays, dim):
    """(R,) means of the rows and their bonuses."""
    n_rows = offer.arms.size
    means, widths, x = np.empty(n_rows), np.empty(n_rows), np.empty(dim)
    s2, in_use = posterior.scalars[NOISE], max(posterior.scalars[IN_USE], 1.0)
    for row in range(n_rows):
        arm = dim + offer.arms[row]
        for j in range(dim):
            x[j] = offer.contexts[row, j] / unit
        mean, h = posterior.mean[arm], posterior.covariance[arm, arm]
        for i in range(dim):
            mean += x[i] * posterior.mean[i]
            along = 2.0 * posterior.covariance[arm, i]
            for j in range(dim):
                along += posterior.covariance[i, j] * x[j]
            h += x[i] * along
        h = max(h, 0.0)
        h /= 1.0 + offer.pending[offer.arms[row]] * h
        means[row], widths[row] = mean, math.sqrt(2.0 * s2 * h * math.log1p((plays + 1.0) * h / in_use))
    return means, widths


@compiled
def drawn(posterior, noise):
    """Return the posterior with a draw from it in place of its mean."""
    root, scale = cholesky(posterior.covariance), math.sqrt(posterior.scalars[NOISE])
    return Posterior(posterior.mean + scale * apply(root, noise), posterior.covariance, posterior.scalars)


@compiled
def scores_of(prior, state, version, unit, offer, noise, user):
    """(R,) scores of the rows of an offer to a user, and their bonuses; a draw has none."""
    dim, n_arms = offer.contexts.shape[1], offer.pending.size
    look_if_stale(prior, state, version, dim, n_arms, user)
    posterior = posterior_of(prior, state, dim, n_arms, user)
    if noise.size > 0:
        posterior = drawn(posterior, noise)
    means, widths = estimates(posterior, offer, unit, float(state.memory.plays[user]), dim)
    if noise.size > 0:
        widths[:] = 0.0
    return means + widths, widths


@compiled
def learn_event(prior, state, version, unit, dim, n_arms, user, arm, action, reward):
    """Learn one reward of a user."""
    row = np.zeros(dim + n_arms)
    for j in range(dim):
        row[j] = action[j] / unit
    row[dim + arm] = 1.0
    current, listed = state.version[user] == version, state.memory.place[user] == NOBODY
    if current and listed and state.memory.plays[user] == LIST:
        kept = posterior_of(prior, state, dim, n_arms, user)  # its list ends here
        remember(state.memory, dim, n_arms, user, row, reward, arm)
        copy_posterior(kept, state_of(state.posteriors, state.memory.place[user]))
    else:
        remember(state.memory, dim, n_arms, user, row, reward, arm)
    plays, looked = state.memory.plays[user], state.looked[user]
    if current and plays >= max(looked + 1.0, _GROWTH * looked):
        look_now(prior, state, version, dim, n_arms, user)
    elif current and state.memory.place[user] != NOBODY:
        absorb_reward(state_of(state.posteriors, state.memory.place[user]), row, reward)


@compiled
def copy_posterior(source, target):
    """Copy a posterior into another one's arrays."""
    target.mean[:] = source.mean
    target.covariance[:] = source.covariance
    target.scalars[:] = source.scalars


@compiled
def put_back_users(state, pending, decisions, users, kept):
    """Set users to what was kept of them. There must be room."""
    put_back(state.memory, users, kept.data)
    triangle = 0
    for i in range(users.size):
        user = users[i]
        place = state.memory.place[user]
        if place >= 0:
            copy_posterior(state_of(kept.posteriors, triangle), state_of(state.posteriors, place))
            triangle += 1
        state.looked[user], state.version[user] = kept.looked[i], kept.version[i]
        pending[user] = kept.pending[i]
        decisions[user] = kept.decisions[i]


@compiled
def hear_users(prior, memory, dim, n_arms, users, heard):
    """Add users, in this order, to the sums that the population learns from."""
    for user in users:
        if memory.plays[user] > 0:
            add_user(prior, dim, data_of(memory, dim, n_arms, user, memory.plays[user]), heard)


# -------------------------------------------------------------------------------------------------- batches of events


@compiled
def choose_for_users(prior, state, version, origin, crowd, arms, contexts, eligible, given, noise, floor, events):
    """Choose for each event in order, since a user may occur twice. Arguments are as in `loops.choose`.

    `crowd` holds pending decisions (N, K), numbers of decisions (N,) and the users' keys (N, 2). Return the event whose
    best score is not finite, or -1.
    """
    pending, decisions, keys = crowd
    n_slots = pending.shape[1]
    order = np.empty((1, n_slots), np.int64)
    for event in range(events.users.size):
        user = events.users[event]
        mask = eligible[min(event, eligible.shape[0] - 1)]
        waiting = given[event] if given.shape[0] > 0 else pending[user]
        offer = Offer(contexts[event], mask, waiting, -1, arms)
        z = noise[event]
        drawn = z[FLOOR_NUMBERS:] if floor > 0.0 else z
        scores, widths = scores_of(prior, state, version, origin[0], offer, drawn, user)
        fill_orders(order, keys[user : user + 1], 0)
        best = pick_best(scores, offer, order[0])
        if not abs(scores[best]) < np.inf:
            return event
        row, propensity = best, 1.0 if drawn.size == 0 else np.nan
        if floor > 0.0:
            row, propensity = above_floor(floor, z, mask, row, propensity)
        pending[user, arms[row]] += 1
        decisions[user] += 1
        events.arms[event] = arms[row]
        events.scores[event] = scores[best] + origin[1] if row == best else 0.0
        events.widths[event] = widths[best] if row == best else 0.0
        events.propensities[event] = propensity
        events.actions[event] = contexts[event, row]
    return -1


@compiled
def learn_rewards_of_users(prior, state, version, origin, pending, events, rewards):
    """Learn one reward per event. A choice is pending until it is learnt, whatever interrupts this."""
    dim, n_arms = events.actions.shape[1], pending.shape[1]
    for event in range(rewards.size):
        user, arm = events.users[event], events.arms[event]
        reward = rewards[event] - origin[1]
        learn_event(prior, state, version, origin[0], dim, n_arms, user, arm, events.actions[event], reward)
        pending[user, arm] -= 1


@compiled
def present_posterior(prior, memory, dim, n_arms, user):
    """Return the parts of a user's posterior under the present population, and the probabilities of the kinds."""
    posterior, data = blank_posterior(dim + n_arms), data_of(memory, dim, n_arms, user, memory.plays[user])
    look(prior, dim, data, posterior)
    return (posterior.mean, posterior.covariance, posterior.scalars), under_kinds(prior, dim, data).weights


@compiled
def count_draws(prior, state, version, unit, offer, noise, user):
    """(R,) how often each row of an offer is the best of the eligible ones, in one draw per row of `noise`.

    The posterior is that of a decision now; nothing changes.
    """
    n_rows, dim = offer.contexts.shape
    n_arms, plays = offer.pending.size, state.memory.plays[user]
    posterior = blank_posterior(dim + n_arms)
    if state.version[user] == version:
        copy_posterior(posterior_of(prior, state, dim, n_arms, user), posterior)
    else:
        look(prior, dim, data_of(state.memory, dim, n_arms, user, plays), posterior)
    counts, order = np.zeros(n_rows), np.arange(n_arms)
    for k in range(noise.shape[0]):
        scores = estimates(drawn(posterior, noise[k]), offer, unit, float(plays), dim)[0]
        counts[pick_best(scores, offer, order)] += 1.0
    return counts

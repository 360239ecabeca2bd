"""Compiled loops that run policies: one decision, a batch of events, a chunk of rounds, the rows of a log.

They are separate from their callers because machine code is cached by its sources: a change to agents, readers or
environments then recompiles no policy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from albatross.compiling import compiled
from albatross.picking import pick_uniformly, row_to_retry, uniform_from_normal
from albatross.protocol import Choice, Offer, all_finite, hold, is_sound, mean_reward, select, update, update_tracking
from albatross.states import state_of

FLOOR_NUMBERS = 2  # random numbers per decision for a floor: whether to play a random row, and which

# --------------------------------------------------------------------------------------------- one decision, one reward

# Python and compiled code exchange plain tuples: a NamedTuple costs half a microsecond more each way.


@compiled
def decide(policy, state, contexts, eligible, pending, arms, decision, noise):
    """Choose a row. Return whether contexts and choice are valid, the row, and the choice with a copy of its action."""
    finite = all_finite(contexts)
    offer = Offer(contexts, eligible, pending, row_to_retry(decision, eligible), arms)
    choice = select(policy, state, offer, noise)
    sound = finite and is_sound(choice, offer)
    arm = arms[choice.arm] if sound else -1
    return sound, choice.arm, (arm, choice.action.copy(), choice.score, choice.width, choice.propensity, choice.tag)


@compiled
def learn_reward(policy, state, kept, reward, n, learnt):
    """Update the state with the sum of the rewards of n plays of one choice; `learnt` (1,) counts it."""
    arm, action, score, width, propensity, tag = kept
    update(policy, state, Choice(arm, action, score, width, propensity, tag), reward, n)
    learnt[0] += 1


@compiled
def learn_log(policy, state, actions, arms, rewards, tag):
    """Update the state with rewards of logged choices."""
    for t in range(rewards.size):
        update(policy, state, Choice(arms[t], actions[t], 0.0, 0.0, np.nan, tag), rewards[t], 1)


@compiled
def count_choices(policy, state, offer, noise, counts):
    """Count how often each row is chosen, one draw per row of noise. Return the draw of an invalid choice, or -1."""
    for t in range(noise.shape[0]):
        choice = select(policy, state, offer, noise[t])
        if not is_sound(choice, offer):
            return t
        counts[choice.arm] += 1
    return -1


# ------------------------------------------------------------------------------------------------- events of many users


class Choices(NamedTuple):
    """The choices of a fleet for a batch of m events: everything that `update` needs when the rewards arrive.

    Users and arms are named as the caller names them. `slots` may be None: then these arms are active ones.
    """

    users: np.ndarray  # (m,)
    arms: np.ndarray  # (m,)
    actions: np.ndarray  # (m, d) the chosen arms' contexts
    scores: np.ndarray  # (m,) what the policy maximised; inf for the first play of an arm
    widths: np.ndarray  # (m,) the exploration bonus in the score
    propensities: np.ndarray  # (m,) the probability of choosing this arm; NaN if unknown
    tags: np.ndarray  # (m, tag_size) what the policy's `update` needs to know about its choice
    slots: np.ndarray | None = None  # (m,) int64, where the policy keeps the arms

    def rows(self, which: Any) -> Choices:
        """Select events by a mask, a slice or their indices."""
        columns: Any = (None if column is None else column[which] for column in self)
        return Choices(*columns)


class Events(NamedTuple):
    """Choices as compiled code sees them: users and arms by their slots."""

    users: np.ndarray  # (m,) int64
    arms: np.ndarray  # (m,) int64, -1 before the choice
    actions: np.ndarray  # (m, d)
    scores: np.ndarray  # (m,)
    widths: np.ndarray  # (m,)
    propensities: np.ndarray  # (m,)
    tags: np.ndarray  # (m, tag_size)


@compiled
def first_outside(numbers, n):
    """Return the place of the first number outside of 0 to n - 1, -1 if there is none."""
    for i in range(numbers.size):
        if not 0 <= numbers[i] < n:
            return i
    return -1


@compiled
def above_floor(floor, z, eligible, row, p):
    """Return the row to play and its propensity, if a random eligible row is played with probability `floor`.

    The policy chose `row`, with probability p. If the policy draws at random, it says p only of its own choice, and the
    propensity of another row is NaN.
    """
    n_eligible = 0
    for each in eligible:
        n_eligible += each
    uniform = floor / n_eligible
    played = pick_uniformly(eligible, z[1])[0] if uniform_from_normal(z[0]) < floor else row
    if played == row:
        return row, (1.0 - floor) * p + uniform
    return played, uniform if p == 1.0 else np.nan


@compiled
def choose(policy, states, pending, decisions, arms, contexts, eligible, given, noise, floor, events, rows):
    """Choose for each event in order, since a user may occur twice. Return the event of an invalid choice, or -1.

    `arms` are the slots of the rows of contexts, `eligible` has one row for each event or one for all. `given` are
    pending decisions from outside (m, K), or (0, K) for those of the fleet. With a floor, noise begins with its
    numbers. `rows` (m,) becomes the chosen rows.
    """
    for event in range(events.users.size):
        user = events.users[event]
        mask = eligible[min(event, eligible.shape[0] - 1)]
        waiting = given[event] if given.shape[0] > 0 else state_of(pending, user)
        offer = Offer(contexts[event], mask, waiting, row_to_retry(int(decisions[user]), mask), arms)
        z = noise[event]
        choice = select(policy, state_of(states, user), offer, z[FLOOR_NUMBERS:] if floor > 0.0 else z)
        if not (is_sound(choice, offer) and choice.tag.size <= events.tags.shape[1]):
            return event
        row, propensity = choice.arm, choice.propensity
        if floor > 0.0:
            row, propensity = above_floor(floor, z, mask, row, propensity)
        own = row == choice.arm  # otherwise it is learnt as somebody else's choice
        pending[user, arms[row]] += 1
        decisions[user] += 1
        rows[event] = row
        events.arms[event] = arms[row]
        events.scores[event] = choice.score if own else 0.0
        events.widths[event] = choice.width if own else 0.0
        events.propensities[event] = propensity
        for j in range(events.actions.shape[1]):
            events.actions[event, j] = choice.action[j] if own else contexts[event, row, j]
        for j in range(choice.tag.size if own else events.tags.shape[1]):
            events.tags[event, j] = choice.tag[j] if own else np.nan
    return -1


@compiled
def count_events(users, arms, pending, decisions):
    """Count choices that somebody else made."""
    for event in range(users.size):
        pending[users[event], arms[event]] += 1
        decisions[users[event]] += 1


@compiled
def first_not_pending(users, arms, pending):
    """Return the first event whose choice is not pending, -1 if all are. `pending` is as before."""
    wrong = -1
    for event in range(users.size):
        pending[users[event], arms[event]] -= 1
        if wrong < 0 and pending[users[event], arms[event]] < 0:
            wrong = event
    for event in range(users.size):
        pending[users[event], arms[event]] += 1
    return wrong


@compiled
def learn_rewards(policy, states, pending, events, rewards):
    """Update with one reward per event. A choice is pending until it is learnt, whatever interrupts this."""
    for event in range(rewards.size):
        choice = Choice(
            events.arms[event],
            events.actions[event],
            events.scores[event],
            events.widths[event],
            events.propensities[event],
            events.tags[event],
        )
        update(policy, state_of(states, events.users[event]), choice, rewards[event], 1)
        pending[events.users[event], events.arms[event]] -= 1


# ----------------------------------------------------------------------------------------------- rounds of a simulation


class Tally(NamedTuple):
    """The progress of one policy in one trial: totals, and their values at the recorded rounds."""

    totals: np.ndarray  # (2,) regret and reward so far
    recorded: np.ndarray  # (1,) how many of the rounds below are done
    rounds: np.ndarray  # (g,) which rounds to record, counted from 1
    regret: np.ndarray  # (g,)
    reward: np.ndarray  # (g,)


@compiled
def play(policy, state, chunk, n, noise, pending, tally, start):
    """Play the first n rounds of a chunk, after `start` rounds of the trial.

    Return the number of rounds played: fewer than n if a choice is invalid.
    """
    arms = np.arange(pending.size)
    for t in range(n):
        offer = Offer(chunk.contexts[t], chunk.eligible[t], pending, -1, arms)
        choice = select(policy, state, offer, noise[t])
        if not is_sound(choice, offer):
            return t
        mean = chunk.means[t, choice.arm]
        reward = mean + chunk.noise[t, choice.arm]
        update(policy, state, choice, reward, 1)
        best = mean
        for arm in range(chunk.means.shape[1]):
            if chunk.eligible[t, arm] and chunk.means[t, arm] > best:
                best = chunk.means[t, arm]
        tally.totals[0] += best - mean
        tally.totals[1] += reward
        row = tally.recorded[0]
        if row < tally.rounds.size and tally.rounds[row] == start + t + 1:
            tally.regret[row] = tally.totals[0]
            tally.reward[row] = tally.totals[1]
            tally.recorded[0] = row + 1
    return n


@compiled
def play_ball(policy, state, tracked, offer, best, noise_sd, blocks, horizon, noise, luck, cuts, tally, progress):
    """Play actions of the unit ball, one for each row of `noise`; theta* is `tracked` beside the state.

    With `blocks`, an action is played at once for as many rounds as the policy holds it: the sum of n Gaussian rewards
    is one Gaussian number, made from `luck`. If a recorded round falls inside a block, the noise up to that round is
    drawn given the noise of the whole block: for the first p of m plays its mean is the share p / m, its variance p (m
    - p) / m, and it is made from `cuts`. So recording changes no number.
    """
    played = progress[0]
    for decision in range(noise.shape[0]):
        if played == horizon:
            break
        choice = select(policy, state, offer, noise[decision])
        mean = mean_reward(policy, state, choice, tracked)
        n = min(hold(policy, state, choice), horizon - played) if blocks else 1
        fortune = noise_sd * np.sqrt(n) * luck[decision]  # of all n plays
        done, so_far = 0, 0.0
        while tally.recorded[0] < tally.rounds.size and tally.rounds[tally.recorded[0]] <= played + n:
            row = tally.recorded[0]
            left, plays = n - done, tally.rounds[row] - played - done
            bridge = noise_sd * np.sqrt(plays * ((left - plays) / left)) * cuts[row]
            so_far = fortune if plays == left else so_far + (fortune - so_far) * (plays / left) + bridge
            done += plays
            tally.regret[row] = tally.totals[0] + done * (best - mean)
            tally.reward[row] = tally.totals[1] + (done * mean + so_far)
            tally.recorded[0] = row + 1
        played += n
        tally.totals[0] += n * (best - mean)
        tally.totals[1] += n * mean + fortune
        update_tracking(policy, state, choice, n * mean + fortune, n, tracked)
    progress[0] = played


# -------------------------------------------------------------------------------------------------------- rows of a log

# `users` says which of the states a row belongs to: all rows to one, or those of every user to their own.


@compiled
def replay_rounds(policy, states, users, contexts, actions, rewards, eligible, pending, noise, earned):
    """Offer rounds of a log. Return the number of accepted rounds, and the round of an invalid choice or -1.

    `earned` starts with the rewards of the accepted rounds.
    """
    granted, arms = 0, np.arange(pending.size)
    for t in range(actions.size):
        state = state_of(states, users[t])
        offer = Offer(contexts[t], eligible[t], pending, -1, arms)
        choice = select(policy, state, offer, noise[t])
        if not is_sound(choice, offer):
            return granted, t
        if choice.arm == actions[t]:
            update(policy, state, choice, rewards[t], 1)
            earned[granted] = rewards[t]
            granted += 1
    return granted, -1


@compiled
def learn_rows(policy, states, users, actions, arms, rewards, tag):
    """Update the states with rewards of logged choices."""
    for t in range(rewards.size):
        choice = Choice(arms[t], actions[t], 0.0, 0.0, np.nan, tag)
        update(policy, state_of(states, users[t]), choice, rewards[t], 1)


@compiled
def count_choices_on_log(policy, states, users, contexts, eligible, pending, noise, counts):
    """Count how often each arm is chosen in each round. Return round and draw of an invalid choice, or -1, -1."""
    arms = np.arange(pending.size)
    for t in range(noise.shape[0]):
        state = state_of(states, users[t])
        offer = Offer(contexts[t], eligible[t], pending, -1, arms)
        for i in range(noise.shape[1]):
            choice = select(policy, state, offer, noise[t, i])
            if not is_sound(choice, offer):
                return t, i
            counts[t, choice.arm] += 1
    return -1, -1

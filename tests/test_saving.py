"""A saved file may come from anywhere: it is read right, or refused before it can cost or harm anything."""

from __future__ import annotations

import copy
import errno
import gc
import io
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
from typing import NamedTuple

import numpy as np
import pytest
from stepping import same_state, state_of
from variants import DIM, N_ARMS

from albatross import Agent, Fleet, Flock, policies, saving
from albatross.errors import UnknownDecision, UnreadableFile
from albatross.protocol import init, score, update

LINTS = policies.LinTS(sigma=0.5)
ALB_NORM = policies.ALBNorm(norm_bound=1.0, epoch_length=2)


def played(policy, rounds=20, pending=3, **sizes):
    """An agent with some experience and some decisions that wait for their rewards."""
    agent = Agent(policy, **{"n_arms": N_ARMS, "dim": DIM, "seed": 0, **sizes})
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        agent.update(agent.select(rng.standard_normal((N_ARMS, DIM))), float(rng.standard_normal()))
    for _ in range(pending):
        agent.select(rng.standard_normal((N_ARMS, DIM)))
    return agent


def members(thing) -> dict[str, np.ndarray]:
    with np.load(saving.in_memory(thing)) as file:
        return {name: file[name].copy() for name in file.files}


def packed(arrays, header=None, **changes) -> io.BytesIO:
    """A file of these arrays, with some entries of its header changed."""
    known = json.loads(arrays["header"].tobytes()) | (header or {})
    text = np.frombuffer(json.dumps(known).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **{**arrays, "header": text, **changes})
    file.seek(0)
    return file


# ------------------------------------------------------------------------------------------------ earlier versions


@pytest.mark.parametrize("kind", [Agent, Fleet])
def test_an_albatross_of_the_first_form_is_refused_and_the_error_says_how_to_rebuild_it(kind):
    thing = played(policies.Albatross()) if kind is Agent else Fleet(n_users=2, n_arms=N_ARMS, dim=DIM)
    arrays = {name: array for name, array in members(thing).items() if "prior" not in name and "memories" not in name}
    (first, *_) = (name for name in members(thing) if name.endswith("prior.numbers"))
    arrays[first.replace("prior.numbers", "components")] = np.ones(5)
    with pytest.raises(
        UnreadableFile, match=r"whose Albatross kept other numbers. Learn again from a log .*warm_start"
    ):
        kind.load(packed(arrays))


# ------------------------------------------------------------------------------------------------- hostile values


@pytest.mark.parametrize("clock", [[-(10**9), 0, 0], [-60, 0, 0], [10**9, 0, 0], [0, 0, -1], [0, 0, N_ARMS], [0, 1, 0]])
def test_an_index_that_leads_outside_of_a_state_is_refused(clock):
    with pytest.raises(UnreadableFile, match="clock holds"):
        Agent.load(packed(members(played(ALB_NORM)), **{"state/clock": np.array(clock)}))


def test_the_tag_of_a_base_that_there_is_not_is_refused():
    policy = policies.Corral(bases=(policies.UCB(), LINTS), horizon=100)
    arrays = members(played(policy))
    for place, value in ((0, 1e9), (0, -1.0), (0, 0.5), (0, 2.0), (1, 0.0), (1, np.nan)):
        tags = arrays["pending/tag"].copy()
        tags[1, place] = value
        with pytest.raises(UnreadableFile, match="tag holds"):
            Agent.load(packed(arrays, **{"pending/tag": tags}))


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("arm", lambda old: np.array([0, -2, 1])),
        ("arm", lambda old: np.array([0, N_ARMS, 1])),
        ("arm", lambda old: old.astype(np.int32)),
        ("action", lambda old: old.view(np.int64)),
        ("action", lambda old: np.full_like(old, np.nan)),
        ("action", lambda old: np.full_like(old, 1e101)),
        ("action", lambda old: old[:, :2]),
        ("score", lambda old: np.full_like(old, np.nan)),
        ("propensity", lambda old: np.full_like(old, -0.5)),
        ("propensity", lambda old: np.full_like(old, 1.5)),
        ("tag", lambda old: np.zeros((3, 1))),
    ],
)
def test_pending_decisions_that_cannot_be_are_refused(field, changed):
    arrays = members(played(LINTS))
    with pytest.raises(UnreadableFile):
        Agent.load(packed(arrays, **{f"pending/{field}": changed(arrays[f"pending/{field}"])}))


@pytest.mark.parametrize(
    ("policy", "name", "value"),
    [
        (policies.SFOFUL(), "unseen", 2.0**60),
        (policies.SFOFUL(), "unseen", -1.0),
        (policies.EBUCB(), "pulls", np.inf),
        (policies.EBLinTS(), "pulls", -1e300),
        (policies.NAOFUL(), "pulls", np.nan),
        (policies.UCB(), "reward_sum", np.inf),
    ],
)
def test_numbers_that_would_lead_astray_or_never_end_are_refused(policy, name, value):
    arrays = members(played(policy))
    (found,) = [key for key in arrays if key.endswith(f"{name}")]
    arrays[found].flat[0] = value
    with pytest.raises(UnreadableFile):
        Agent.load(packed(arrays))


@pytest.mark.parametrize("value", [np.inf, 1e300, -7.0, 0.0])
def test_a_unit_that_is_no_length_is_refused(value):
    agent, fleet = played(policies.Albatross()), Fleet(n_users=1, n_arms=N_ARMS, dim=DIM)
    arrays = members(agent)
    arrays["pending/tag"][0, 0] = value
    with pytest.raises(UnreadableFile):
        Agent.load(packed(arrays))
    choices = fleet.select([0], np.ones((1, N_ARMS, DIM)))
    with pytest.raises(ValueError, match="unchanged result of this fleet's select"):
        fleet.update(choices._replace(tags=np.full_like(choices.tags, value)), [1.0])


@pytest.mark.parametrize("header", [["albatross-agent"], "albatross-agent", {"albatross-agent": 1}, 7])
def test_a_header_of_another_kind_is_refused(header):
    file = io.BytesIO()
    np.savez(file, **members(played(LINTS)) | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    file.seek(0)
    with pytest.raises(UnreadableFile):
        Agent.load(file)


def test_a_header_with_wrong_entries_is_refused():
    arrays = members(played(LINTS))
    ids = json.loads(arrays["header"].tobytes())["pending"]
    for wrong in (
        {"pending": [ids[0], ids[0], ids[1]]},
        {"pending": [1, 2, 3]},
        {"pending": "abc"},
        {"made": -1},
        {"made": 1.5},
        {"max_pending": 0},
        {"n_arms": True},
        {"dim": 10**30},
    ):
        with pytest.raises(UnreadableFile):
            Agent.load(packed(arrays, wrong))


def test_names_of_arms_on_the_unit_ball_are_refused():
    arrays = members(Agent(policies.BallLinTS(), dim=2, seed=0))
    names = {"arms": {"active": [["a", 0]], "retired": []}, "noise_key": [1, 2]}
    with pytest.raises(UnreadableFile, match="the unit ball has no arms to name"):
        Agent.load(packed(arrays, names))


def test_a_boolean_that_is_neither_true_nor_false_is_refused():
    policy = policies.RegretBalancing(bases=(policies.UCB(), LINTS))
    arrays = members(played(policy))
    strange = np.array([2, 1], np.uint8).view(bool)
    with pytest.raises(UnreadableFile, match="True and False"):
        Agent.load(packed(arrays, **{"state/active": strange}))
    with pytest.raises(UnreadableFile, match="False for every base"):
        Agent.load(packed(arrays, **{"state/active": np.zeros(2, bool)}))


def test_an_index_of_one_user_is_found_among_all():
    fleet = Fleet(ALB_NORM, n_users=50, n_arms=N_ARMS, dim=DIM)
    arrays = members(fleet)
    arrays["state/0.clock"][37, 0] = -60
    with pytest.raises(UnreadableFile, match="clock holds -60"):
        Fleet.load(packed(arrays))
    arrays = members(fleet)
    arrays["state/1"][3, 2] = -1
    with pytest.raises(UnreadableFile, match="pending holds -1"):
        Fleet.load(packed(arrays))


# --------------------------------------------------------------------------------------------------- hostile sizes


@pytest.mark.parametrize(
    ("policy", "claims"),
    [
        (policies.Albatross(), {"dim": 16_000}),
        (policies.Albatross(), {"n_arms": 10**9}),
        (LINTS, {"dim": 10**7, "n_arms": 10**7}),
        (policies.Corral(bases=(LINTS, policies.OFUL()), horizon=100), {"dim": 16_000}),
    ],
)
def test_a_small_file_that_claims_a_large_state_is_refused_at_a_small_price(policy, claims):
    file = packed(members(played(policy)), claims)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableFile, match="larger than this file"):
            Agent.load(file)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("policy", "large", "features"),
    [
        (policies.ALBDimFinite(dims=(1, DIM), inner="suplinrel"), {"dims": [5, 4_500]}, 4_500),
        (policies.ModCB(dims=(1, DIM)), {"dims": [5, 12_000]}, 12_000),
        (
            policies.FirstFeatures(policy=policies.SupLinUCB(horizon=10), dim=DIM),
            {"dim": 2_000, "policy": {"name": "SupLinUCB", "parameters": {"horizon": 2**53}}},
            2_000,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_policy_for_so_many_features_alone_is_refused_at_a_small_price_too(policy, large, features):
    described = saving.describe_policy(policy)
    described["parameters"] |= large
    file = packed(members(Agent(policy, n_arms=2, dim=DIM)), {"policy": described, "dim": features, "n_arms": 10**6})
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableFile, match="larger than this file"):
            Agent.load(file)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_a_large_honest_agent_for_so_many_features_alone_is_read():
    for policy in (
        policies.ALBDimFinite(dims=(5, 40), first_phase=100),
        policies.ModCB(dims=(5, 40), covariance=np.eye(40)),
        policies.FirstFeatures(policy=policies.UCB(), dim=10_000),
    ):
        agent = Agent(policy, n_arms=3, dim=40 if hasattr(policy, "dims") else 10_000, seed=0)
        assert same_state(state_of(Agent.load(saving.in_memory(agent))), state_of(agent))


def test_a_regression_for_each_of_many_supports_is_refused_at_a_small_price():
    policy = {"name": "OnlineToConfidence", "parameters": {"sparsity": 399}}  # 400 supports of 399 coordinates
    file = packed(members(Agent(policies.OnlineToConfidence(sparsity=2), dim=4)), {"policy": policy, "dim": 400})
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableFile, match="larger than this file"):
            Agent.load(file)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_many_bases_are_refused_at_a_small_price():
    many = [{"name": "SupLinUCB", "parameters": {"horizon": 2**53}}] * 2_000
    policy = {"name": "Corral", "parameters": {"horizon": 100, "bases": many}}
    file = packed(members(Agent(policies.UCB(), n_arms=64, dim=64)), {"policy": policy})
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableFile, match="at most 16 policies"):
            Agent.load(file)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_a_map_of_many_features_is_refused_too():
    policy = policies.FirstFeatures(policy=LINTS, dim=2)
    arrays = members(played(policy))
    described = {
        **saving.describe_policy(policy),
        "parameters": {"policy": saving.describe_policy(LINTS), "dim": 16_000},
    }
    with pytest.raises(UnreadableFile, match="larger than this file"):
        Agent.load(packed(arrays, {"policy": described, "dim": 16_000}))


def test_what_could_not_be_loaded_does_not_replace_what_was_saved(tmp_path):
    agent, rng = Agent(policies.Albatross(), n_arms=3, dim=3, seed=0), np.random.default_rng(1)
    agent.save(tmp_path / "agent")
    before = (tmp_path / "agent").read_bytes()
    for _ in range(60):
        size = 1e80 if rng.random() < 0.5 else 1.0
        agent.update(agent.select(rng.standard_normal((3, 3)) * size), rng.standard_normal() * 1e80)
    for save in (lambda: agent.save(tmp_path / "agent"), lambda: copy.deepcopy(agent)):
        with pytest.raises(
            ValueError, match=r"cannot be saved, its rewards or features were too large: .* an infinite"
        ):
            save()
    assert (tmp_path / "agent").read_bytes() == before


class Unset(NamedTuple):
    """A policy of one's own, with a parameter that may be NaN."""

    rate: float = float("nan")


class UnsetState(NamedTuple):
    pulls: np.ndarray
    priority: np.ndarray


@init.register
def init_unset(policy: Unset, n_arms, dim, rng):
    return UnsetState(np.zeros(n_arms), rng.permutation(n_arms))


@score.register
def score_unset(policy: Unset, state, offer, noise):
    return np.zeros(offer.arms.size), np.zeros(offer.arms.size)


@update.register
def update_unset(policy: Unset, state, choice, reward, n):
    state.pulls[choice.arm] += n


def test_a_policy_with_a_parameter_that_is_not_a_number_is_loaded():
    agent = Agent(Unset(), n_arms=3, dim=2, seed=0)
    assert np.isnan(Agent.load(saving.in_memory(agent), policy=Unset()).policy.rate)
    with pytest.raises(UnreadableFile, match="the saved policy is Unset"):
        Agent.load(saving.in_memory(agent), policy=Unset(1.0))


def test_a_flock_takes_truth_values_of_numpy():
    flock = Flock(users=["u"], n_arms=3, dim=3, looks=np.False_)
    assert Flock.load(saving.in_memory(flock)).looks is False


def test_a_small_fleet_that_claims_many_users_is_refused():
    arrays = members(Fleet(LINTS, n_users=2, n_arms=N_ARMS, dim=DIM))
    with pytest.raises(UnreadableFile):
        Fleet.load(packed(arrays, {"n_users": 10**9}))


def test_a_large_honest_agent_is_read():
    agent = Agent(LINTS, n_arms=3, dim=300, seed=0)
    assert same_state(state_of(Agent.load(saving.in_memory(agent))), state_of(agent))
    few = Agent(policies.UCB(), n_arms=3, dim=20_000, seed=0)  # whose state has nothing to do with the features
    assert same_state(state_of(Agent.load(saving.in_memory(few))), state_of(few))


def test_what_is_not_needed_is_not_read():
    arrays = members(played(LINTS))
    file = packed(arrays, extra=np.zeros(10_000_000))
    tracemalloc.start()
    Agent.load(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - len(file.getvalue()) < 5e6  # the file itself is in memory here


def test_a_compressed_file_is_refused_before_it_is_inflated():
    arrays = members(played(LINTS))
    file = io.BytesIO()
    with zipfile.ZipFile(packed(arrays)) as plain, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as small:
        for name in plain.namelist():
            small.writestr(name, plain.read(name))
        small.writestr("bomb.npy", bytes(50_000_000))
    file.seek(0)
    with pytest.raises(UnreadableFile, match="truncated, or is not a saved agent"):
        Agent.load(file)


def test_a_file_of_very_many_members_is_refused_before_they_are_listed():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"state/{number}.npy", b"")
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableFile, match="is not a saved agent"):
            Agent.load(file)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_a_header_longer_than_its_file_is_refused():
    whole = saving.in_memory(played(LINTS)).getvalue()
    at = whole.index(b"'shape': (") + len(b"'shape': (")
    longer = whole[:at] + b"9" * (whole.index(b",", at) - at) + whole[whole.index(b",", at) :]
    with pytest.raises(UnreadableFile, match="truncated, or is not a saved agent"):
        Agent.load(io.BytesIO(longer))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableFile, match="it is not a regular file"):
        Agent.load(tmp_path / "pipe")


# --------------------------------------------------------------------------------------------------- saving a file


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    agent = played(LINTS)
    target, link = tmp_path / "target", tmp_path / "link"
    agent.save(target)
    target.chmod(0o600)
    link.symlink_to(target)
    agent.save(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert Agent.load(target).diagnostics()["pending"] == 3


def test_a_link_to_nowhere_makes_its_target(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    played(LINTS).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").is_file()


KILLED = """
import os, sys
from pathlib import Path
from albatross import saving
with saving.replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_save_left_is_removed_by_the_next_one_and_what_is_being_written_is_not(tmp_path):
    path = tmp_path / "agent*"
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout.readline() == "writing\n"
        killed.kill()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writing:
        assert writing.stdout.readline() == "writing\n"
        left = sorted(tmp_path.iterdir())
        assert len(left) == 2
        for each in left:
            os.utime(each, (time.time() - 3_600,) * 2)
        (tmp_path / ".agent*-20240131").write_bytes(b"")
        os.utime(tmp_path / ".agent*-20240131", (0, 0))
        os.mkfifo(tmp_path / ".agent*-pipe.albatross-saving")
        played(LINTS).save(path)
        assert len(list(tmp_path.iterdir())) == 4  # the agent, what is not ours, and what is being written
        writing.stdin.close()
        assert writing.wait(30) == 0
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == [".agent*-20240131", ".agent*-pipe.albatross-saving", "agent*"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of the zip file, which stays open
def test_a_ctrl_c_while_saving_is_raised_as_such_and_the_old_file_stays(tmp_path, monkeypatch):
    agent, path = played(LINTS), tmp_path / "agent"
    agent.save(path)
    before = path.read_bytes()

    def ctrl_c(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("zipfile._ZipWriteFile.close", ctrl_c)  # then the zip file cannot be closed either
        for target in (path, io.BytesIO()):
            with pytest.raises(KeyboardInterrupt):
                agent.save(target)
        gc.collect()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["agent"]


def test_a_pipe_that_is_saved_to_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    agent, received = played(LINTS), []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    agent.save(tmp_path / "pipe")
    reader.join(30)
    assert (tmp_path / "pipe").is_fifo()
    assert repr(Agent.load(io.BytesIO(received[0]))) == repr(agent)


def test_open_files_are_written_and_read(tmp_path):
    agent, fleet = played(LINTS), Fleet(LINTS, n_users=3, n_arms=N_ARMS, dim=DIM, seed=1)
    for thing, kind in ((agent, Agent), (fleet, Fleet)):
        with (tmp_path / "both").open("wb") as file:
            thing.save(file)
        with (tmp_path / "both").open("rb") as file:
            assert repr(kind.load(file)) == repr(thing)
    with pytest.raises(UnreadableFile, match="the file is truncated, or is not a saved agent"):
        Agent.load(io.BytesIO(b"something else"))


class Trickle(io.RawIOBase):
    """A file that takes everything and does not say so, or nothing."""

    def __init__(self, answer):
        self.answer, self.got = answer, b""

    def write(self, data):
        self.got += bytes(data)
        return self.answer


def test_a_file_that_does_not_say_how_much_it_took_took_everything():
    agent, file = played(LINTS), Trickle(None)
    agent.save(file)
    assert same_state(state_of(Agent.load(io.BytesIO(file.got))), state_of(agent))


def test_a_file_that_takes_nothing_is_not_waited_for():
    with pytest.raises(OSError, match="accepts no more data"):
        played(LINTS).save(Trickle(0))


def test_a_file_system_without_locks_is_saved_to(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("albatross.store.files.fcntl.flock", no_locks)
    played(LINTS).save(tmp_path / "agent")
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]


def test_an_open_file_is_not_read_as_a_whole(tmp_path):
    agent = played(LINTS)
    with (tmp_path / "agent").open("wb") as file:
        file.seek(10**9)  # a hole, which a zip file may begin with
        agent.save(file)
    with (tmp_path / "agent").open("rb") as file:
        tracemalloc.start()
        loaded = Agent.load(file)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert repr(loaded) == repr(agent)
    assert peak < 10e6


def test_a_pipe_is_read_in_blocks():
    reader, writer = os.pipe()
    agent, sizes = played(LINTS), []

    class Pipe(io.FileIO):
        def read(self, size=-1):
            sizes.append(size)
            return super().read(size)

    with open(writer, "wb") as file, Pipe(reader) as pipe:
        agent.save(file)
        file.close()
        assert same_state(state_of(Agent.load(pipe)), state_of(agent))
    assert min(sizes) > 0


@pytest.mark.parametrize("kind", [Agent, Fleet])
@pytest.mark.parametrize("thing", [None, 7, b"agent"])
def test_what_is_neither_a_path_nor_a_file_is_told_so(kind, thing):
    with pytest.raises(TypeError, match=r"give a path .* or an open binary file, not"):
        kind.load(thing)
    with pytest.raises(TypeError, match=r"give a path .* or an open binary file, not"):
        Fleet(LINTS, n_users=1, n_arms=2, dim=1).save(thing)


def test_a_text_file_is_told_so(tmp_path):
    played(LINTS).save(tmp_path / "agent")
    with (tmp_path / "agent").open("r+") as file:
        with pytest.raises(TypeError, match="open it in binary mode"):
            Agent.load(file)
        with pytest.raises(TypeError, match="open it in binary mode"):
            played(LINTS).save(file)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_a_copy_goes_on_by_itself(copied):
    agent = played(LINTS)
    waiting = list(agent._pending.kept)
    other = copied(agent)
    contexts = np.random.default_rng(2).standard_normal((N_ARMS, DIM))
    one, two = agent.select(contexts), other.select(contexts)
    assert one.id != two.id
    assert (one.arm, one.score) == (two.arm, two.score)
    other.update(waiting[0], 1.0)
    assert agent.diagnostics()["pending"] == 4
    agent.update(waiting[0], 1.0)
    with pytest.raises(UnknownDecision):
        agent.update(two.id, 1.0)
    fleet = Fleet(LINTS, n_users=3, n_arms=N_ARMS, dim=DIM, seed=1)
    batch = np.stack([contexts, contexts])
    assert copied(fleet).select([0, 1], batch).arms.tolist() == fleet.select([0, 1], batch).arms.tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_process_has_other_ids_and_random_numbers():
    agent = Agent(policies.Uniform(), n_arms=1_000, dim=1, seed=0)
    fleet = Fleet(policies.Uniform(), n_users=1, n_arms=1_000, dim=1, seed=0)

    def choices():
        decision = agent.select(np.ones((1_000, 1)))
        return [decision.id.split("-")[0], decision.arm, int(fleet.select([0], np.ones((1, 1_000, 1))).arms[0])]

    reader, writer = os.pipe()
    choices()
    agent._lock.acquire()  # a thread of the parent may hold it at that moment
    child = os.fork()
    if child == 0:
        os.write(writer, json.dumps(choices()).encode())
        os._exit(0)
    agent._lock.release()
    os.waitpid(child, 0)
    theirs, ours = json.loads(os.read(reader, 1_000)), choices()
    os.close(reader)
    os.close(writer)
    assert all(one != other for one, other in zip(theirs, ours, strict=True))


def test_an_array_of_no_dimensions_keeps_its_shape(tmp_path):
    saving.write(tmp_path / "file", kind="agent", header={}, arrays={"state/n": np.array(3.0)})
    with saving.reading(tmp_path / "file", kind="agent") as saved:
        assert saved.array("state/n", (), float).shape == ()

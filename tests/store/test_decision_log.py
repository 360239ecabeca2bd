"""A log of decisions holds what was decided, whenever rewards come and however its writer ends."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import processes
import pytest

from albatross import Agent, LogWriter, policies
from albatross.datasets import read_log
from albatross.environments import Logged
from albatross.store import decision_log
from albatross.store.decision_log import journal_of, write_table

ARMS = ["art", "sport", "Zürich, 8|1", 'a "quoted" one']


def decided(log, name, action="art", eligible=ARMS, propensity=0.5, **options):
    contexts = np.arange(2.0 * len(eligible)).reshape(-1, 2) / 7.0
    log.write_decision(name, action=action, eligible=eligible, propensity=propensity, contexts=contexts, **options)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_log_is_read_as_it_was_written(tmp_path, name):
    with LogWriter(tmp_path / name) as log:
        decided(log, "d1", action=ARMS[2], user="ann")
        decided(log, 2, eligible=ARMS[::-1][1:], action="sport", propensity=1 / 3, user=7)
        log.write_reward("d1", 0.1)
        log.write_reward(2, 1 / 3)
    assert not journal_of(log.path).exists()
    with pytest.warns(UserWarning, match="2 of 4 actions never logged"):
        read = read_log(log.path)
    assert set(read.action_names) == set(ARMS)
    assert [read.action_names[action] for action in read.actions] == [ARMS[2], "sport"]
    assert (read.rewards.tolist(), read.propensities.tolist()) == ([0.1, 1 / 3], [0.5, 1 / 3])
    assert read.users.tolist() == ["ann", "7"]
    for row, eligible in enumerate((ARMS, ARMS[::-1][1:])):
        codes = [read.action_names.index(arm) for arm in eligible]
        assert np.flatnonzero(read.eligible[row]).tolist() == sorted(codes)
        contexts = read.contexts[[row]][0]
        np.testing.assert_array_equal(contexts[codes], np.arange(2.0 * len(eligible)).reshape(-1, 2) / 7.0)
    env = Logged.from_log(read)
    assert (env.n_arms, env.dim, env.n_users, env.names) == (4, 2, 2, read.action_names)


def test_rewards_come_late_out_of_order_twice_or_never(tmp_path):
    log = LogWriter(tmp_path / "log.csv")
    log.write_reward("c", 3.0)  # before its decision
    for name in "abcd":
        decided(log, name)
    log.write_reward("b", 2.0)
    log.write_reward("a", 1.0)
    log.write_reward("b", 9.0)  # the first one counts
    for _ in range(2):
        log.write_reward("nobody's", 5.0)
    log.write_reward("no one's", 5.0)
    decided(log, "a", action="sport")  # the first one counts
    counts = "1 decision with the id of an earlier one, 2 rewards after the first of a decision, 2 rewards of unknown"
    with pytest.warns(UserWarning, match=rf"^log\.csv\.unfinished: left out {counts} decisions$"):
        log.close()
    assert [(row["decision"], row["action"], row["reward"]) for row in rows(log.path)] == [
        ("a", "art", "1.0"),
        ("b", "art", "2.0"),
        ("c", "art", "3.0"),
        ("d", "art", ""),
    ]
    with pytest.warns(UserWarning, match="dropped|never") as told:
        assert read_log(log.path).rewards.tolist() == [1.0, 2.0, 3.0]
    assert "log.csv: dropped 1 of 4 rows: 1 without a reward" in map(str, [each.message for each in told])


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
@pytest.mark.parametrize(
    "arms",
    [
        *([0, 1], ["10", 7], [10**18 - 1, 0], ["0x1", "1_0"], ["1e", "a"], ["infinite", "-"], ["007", "7", "00"]),
        ["prix\u202f: 3\xa0€", "می\u200cخواهم"],  # with blanks and joiners of their languages
        ["\U0001f469\u200d\U0001f680", "\U0001fae8"],  # emoji, made of two, and newer than Python's Unicode
    ],
)
def test_names_of_arms_come_back_as_they_are(tmp_path, name, arms):
    with LogWriter(tmp_path / name) as log:
        for number, arm in enumerate(arms):
            decided(log, number, eligible=arms, action=arm)
            log.write_reward(number, number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers below the largest that are no arms
        read = read_log(log.path)
    assert [read.action_names[action] for action in read.actions] == list(map(str, arms))


@pytest.mark.parametrize(
    "arm",
    ["0.5", "1.0", "1.", ".5", "1e5", "1E+5", "+1", "-1", -1, 10**18, 10**20, "-0"]
    + ["inf", "-Infinity", "NAN", "+nan"],
)
def test_an_arm_that_a_table_takes_for_another_number_is_refused(tmp_path, arm):
    allowed = "a whole number from 0 with up to 18 digits, without sign, or a text that is no number"
    with LogWriter(tmp_path / "log.csv") as log:
        for offer in ({"eligible": ["1", arm], "action": "1"}, {"eligible": ["1"], "action": arm}):
            with pytest.raises(ValueError, match=f"the name of an arm in a log must be {allowed}, not "):
                decided(log, "a", **offer)
        decided(log, arm, eligible=["1"], action="1", user=arm)  # ids and users are not taken for numbers
    assert [(row["decision"], row["user"]) for row in rows(log.path)] == [(str(arm), str(arm))]


def test_an_open_log_can_be_read_already(tmp_path):
    log = LogWriter(tmp_path / "log.csv")
    decided(log, "a", eligible=ARMS[:2], user="ann")
    decided(log, "b", eligible=ARMS[:2], action="sport", user="ann")
    for name in "ab":
        log.write_reward(name, 1.0)
    assert read_log(journal_of(log.path)).rewards.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"log\.csv is not there yet, because its writer was not closed: read .*unfin"):
        read_log(log.path)
    log.close()
    assert read_log(log.path).rewards.tolist() == [1.0, 1.0]


KILLED = """
import sys
from albatross import LogWriter
log = LogWriter(sys.argv[1])
for number in range(1, 2_000):
    offer = {"eligible": ["art", "sport"], "propensity": 0.5, "contexts": [[0.5] * 2_000] * 2}
    log.write_decision(number, action=("art", "sport")[number % 2], **offer)
    log.write_reward(number, number)
    print(number, flush=True)
"""


def test_a_killed_process_loses_at_most_its_last_line_and_the_next_one_goes_on(tmp_path):
    path = tmp_path / "log.csv"
    with processes.started([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
        for _ in range(20):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        told = [int(line) for line in process.stdout.read().split()]
    last = max(told, default=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a line that is cut, and of a reward that did not come
        assert read_log(journal_of(path)).rewards.tolist()[:last] == list(range(1, last + 1))
        with LogWriter(path) as log:
            log.write_decision("x", action="art", eligible=["art"], propensity=1.0, contexts=[[0.5] * 2_000])
            log.write_reward("x", -1.0)
    found = [row["reward"] for row in rows(path)]
    assert found[:last] == [f"{number}.0" for number in range(1, last + 1)]
    assert found[-1] == "-1.0"


@pytest.mark.parametrize("cut", range(2, 60, 7))
def test_a_line_that_was_cut_is_left_out_and_told_of(tmp_path, cut):
    path = tmp_path / "log.csv"
    log = LogWriter(path)
    for name in "ab":
        decided(log, name)
    os.truncate(journal_of(path), journal_of(path).stat().st_size - cut)
    log._file.close()  # as if the process had ended
    again = LogWriter(path)
    decided(again, "c")
    with pytest.warns(UserWarning, match=r"log\.csv\.unfinished: 1 line was cut when the writer was stopped"):
        again.close()
    assert [row["decision"] for row in rows(path)] == ["a", "c"]


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_a_full_disk_costs_one_line_and_the_next_one_is_whole(tmp_path, part):
    log = LogWriter(tmp_path / "log.csv")
    decided(log, "a")

    class Full:
        closed = False

        def fileno(self):
            return file.fileno()

        def write(self, line):
            return os.write(file.fileno(), line[: int(part * (len(line) - 1))])

    file, log._file = log._file, Full()
    with pytest.raises(OSError, match=r"no room for .*log\.csv\.unfinished"):
        decided(log, "b")
    log._file = file
    decided(log, "c")
    with pytest.warns(UserWarning, match="1 line was cut"):
        log.close()
    assert [row["decision"] for row in rows(log.path)] == ["a", "c"]


def test_a_file_that_is_no_journal_is_neither_written_to_nor_removed(tmp_path):
    journal, other = tmp_path / "log.csv.unfinished", tmp_path / "other"
    begins_alike = ("\nmy notes\n", '{\n  "reward": 1\n}\n')
    for text in ("my notes", "[]\n", '{"reward": 1}\n', "\0" * 20, *begins_alike):
        journal.write_text(text)
        with pytest.raises(ValueError, match=r"log\.csv\.unfinished is not the journal of a log"):
            LogWriter(tmp_path / "log.csv")
        assert journal.read_text() == text
    other.write_text("somebody's")
    makers = [lambda: journal.symlink_to(other), lambda: journal.symlink_to(tmp_path / "nothing"), journal.mkdir]
    for make in [*makers, lambda: os.mkfifo(journal)]:
        journal.rmdir() if journal.is_dir() else journal.unlink()
        make()
        with pytest.raises(ValueError, match="not a regular file"):
            LogWriter(tmp_path / "log.csv")
    assert other.read_text() == "somebody's"
    assert not (tmp_path / "nothing").exists()


def test_parquet_on_a_full_disk_is_one_sentence_and_the_journal_stays(tmp_path):
    resource = pytest.importorskip("resource")
    log = LogWriter(tmp_path / "log.parquet")
    log.write_decision("a", action="art", eligible=["art"], propensity=1.0)  # takes 100 bytes as CSV
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, limits[1]))
    try:
        with pytest.raises(OSError, match=r"log\.parquet cannot be written .*: see that there is room"):
            log.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == [journal_of(log.path).name]
    log.close()
    with pytest.raises(ValueError, match=r"log\.parquet has no usable row: 1 without a reward"):
        read_log(log.path)


def test_a_journal_that_begins_with_cut_lines_is_continued(tmp_path):
    (tmp_path / "log.csv.unfinished").write_text('\n{"deci\n{\n{"decision": "a", "rew')
    log = LogWriter(tmp_path / "log.csv")
    log.write_decision("b", action="x", eligible=["x"], propensity=1.0)
    with pytest.warns(UserWarning, match="lines were cut"):
        log.close()
    assert [row["decision"] for row in rows(log.path)] == ["b"]


@pytest.mark.parametrize("moment", ["try_lock", "_check_journal"])
def test_a_writer_that_comes_while_another_one_closes_the_log_is_refused(tmp_path, monkeypatch, moment):
    """It would write to a journal that is removed, or replace the table."""
    log, real = LogWriter(tmp_path / "log.csv"), getattr(decision_log, moment)
    log.write_decision("a", action="x", eligible=["x"], propensity=1.0)

    def after_the_other_one_has_closed(argument):
        log.close()
        return real(argument)

    monkeypatch.setattr(decision_log, moment, after_the_other_one_has_closed)
    with pytest.raises(ValueError, match="is being written by another LogWriter"):
        LogWriter(log.path)
    assert [row["decision"] for row in rows(log.path)] == ["a"]


def test_two_writers_do_not_share_a_path(tmp_path):
    log = LogWriter(tmp_path / "log.csv")
    with pytest.raises(ValueError, match=r"log\.csv\.unfinished is being written by another LogWriter"):
        LogWriter(tmp_path / "log.csv")
    log.close()
    log.close()  # nothing happens
    with pytest.raises(ValueError, match=r"log\.csv exists already: give every log a new name"):
        LogWriter(tmp_path / "log.csv")
    with pytest.raises(ValueError, match=r"the log .*log\.csv is closed"):
        log.write_reward("a", 1.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_writes_to_the_same_log_and_leaves_it_open(tmp_path):
    code = """
import os, sys
from albatross import LogWriter
log = LogWriter(sys.argv[1])
def decide(name):
    log.write_decision(name, action="art", eligible=["art", "sport"], propensity=0.5, contexts=[[1.0], [2.0]])
decide("parent's")
child = os.fork()
if not child:
    decide("child's")
    log.close()
    os._exit(0)
os.waitpid(child, 0)
decide("last")
log.close()
"""
    processes.run([sys.executable, "-c", code, str(tmp_path / "log.csv")], check=True)
    assert [row["decision"] for row in rows(tmp_path / "log.csv")] == ["parent's", "child's", "last"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_told_that_the_log_was_closed_elsewhere(tmp_path):
    code = """
import os, sys
from albatross import LogWriter
log = LogWriter(sys.argv[1])
def decide(name):
    log.write_decision(name, action="art", eligible=["art"], propensity=1.0)
decide("parent's")
wait, go = os.pipe()
child = os.fork()
if not child:
    os.read(wait, 1)
    try:
        decide("child's")
    except ValueError as error:
        os._exit(7 if "another process closed the log" in str(error) else 1)
    os._exit(2)
log.close()
os.write(go, b"!")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert processes.run([sys.executable, "-c", code, str(tmp_path / "log.csv")]).returncode == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_log_is_closed_while_forked_processes_write_to_it(tmp_path):
    code = """
import os, sys, time
from albatross import LogWriter
log = LogWriter(sys.argv[1])
for name in range(2_000):
    log.write_decision(name, action="art", eligible=["art"], propensity=1.0)
child = os.fork()
if not child:
    for name in range(100_000):
        try:
            log.write_reward(name, 1.0)
        except ValueError as error:
            print(name, flush=True)
            os._exit(0)
    os._exit(1)
time.sleep(0.05)
log.close()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = processes.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "log.csv")], check=True)
    n_taken = int(done.stdout)  # rewards that were taken, of which none may be lost
    assert {row["decision"] for row in rows(tmp_path / "log.csv") if row["reward"]} >= set(
        map(str, range(min(n_taken, 2_000)))
    )
    assert not journal_of(tmp_path / "log.csv").exists()


def test_a_file_that_came_to_the_place_of_the_table_is_not_replaced(tmp_path):
    log = LogWriter(tmp_path / "log.csv")
    decided(log, "a")
    log.path.write_text("precious")
    with pytest.raises(ValueError, match=r"log\.csv is there already: another process closed the log, or put a file"):
        log.write_reward("a", 1.0)
    with pytest.raises(ValueError, match=r"log\.csv was put where the table of this log belongs: move it, and close"):
        log.close()
    assert log.path.read_text() == "precious"
    log.path.unlink()
    log.close()
    assert [row["reward"] for row in rows(log.path)] == [""]  # what was refused was not written


def test_what_is_written_while_the_table_is_made_is_in_it(tmp_path, monkeypatch):
    log = LogWriter(tmp_path / "log.csv")
    decided(log, "first")
    journal, made = journal_of(log.path), []

    def write_late(source, target):  # as a forked process does
        write_table(source, target)
        if not made:
            journal.write_bytes(journal.read_bytes() + journal.read_bytes().replace(b"first", b"late"))
        made.append(target)

    monkeypatch.setattr(decision_log, "write_table", write_late)
    log.close()
    assert [row["decision"] for row in rows(log.path)] == ["first", "late"]


def test_csv_needs_no_library_and_parquet_says_which(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with LogWriter(tmp_path / "log.csv") as log:
        decided(log, "a")
    assert len(rows(log.path)) == 1
    with pytest.raises(ImportError, match=r"this needs duckdb: run pip install '\.\[lab\]'"):
        LogWriter(tmp_path / "log.parquet")
    assert not journal_of(tmp_path / "log.parquet").exists()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"action": "code"}, r"action 'code' is not among the eligible arms \['art', 'sport'"),
        ({"eligible": []}, r"eligible must be a list of at least one arm, not \[\]"),
        ({"eligible": "art"}, "eligible must be a list of at least one arm, not 'art'"),
        ({"eligible": ["art", 1, "1"]}, "eligible lists arm '1' twice: a log has one row of features per arm"),
        ({"eligible": ["art", "NA"]}, "the name of an arm in a log must be .* and none of NA, NULL.* not 'NA'"),
        ({"eligible": ["art", " x"]}, "the name of an arm in a log must be .* without blanks at its ends"),
        ({"eligible": ["art", "a\u2028b"]}, "the name of an arm in a log must be .* without control characters"),
        ({"eligible": ["art", "\ud800"]}, "the name of an arm in a log must be .* without control characters"),
        (
            {"eligible": ["art", "a\nb"]},
            "the name of an arm in a log must be a whole number or a text, without control",
        ),
        ({"user": 1.5}, r"the name of a user in a log must be .*, not 1\.5"),
        ({"decision": None}, "the name of a decision in a log must be .*, not None"),
        ({"propensity": 0.0}, "propensity must be above 0 and at most 1, or None, not 0.0"),
        ({"propensity": 1.5}, "propensity must be above 0 and at most 1, or None, not 1.5"),
        ({"propensity": "1"}, "propensity must be above 0 and at most 1, or None, not '1'"),
        ({"contexts": [[1.0]]}, r"contexts must have shape \(4, any\), got \(1, 1\)"),
        ({"contexts": [[np.nan]] * 4}, "contexts must be finite"),
        (
            {"contexts": np.ones((4, 30_000))},
            r"the offer takes \d+ bytes in the log, but at most 1048576 are allowed; a log",
        ),
    ],
)
def test_what_is_no_decision_is_refused_and_not_written(tmp_path, wrong, message):
    given = {"decision": "a", "action": "art", "eligible": ARMS, "propensity": 0.5, "contexts": np.ones((4, 2))}
    with LogWriter(tmp_path / "log.csv") as log:
        with pytest.raises(ValueError, match=message):
            log.write_decision(**{**given, **wrong})
        with pytest.raises(ValueError, match="reward must be a number, not 'much'"):
            log.write_reward("a", "much")
        assert journal_of(log.path).read_bytes() == b""
    with pytest.raises(ValueError, match=r"a log ends in \.csv or \.parquet, not as 'log\.txt'"):
        LogWriter(tmp_path / "log.txt")


@pytest.mark.parametrize("closed", [True, False])
def test_a_log_in_parquet_holds_the_largest_offers_of_a_service(tmp_path, closed):
    arms = [f"article-{arm}" for arm in range(1_000)]
    contexts = np.random.default_rng(0).standard_normal((1_000, 512))
    log = LogWriter(tmp_path / "log.parquet")
    for decision in range(3):
        log.write_decision(decision, action=arms[decision], eligible=arms, propensity=0.001, contexts=contexts)
        log.write_reward(decision, 1.0)
    log.close() if closed else log.pause()
    with pytest.warns(UserWarning, match="997 of 1000 actions never logged"):
        read = read_log(log.path if closed else journal_of(log.path))
    assert read.eligible.all()
    order = [arms.index(name) for name in read.action_names]
    np.testing.assert_array_equal(read.contexts[np.arange(3)][2], contexts[order])


DECISION = {"decision": "1", "action": "a", "eligible": ["a", "b"], "propensity": 0.5, "contexts": "A" * 43 + "="}


@pytest.mark.parametrize(
    "line",
    [
        '{"colour": "red"}',
        "[1]",
        "[" * 100_000,
        '{"decision": "1", "action": "a"}',
        '{"decision": "1", "reward": "x"}',
        '{"decision": ["1"], "reward": 1.0}',
        json.dumps({**DECISION, "decision": 1}),
        json.dumps({**DECISION, "action": None}),
        json.dumps({**DECISION, "eligible": 3}),
        json.dumps({**DECISION, "eligible": []}),
        json.dumps({**DECISION, "eligible": ["a", ["b"]]}),
        json.dumps({**DECISION, "eligible": ["a", "\ud800"]}),
        json.dumps({**DECISION, "user": {}}),
        json.dumps({**DECISION, "propensity": "much"}),
        json.dumps({**DECISION, "contexts": 1}),
        json.dumps({**DECISION, "contexts": "AAAA"}),
        json.dumps({**DECISION, "contexts": "A" * 11 + "="}),
        json.dumps({**DECISION, "contexts": "é"}),
    ],
)
def test_a_file_that_is_no_journal_or_a_damaged_one_is_refused_with_its_line(tmp_path, line):
    path = tmp_path / "log.csv.unfinished"
    path.write_text("\n".join(json.dumps(each) for each in (DECISION, {"decision": "1", "reward": 1.0})) + "\n")
    with pytest.warns(UserWarning, match="1 of 2 actions never logged"):
        assert read_log(path).rewards.tolist() == [1.0]
    path.write_text(path.read_text() + line.replace('"1"', '"2"') + "\n")
    with pytest.raises(ValueError, match=r"^log\.csv\.unfinished.* line 3"):
        read_log(path)


# ----------------------------------------------------------------------------------------------- logs of agents


def an_agent(**options):
    return Agent(policies.Greedy(), arms=["sport", "art", "code"], dim=2, floor=0.3, seed=0, **options)


def test_an_agent_logs_its_offers_propensities_and_rewards(tmp_path):
    agent, rng = an_agent(), np.random.default_rng(0)
    before = agent.select(rng.standard_normal((3, 2)))
    wanted, offered = [], []
    log = agent.log(tmp_path / "log.csv")
    for number in range(40):
        if number == 20:
            agent.add_arm("food")
            agent.retire_arm("sport")
        contexts, eligible = rng.standard_normal((3, 2)), rng.permutation(agent.arms)[: 1 + number % 3].tolist()
        decision = agent.select(contexts, eligible=eligible)
        offered.append({arm: contexts[agent.arms.index(arm)].tolist() for arm in eligible})
        wanted.append((decision, float(number)))
    for place in rng.permutation(40)[:30]:
        agent.update(*wanted[place])
        wanted[place] = (*wanted[place], "rewarded")
    agent.update(before, 1.0)  # its decision is not in the log
    with pytest.warns(UserWarning, match="left out 1 reward of unknown decisions"):
        log.close()
    agent.update(agent.select(np.ones((3, 2))), 1.0)  # the agent goes on without its log
    found = rows(log.path)
    assert [row["decision"] for row in found] == [decision.id for decision, *_ in wanted]
    for row, (decision, reward, *rewarded), offer in zip(found, wanted, offered):
        assert row["action"] == decision.arm
        assert float(row["propensity"]) == decision.propensity
        assert row["reward"] == (str(reward) if rewarded else "")
        assert dict(zip(json.loads(row["eligible"]), json.loads(row["contexts"]))) == offer


def test_an_agent_that_was_restarted_goes_on_with_its_log(tmp_path):
    agent = an_agent()
    first = agent.log(tmp_path / "log.csv")
    decision = agent.select(np.ones((3, 2)))
    agent.save(tmp_path / "agent.alb")
    first._file.close()  # as if the process had ended
    agent = Agent.load(tmp_path / "agent.alb")
    with agent.log(tmp_path / "log.csv"):
        agent.update(decision.id, 0.5)
        agent.update(agent.select(np.ones((3, 2))), 0.25)
    assert [row["reward"] for row in rows(tmp_path / "log.csv")] == ["0.5", "0.25"]


def test_logging_changes_no_decision(tmp_path):
    plain, logged = an_agent(), an_agent()
    with logged.log(tmp_path / "log.csv"):
        for _ in range(20):
            one, other = (agent.select(np.ones((3, 2))) for agent in (plain, logged))
            assert (one.arm, one.propensity) == (other.arm, other.propensity)
            for agent, decision in ((plain, one), (logged, other)):
                agent.update(decision, 1.0)


def test_a_decision_that_cannot_be_logged_is_not_made(tmp_path):
    agent, twin = (Agent(policies.Greedy(), n_arms=2, dim=2, floor=0.3, seed=0) for _ in range(2))
    log = agent.log(tmp_path / "log.csv")
    with pytest.raises(ValueError, match="eligible lists arm '0' twice: a log has one row of features per arm"):
        agent.select(np.ones((3, 2)), arms=[0, 0, 1])
    assert agent.diagnostics()["pending"] == agent.diagnostics()["decisions"] == 0
    for _ in range(10):
        assert agent.select(np.ones((2, 2))).arm == twin.select(np.ones((2, 2))).arm
    with pytest.raises(ValueError, match=r"this agent writes to .*log\.csv already: close that log first"):
        agent.log(tmp_path / "other.csv")
    log.close()
    agent.log(tmp_path / "other.csv").close()


def test_a_reward_that_cannot_be_logged_is_not_learnt_and_can_be_given_again(tmp_path, monkeypatch):
    agent = Agent(policies.Greedy(), n_arms=2, dim=2, floor=0.3, seed=0)
    log, decision = agent.log(tmp_path / "log.csv"), agent.select(np.ones((2, 2)))

    def full(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(log, "write_reward", full)
        with pytest.raises(OSError, match="no space"):
            agent.update(decision, 1.0)
    assert (agent.diagnostics()["pending"], agent.diagnostics()["pulls"].sum()) == (1, 0)
    agent.update(decision, 1.0)
    log.close()
    assert [row["reward"] for row in rows(log.path)] == ["1.0"]


def test_the_unit_ball_has_no_log(tmp_path):
    with pytest.raises(ValueError, match="decisions on the unit ball have no propensities"):
        Agent(dim=2).log(tmp_path / "log.csv")


def test_rows_that_pass_have_no_log(tmp_path):
    agent = Agent(policies.Greedy(biases=False), arms="passing", dim=2, floor=0.1)
    with pytest.raises(ValueError, match="rows that pass have no names: a log needs arms that last"):
        agent.log(tmp_path / "log.csv")
    assert not list(tmp_path.iterdir())

"""`albatross evaluate` on logs with eligible actions, users, schemas, and on those that agents write."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from albatross import Agent, Features, evaluation, policies
from albatross.cli.commands import albatross
from albatross.datasets import read_log
from albatross.environments import Logged
from albatross.store.decision_log import journal_of

ARMS = ["sport", "politics", "art", "code"]
THETA, BIASES = np.array([0.6, -0.4, 0.3]), np.array([0.1, 0.3, 0.0, 0.2])


def run(*arguments):
    return CliRunner().invoke(albatross, ["evaluate", *map(str, arguments)], env={"COLUMNS": "100"})


def table(printed):
    """The numbers of every row, and the errors below them."""
    found, name = {}, None
    for line in printed.splitlines():
        words = line.replace(",", "").split()
        if line.startswith("  ") and words and words[0].startswith("±"):
            found[name] = list(zip(found[name], (float(word[1:]) for word in words)))
        elif line.startswith(" ") and words and words[-1].isdecimal():
            name, found[words[0]] = words[0], [float(word) for word in words[1:-1]]
    return found


# ------------------------------------------------------------------------------------------------------- round trip


def rounds(n, rng):
    """Contexts, eligible arms and mean rewards."""
    for _ in range(n):
        contexts, mask = rng.standard_normal((4, 3)), rng.random(4) < 0.6
        mask[rng.permutation(4)[:2]] = True
        yield contexts, mask, contexts @ THETA + BIASES


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """An agent that has learnt a little, the log of its next rounds, and what it and uniform play are worth."""
    folder, rng = tmp_path_factory.mktemp("log"), np.random.default_rng(1)
    agent = Agent(policies.Greedy(), arms=ARMS, dim=3, floor=0.3, seed=0)
    for contexts, mask, means in rounds(60, rng):
        decision = agent.select(contexts, eligible=mask)
        agent.update(decision, means[decision.row] + 0.5 * rng.standard_normal())
    agent.save(folder / "agent.alb")
    frozen, waiting = Agent.load(folder / "agent.alb"), []
    with agent.log(folder / "log.csv"):
        for contexts, mask, means in rounds(1_500, rng):
            decision = agent.select(contexts, eligible=mask)
            waiting.append((decision, means[decision.row] + 0.5 * rng.standard_normal()))
            if len(waiting) > 20:
                agent.update(*waiting.pop(rng.integers(20)))  # late, and not in order
    values = [
        (frozen.propensity(contexts, eligible=mask) @ means, means[mask].mean())
        for contexts, mask, means in rounds(3_000, rng)
    ]
    return folder, dict(zip(("agent.alb", "uniform"), np.mean(values, axis=0))), np.std(values, axis=0) / np.sqrt(3_000)


def test_what_an_agent_logs_tells_what_it_and_uniform_play_are_worth(written):
    folder, truth, error_of_truth = written
    done = run(folder / "log.csv", "--agent", folder / "agent.alb", "--policies", "greedy")
    assert done.exit_code == 0, done.output
    assert "log.csv: 1,480 rounds, 4 actions, 3 features" in done.output
    assert "note: log.csv: dropped 20 of 1500 rows: 20 without a reward" in done.output
    assert "features: the column contexts" in done.output
    found = table(done.output)
    for name, value in truth.items():
        assert len(found[name]) == 3  # IPS, SNIPS and DR
        for estimate, error in found[name]:
            assert error < 0.1 * abs(truth["agent.alb"] - truth["uniform"])
            assert abs(estimate - value) < 3.0 * np.hypot(error, error_of_truth.max())


@pytest.mark.filterwarnings("ignore:log.csv. dropped 20 of 1500 rows")
def test_an_agent_of_a_file_is_evaluated_as_in_python(written):
    folder, truth, _ = written
    env = Logged.from_log(read_log(folder / "log.csv"))
    found = evaluation.evaluate({"mine": Agent.load(folder / "agent.alb")}, env)["mine"].ips
    printed = table(run(folder / "log.csv", "--agent", folder / "agent.alb", "--policies", "greedy").output)
    assert printed["agent.alb"][0] == pytest.approx((found.value, found.standard_error), rel=0.02)
    # Uniform over all arms instead of the eligible ones is not a policy of this log.
    with pytest.raises(ValueError, match="where it is not eligible"):
        evaluation.evaluate(np.full((env.length, 4), 0.25), env)
    assert abs(found.value - truth["agent.alb"]) < 3.0 * found.standard_error


# --------------------------------------------------------------------------------------------- schemas and users


@pytest.fixture
def shop(tmp_path):
    """Items shown to two users who like different topics; a table of items and a schema."""
    rng = np.random.default_rng(0)
    topics = {"a1": "sport", "a2": "art", "a3": "sport", "a4": "art"}
    lines = ["action,reward,propensity,eligible,user,device"]
    for t in range(400):
        user, device = ("ann", "bob")[t % 2], ("phone", "desktop")[int(rng.integers(2))]
        offered = sorted(rng.permutation(list(topics))[: 2 + t % 3])
        action = offered[int(rng.integers(len(offered)))]
        likes = topics[action] == ("sport" if user == "ann" else "art")
        reward = 0.8 * likes + 0.1 * (device == "phone") + 0.2 * rng.standard_normal()
        lines.append(f"{action},{reward},{1 / len(offered)},{'|'.join(offered)},{user},{device}")
    (tmp_path / "log.csv").write_text("\n".join(lines))
    (tmp_path / "items.csv").write_text("action,topic\n" + "\n".join(map(",".join, topics.items())))
    (tmp_path / "features.toml").write_text("""
products = [["topic", "device"]]
[features.topic]
kind = "category"
values = ["sport", "art"]
[features.device]
kind = "category"
values = ["phone", "desktop"]
of = "situation"
""")
    return tmp_path


def evaluated(folder, *options):
    given = ("--items", folder / "items.csv", "--schema", folder / "features.toml", "--policies", "lints(sigma=0.2)")
    return run(folder / "log.csv", *given, *options)


def test_a_log_of_names_is_evaluated_by_a_schema_and_per_user(shop):
    one, each = evaluated(shop), evaluated(shop, "--per-user")
    for done in (one, each):
        assert done.exit_code == 0, done.output
        assert "log.csv: 400 rounds, 4 actions, 8 features, 2 users" in done.output
        assert "features: as in features.toml" in done.output
    (together, error), (apart, other) = (table(done.output)["lints(sigma=0.2)"][-1] for done in (one, each))
    assert apart - together > 4.0 * np.hypot(error, other)  # what one likes, the other does not
    assert table(one.output)["uniform"] == table(each.output)["uniform"]


def test_a_log_that_is_still_written_is_found(shop, tmp_path):
    agent = Agent(policies.Greedy(), arms=["x", "y"], dim=1, floor=0.5, seed=0)
    log = agent.log(tmp_path / "open.csv")
    for number in range(60):
        agent.update(agent.select([[0.1], [0.2]]), number % 3)
    assert "open.csv is not there yet, because its writer was not closed: read" in run(tmp_path / "open.csv").output
    done = run(journal_of(tmp_path / "open.csv"), "--policies", "greedy")
    assert done.exit_code == 0, done.output
    assert "open.csv.unfinished: 60 rounds, 2 actions" in done.output
    log.close()


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (("desktop", "tv"), (), "log.csv, line "),
        (("desktop", "tv"), (), "device='tv' is not one of its values: 'phone', 'desktop'"),
        (("device", "hardware"), (), "log.csv has no column 'device', a feature of the situation in the schema"),
        (("user", "person"), ("--per-user",), "--per-user needs a column 'user' in the log"),
        (("", ""), ("--arms", "biases"), "arms='biases' is for logs without contexts of their own"),
        (("", ""), ("--agent", "items.csv"), "items.csv is truncated, or is not a saved agent"),
    ],
)
def test_what_does_not_fit_is_one_line(shop, monkeypatch, change, options, message):
    monkeypatch.chdir(shop)
    log = shop / "log.csv"
    log.write_text(log.read_text().replace(*change) if change[0] else log.read_text())
    done = evaluated(shop, *options)
    assert done.exit_code == 1
    assert message in done.output
    assert "Traceback" not in done.output


def test_an_agent_is_evaluated_on_contexts_of_its_own_features_only(shop):
    features = Features.read(shop / "features.toml")
    other = Features({**features.schema}, products=[("device", "topic")])  # as many features, in another order
    turned = Features(dict(reversed(features.schema.items())), products=features.products)
    agents = {"own": {"features": features}, "other": {"features": other}, "none": {"dim": 8}}
    for name, given in {**agents, "turned": {"features": turned}}.items():
        Agent(policies.Greedy(), arms=["a1", "a2", "a3", "a4"], floor=0.1, **given).save(shop / f"{name}.alb")
    done = evaluated(shop, "--agent", shop / "own.alb")
    assert done.exit_code == 0, done.output
    assert "own.alb" in table(done.output)
    for name, has in (("other", "other features"), ("turned", "other features"), ("none", "no features")):
        done = evaluated(shop, "--agent", shop / f"{name}.alb")
        assert done.exit_code == 1
        assert f"contexts are made as in features.toml, but {name}.alb has {has}: give the schema" in done.output
    done = run(shop / "log.csv", "--items", shop / "items.csv", "--agent", shop / "own.alb")
    assert done.exit_code == 1
    assert "the log has no column 'contexts', and own.alb does not know contexts made of its other" in done.output


def test_included_logs_take_no_schema(shop):
    done = run("open-bandit", "--schema", shop / "features.toml")
    assert done.exit_code == 1
    assert "open-bandit includes its items and features: leave out --schema" in done.output

"""Speed as ratios, each measured in one run on the same work, best of several repeats.

    make bench

Floors are what the project promises; a ratio below its floor ends the run with an error.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
from threadpoolctl import threadpool_limits

from albatross import Agent, Fleet, Flock, environments, policies, simulate
from albatross.features import Category, Features, Number
from albatross.linalg.eigen import rank_one_update
from plain_numpy import PlainAlbatross, PlainLinUCB, PlainOFULPlus
from slow_sup_lin import SlowSup

N_ARMS, DIM, ROUNDS, REPEATS = 75, 50, 4_000, 5
SIGMA = 0.5**0.5
ENV = environments.Mixture(n_arms=N_ARMS, dim=DIM, theta_norm=1.0, noise_sd=SIGMA)
OFUL_PLUS = policies.OFULPlus(norm_bound=10.0, sigma=SIGMA, horizon=ROUNDS)


def best(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of some repeats, after one that is not counted."""
    work()
    times = []
    for _ in range(REPEATS):
        begun = clock()
        work()
        times.append(clock() - begun)
    return min(times)


def plain_simulation() -> None:
    """OFUL+ in plain NumPy, contexts drawn round by round."""
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(DIM)
    biases = rng.uniform(-1, 1, N_ARMS)
    policy = PlainOFULPlus(N_ARMS, DIM, norm_bound=10.0, horizon=ROUNDS, sigma=SIGMA)
    regret = 0.0
    for _ in range(ROUNDS):
        contexts = rng.standard_normal((N_ARMS, DIM))
        means = biases + contexts @ theta
        arm = policy.select(contexts)
        policy.update(arm, contexts[arm], means[arm] + SIGMA * rng.standard_normal())
        regret += means.max() - means[arm]


def simulation_ratios() -> list[tuple[str, float, float, str]]:
    trio = {
        "ALB-Norm": policies.ALBNorm(norm_bound=10.0, sigma=SIGMA),
        "OFUL+": OFUL_PLUS,
        "oracle": policies.OFULPlus(norm_bound=1.0, sigma=SIGMA),
    }
    alone = best(lambda: simulate(OFUL_PLUS, ENV, horizon=ROUNDS, workers=1))
    plain = best(plain_simulation)
    together = best(lambda: simulate(trio, ENV, horizon=ROUNDS, workers=1))
    one = best(lambda: simulate(OFUL_PLUS, ENV, horizon=ROUNDS, trials=8, workers=1))
    two = best(lambda: simulate(OFUL_PLUS, ENV, horizon=ROUNDS, trials=8, workers=2))
    return [
        ("simulate OFUL+, rounds a second against plain NumPy", plain / alone, 3.5, ">="),
        ("two workers against one", one / two, 1.7, ">="),
        ("OFUL+, ALB-Norm and oracle paired against OFUL+ alone", together / alone, 2.0, "<="),
    ]


def agent_ratios() -> list[tuple[str, float, float, str]]:
    contexts = np.random.default_rng(0).standard_normal((500, N_ARMS, DIM))
    rewards = np.random.default_rng(1).standard_normal(500).tolist()

    def stepped(agent: Agent) -> Callable[[], None]:
        def work() -> None:
            for table, reward in zip(contexts, rewards, strict=True):
                agent.update(agent.select(table), reward)

        return work

    def plain(policy: PlainOFULPlus | PlainLinUCB) -> Callable[[], None]:
        def work() -> None:
            for table, reward in zip(contexts, rewards, strict=True):
                arm = policy.select(table)
                policy.update(arm, table[arm], reward)

        return work

    pairs = {
        "OFUL+": (OFUL_PLUS, PlainOFULPlus(N_ARMS, DIM, norm_bound=10.0, horizon=ROUNDS, sigma=SIGMA)),
        "LinUCB without biases": (policies.LinUCB(biases=False), PlainLinUCB(N_ARMS, DIM)),
    }
    found = []
    for name, (policy, numpy_policy) in pairs.items():
        agent = Agent(policy, n_arms=N_ARMS, dim=DIM, seed=0)
        ratio = best(plain(numpy_policy)) / best(stepped(agent))
        found.append((f"Agent on given contexts against plain NumPy: {name}", ratio, 1.5, ">="))
    return found


def flagship_ratios() -> list[tuple[str, float, float, str]]:
    """Albatross against OFUL+ and against plain NumPy of itself, on the same rounds, and AlbatrossDim's seconds."""
    rounds = environments.Recorded(
        contexts=(contexts := np.random.default_rng(0).standard_normal((ROUNDS, N_ARMS, DIM))),
        rewards=(rewards := contexts[:, :, 0] + SIGMA * np.random.default_rng(1).standard_normal((ROUNDS, N_ARMS))),
    )

    def policy_seconds(policy: object) -> float:
        return min(simulate(policy, rounds, horizon=ROUNDS, workers=1).seconds for _ in range(REPEATS))

    def plain() -> None:
        policy = PlainAlbatross(N_ARMS, DIM)
        for table, row in zip(contexts, rewards, strict=True):
            arm = policy.select(table)
            policy.update(arm, table[arm], row[arm])

    albatross = policy_seconds(policies.Albatross())
    sparse = environments.Ball(dim=200, magnitudes=np.linspace(0.12, 0.30, 20), noise_sd=0.1)
    long = simulate(policies.AlbatrossDim(sigma=0.1), sparse, horizon=1_000_000, workers=1)
    return [
        ("Albatross, policy time against OFUL+'s", albatross / policy_seconds(OFUL_PLUS), 6.0, "<="),
        ("Albatross, rounds a second against plain NumPy of itself", best(plain) / albatross, 1.5, ">="),
        ("seconds of AlbatrossDim, d = 200, 1e6 rounds", long.seconds, 15.0, "<="),
    ]


def fleet_ratios() -> list[tuple[str, float, float, str]]:
    """10,000 users, one event each, at K = 10 and d = 16: a fleet against a loop over one plain policy a user."""
    n_users, n_arms, dim, horizon = 10_000, 10, 16, 1_000
    rng = np.random.default_rng(0)
    users, contexts = rng.permutation(n_users), rng.standard_normal((n_users, n_arms, dim))
    rewards = rng.standard_normal(n_users)
    told = {"norm_bound": 3.0, "sigma": SIGMA}
    plain_policies = [PlainOFULPlus(n_arms, dim, horizon=horizon, **told) for _ in range(n_users)]

    def plain() -> None:
        for user, table, reward in zip(users.tolist(), contexts, rewards.tolist(), strict=True):
            arm = plain_policies[user].select(table)
            plain_policies[user].update(arm, table[arm], reward)

    for _ in range(n_arms + 1):  # past the first plays, which cost nothing
        plain()
    slow = best(plain)
    found = []
    for name, policy in (("OFUL+", policies.OFULPlus(**told)), ("ALB-Norm", policies.ALBNorm(**told))):
        fleet = Fleet(policy, n_users=n_users, n_arms=n_arms, dim=dim, horizon=horizon, seed=0)

        def events(fleet: Fleet = fleet) -> None:
            fleet.update(fleet.select(users, contexts), rewards)

        for _ in range(n_arms + 1):
            events()
        found += [
            (f"a fleet's events a second against a loop over plain NumPy OFUL+: {name}", slow / best(events), 10, ">="),
            (f"bytes a user: {name}", fleet.nbytes / n_users, 4_000, "<="),
        ]
    return found


def encoding_ratios() -> list[tuple[str, float, float, str]]:
    """CPU time to encode an offer of 50 arms with 6 features, against collecting 300 given numbers in an array."""
    rng = np.random.default_rng(0)
    schema = {
        "topic": Category(values=["sport", "politics", "art", "science"]),
        "kind": Category(values=["text", "video"]),
        "site": Category(buckets=8),
        "age": Number(mean=12.0, sd=6.0),
        "words": Number(mean=500.0, sd=200.0),
        "score": Number(),
    }
    arms = [
        {
            "topic": str(rng.choice(schema["topic"].values)),
            "kind": str(rng.choice(schema["kind"].values)),
            "site": f"{rng.integers(30)}.example",
            "age": rng.uniform(0.0, 48.0),
            "words": int(rng.integers(100, 2_000)),
            "score": rng.standard_normal(),
        }
        for _ in range(50)
    ]
    features = Features(schema)
    numbers = [dict(zip(schema, rng.standard_normal(6).tolist(), strict=True)) for _ in range(50)]

    def encode() -> object:
        return features.encode(None, arms)

    def collect() -> object:
        return np.array([[arm[name] for name in schema] for arm in numbers])

    def microseconds(work: Callable[[], object]) -> float:
        """CPU time of a call in the fastest of many short stretches."""
        stretches = []
        for _ in range(200):
            begun = time.process_time()
            for _ in range(50):
                work()
            stretches.append(time.process_time() - begun)
        return 1e6 * min(stretches) / 50

    encoded, collected = microseconds(encode), microseconds(collect)
    return [
        ("encode 50 arms with 6 features, CPU time against collecting 300 numbers", encoded / collected, 1.5, "<="),
        ("CPU microseconds of encoding 50 arms with 6 features", encoded, 40.0, "<="),
    ]


def named_fleet_ratios() -> list[tuple[str, float, float, str]]:
    """Users by name at K = 10 and d = 16: newcomers, rows as bytes, and single events against those of a batch."""
    n_users, n_arms, dim = 1_000, 10, 16
    contexts = np.random.default_rng(0).standard_normal((n_users, n_arms, dim))
    names, found = [f"user {i}" for i in range(n_users)], []
    for policy in (policies.LinTS(), policies.Albatross()):
        name, agent = type(policy).__name__, Agent(policy, n_arms=n_arms, dim=dim, seed=0)
        fleet = Fleet(policy, users=names, arms=[f"arm {i}" for i in range(n_arms)], dim=dim, seed=0)
        crowd, days = Fleet(policy, users=[], n_arms=n_arms, dim=dim, seed=0), count()

        def newcomers(crowd: Fleet = crowd, days: Iterator[int] = days) -> None:
            day = next(days)
            crowd.admit([f"{day} {user}" for user in names])

        def alone(crowd: Fleet = crowd, days: Iterator[int] = days) -> None:
            crowd.admit([str(next(days))])

        def each(work: Callable[[], object], times: int = 1_000) -> float:
            """CPU seconds of one call."""
            return best(lambda: [work() for _ in range(times)], time.process_time) / times

        row = fleet.row("user 3")
        batch = each(lambda fleet=fleet: fleet.select(names, contexts), 3) / n_users
        single = each(lambda fleet=fleet: fleet.select(["user 3"], contexts[:1]))
        decision = each(lambda agent=agent: agent.select(contexts[0]))
        written = each(lambda fleet=fleet: fleet.row("user 3"))
        read = each(lambda fleet=fleet, row=row: fleet.put("user 3", row))
        found += [
            (f"CPU microseconds per newcomer of a fleet: {name}", 1e6 * each(newcomers, 1) / n_users, 10.0, "<="),
            (f"CPU microseconds of a newcomer who comes alone: {name}", 1e6 * each(alone), 10.0, "<="),
            (f"a fleet's single event against one of a batch: {name}", single / batch, 20.0, "<="),
            (f"a fleet's single event against an agent's decision: {name}", single / decision, 3.0, "<="),
            (f"a row written and read against an agent's decision: {name}", (written + read) / decision, 3.0, "<="),
        ]
    return found


def flock_ratios() -> list[tuple[str, float, float, str]]:
    """A flock against a fleet of Albatross, K = 10, d = 16, 20 events a user; memory of users who come rarely."""
    n_users, n_arms, dim, rng = 400, 10, 16, np.random.default_rng(0)
    thetas = 1.5 * rng.standard_normal((n_users, dim)) / dim**0.5
    seconds = {}
    for kind in (Fleet, Flock):
        for repeat in range(2):  # the first one compiles
            users = kind(n_users=n_users, n_arms=n_arms, dim=dim, seed=0)
            draws, begun = np.random.default_rng(repeat), time.process_time()
            for _ in range(20):
                everybody = draws.permutation(n_users)
                for some in np.split(everybody, 4):
                    choices = users.select(some, draws.standard_normal((some.size, n_arms, dim)))
                    means = np.einsum("md,md->m", choices.actions, thetas[some])
                    users.update(choices, means + draws.standard_normal(some.size))
            seconds[kind] = time.process_time() - begun
    n_users, batch = 100_000, 20_000
    flock = Flock(n_users=n_users, n_arms=n_arms, dim=dim, looks=False, unit=dim**0.5, level=0.0, seed=0)
    visits = 1.0 / np.arange(1, n_users + 1)
    for _ in range(8 * n_users // batch):
        some = rng.choice(n_users, batch, p=visits / visits.sum())
        choices = flock.record(some, rng.integers(n_arms, size=batch), rng.standard_normal((batch, dim)))
        flock.update(choices, rng.standard_normal(batch))
    memory = flock._crowd.state.memory
    triangle = memory.triangles[0].nbytes + memory.sides[0].nbytes
    return [
        (
            "CPU per event of a flock against a fleet of Albatross, 20 events a user",
            seconds[Flock] / seconds[Fleet],
            1.0,
            "<=",
        ),
        (
            "bytes per user of a flock, 100,000 users with Zipf activity, 8 events each",
            flock.nbytes / n_users,
            1_000,
            "<=",
        ),
        ("bytes of sums of an active user of a flock", triangle, 3_072, "<="),
    ]


def eigenbasis_ratios() -> list[tuple[str, float, float, str]]:
    """A rank-one update of V's eigenbasis, with the two vectors that a simulation carries, against a fresh eigh."""
    found = []
    for dim in (200, 500):
        rng = np.random.default_rng(0)
        values, carried = np.ones(dim), rng.standard_normal((3, dim))
        for _ in range(dim + 100):
            rank_one_update(values, carried, 0.1 * rng.standard_normal(dim) * np.sqrt(values))
        z = 0.1 * rng.standard_normal(dim) * np.sqrt(values)
        dense = np.diag(values) + np.outer(z, z)
        fresh = best(lambda dense=dense: np.linalg.eigh(dense))
        update = best(lambda v=values, c=carried, z=z: rank_one_update(v.copy(), c.copy(), z))
        found.append((f"eigenbasis under a rank-one update against eigh, d = {dim}", fresh / update, 8.0, ">="))
    return found


def staged_ratios() -> list[tuple[str, float, float, str]]:
    """SupLinRel at K = 5, d = 20, against a transcription that solves from all data; and late rounds against early."""
    n_arms, dim, rounds = 5, 20, 600
    rng = np.random.default_rng(0)
    contexts, noise = rng.standard_normal((rounds, n_arms, dim)), SIGMA * rng.standard_normal(rounds)
    env = environments.Recorded(contexts=contexts, rewards=contexts[:, :, 0] + noise[:, None])
    setting = {"horizon": rounds, "delta": 0.1, "sigma": SIGMA}

    def slow() -> None:
        policy = SlowSup("suplinrel", n_arms=n_arms, dim=dim, **setting)
        for table, luck in zip(contexts, noise, strict=True):
            choice = policy.choose(table)
            policy.learn(choice, table[choice.arm], table[choice.arm, 0] + luck)

    fast = best(lambda: simulate(policies.SupLinRel(**setting), env, horizon=rounds, workers=1))
    begun = time.perf_counter()
    slow()
    transcribed = time.perf_counter() - begun

    nested = environments.Nested(n_arms=n_arms, dims=(dim,), true_dim=dim, noise_sd=SIGMA)
    long = policies.SupLinRel(horizon=200_000, delta=0.1, sigma=SIGMA)
    first = best(lambda: simulate(long, nested, horizon=20_000, workers=1))
    both = best(lambda: simulate(long, nested, horizon=40_000, workers=1))
    return [
        ("SupLinRel, rounds a second against a transcription that solves anew", transcribed / fast, 20.0, ">="),
        ("SupLinRel, rounds 20,001 to 40,000 against the first 20,000", (both - first) / first, 1.5, "<="),
    ]


def first_use() -> list[tuple[str, float, float, str]]:
    """CPU seconds of a process that has never compiled anything, and of the next one."""
    script = (
        "import sys, time; import numpy as np\n"
        "from albatross import Agent, policies\n"
        "agent = Agent(eval(sys.argv[1]), n_arms=20, dim=5)\n"
        "decision = agent.select(np.ones((20, 5))); print(time.process_time())\n"
        "agent.update(decision, 1.0); print(time.process_time())"
    )

    def seconds(policy: str, folder: str) -> tuple[float, float]:
        env = {"PATH": "", "ALBATROSS_CACHE": f"{folder}/cache"}
        command = [sys.executable, "-c", script, policy]
        decided, learnt = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split()
        return float(decided), float(learnt)

    measured = []
    for policy, limit in (("policies.Albatross()", 10.0), ("policies.LinTS()", 6.0)):
        with tempfile.TemporaryDirectory() as folder:
            decided, learnt = seconds(policy, folder)
            _, again = seconds(policy, folder)
        measured += [
            (f"CPU seconds until the first decision of {policy}, compiling", decided, limit, "<="),
            ("CPU seconds until its first update, compiling", learnt, 1.5 * limit, "<="),
            ("CPU seconds of both in the next process", again, 1.5, "<="),
        ]
    return measured


def memory_ratio() -> list[tuple[str, float, float, str]]:
    """Peak memory of a run ten times as long."""
    peaks = []
    for horizon in (ROUNDS, 10 * ROUNDS):
        tracemalloc.start()
        simulate(OFUL_PLUS, ENV, horizon=horizon, workers=1, record=2_000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return [("memory of a run ten times as long", peaks[1] / peaks[0], 1.05, "<=")]


MEASURES = (
    simulation_ratios,
    agent_ratios,
    flagship_ratios,
    fleet_ratios,
    encoding_ratios,
    named_fleet_ratios,
    flock_ratios,
    eigenbasis_ratios,
    staged_ratios,
    memory_ratio,
    first_use,
)


def main() -> None:
    """Print all ratios; exit with 1 if one misses its floor."""
    failed = False
    with threadpool_limits(1, user_api="blas"):
        for measure in MEASURES:
            for name, value, limit, sign in measure():
                good = value >= limit if sign == ">=" else value <= limit
                failed |= not good
                print(f"{'ok ' if good else 'BAD'}  {value:6.2f}  (wanted {sign} {limit:g})  {name}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()

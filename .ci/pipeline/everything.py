"""Everything else that is proven about a commit, in 75 minutes after its gate. A run that was ended goes on with `--from`."""

import argparse
import os
import random
import sys
from dataclasses import dataclass
from typing import Callable

from . import gate, machine, room
from .gate import CLUSTER, LOGS, ROOT, cluster, command, install
from .process import end_on_signals, run
from .stages import Table
from .stamps import Stamps
from .suites import Outcome, Suites, environment

NEEDED = {
    **gate.NEEDED, "wrk": "wrk", "h2load": "nghttp2-client", "haproxy": "haproxy", "nginx": "nginx", "valgrind": "valgrind",
    "prometheus": "prometheus", "file": "file", "musl-gcc": "musl-tools", "node": "nodejs", "java": "default-jdk-headless",
    "python3:ensurepip, venv": "python3-venv", "chromium": "chromium", "npm": "npm",
    "podman": "podman", "runc": "runc",
}
"""What the suites with other makers' programs, the packages and the benchmarks use."""

BENCHMARKS = ["decide", "hop", "memory", "activator-hop", "wake", "stampede", "slow-starters", "step", "slots", "fleet", "first-paint", "sampling", "soak", "abuse", "sim", "record", "truth"]
"""Their short forms show that they work, not how fast anything is."""


ON_TWO_NODES = ("adopted_connections::", "crash_loop::", "newcomers::", "one_count::")
"""The parts of `cluster_shared` that run on two nodes as well: there clients, activators and pods are on different ones."""


@dataclass
class Stage:
    name: str
    """By which `--from` names it."""
    budget: float
    action: Callable


def suite(name: str, threads=None, only=()):
    return lambda limit: Suites(ROOT, LOGS).suite(name, limit, threads, only)


def peers(limit):
    """Five minutes, and as many again where others' programs have to be fetched and built first."""
    with environment(PEERS_SECONDS="3", PEERS_MEGABYTES="10"):
        return suite("peers", threads=1)(limit)


def dist(limit):
    triple = f"{os.uname().machine}-unknown-linux-musl"
    if code := run(["rustup", "target", "add", triple], ROOT, LOGS / "musl.log", 300):
        return Outcome(words=[f"`rustup target add {triple}` ended with {code}"])
    return suite("dist")(limit)


def images(limit):
    """The suite, and a short form of what a cold start costs beside `podman run` by hand."""
    outcome = suite("images", threads=1)(limit)
    if outcome.is_green:
        outcome.add(benchmark("image-wake")(limit))
    return outcome


def people(limit):
    """The chart beside the kustomization, the pages as a site, and the workflows. A machine that keeps none of the tools builds them first."""
    if code := run([ROOT / "tests/people/build"], ROOT, LOGS / "people-build.log", limit):
        return Outcome(words=[f"tests/people/build ended with {code}"])
    return suite("people")(limit)


def one_node(limit):
    """The suites of a cluster with one node. Those that end parts of it run when nothing else does; the last takes ebb away."""
    def act(limit):
        outcome = install()
        for name, threads in (("cluster_shared", 6), ("cluster_exclusive", 1), ("cluster_teardown", 1)):
            if outcome.words:
                break
            outcome.add(suite(name, threads)(limit))
        return outcome

    if code := run([CLUSTER / "build-metrics-server"], ROOT, LOGS / "metrics-server.log", 400):
        return Outcome(words=[f"tests/cluster/build-metrics-server ended with {code}"])
    return cluster(1, act)(limit)


def knative(limit):
    """An installed Knative of stand-ins, with ebb's autoscaler in the place of Knative's."""
    def act(limit):
        outcome = install("install-knative")
        return outcome if outcome.words else suite("cluster_knative", 1)(limit)

    return cluster(1, act)(limit)


def two_nodes(limit):
    """The version before this one is installed on two nodes and upgraded; then the suite of two nodes, and a part of that of one."""
    def act(limit):
        outcome = install("install-previous")
        for name, threads, only in (("cluster_upgrade", 1, ()), ("cluster_two_nodes", 1, ()), ("cluster_shared", 6, ON_TWO_NODES)):
            if outcome.words:
                break
            outcome.add(suite(name, threads, only)(limit))
        return outcome

    return cluster(2, act)(limit)


def benchmark(name: str, profile="debug"):
    executable = {"EBB_EXECUTABLE": os.environ.get("CARGO_TARGET_DIR", "target") + f"/{profile}/ebb"}
    return command(f"bench-{name}", ["cargo", "bench", "--workspace", "--profile", "dev", "--bench", name, "--", "--quick"], executable)


def instructions(limit):
    """Counts of the release build beside the committed ones. The stage `release` has made it, unless this run began behind that."""
    if code := run(["cargo", "build", "--release", "--quiet"], ROOT, LOGS / "build-release.log", limit):
        return Outcome(words=[f"`cargo build --release` ended with {code}"])
    return benchmark("instructions", "release")(limit)


def lost_requests(limit):
    """The suite of lost requests once more, with class ahpa in the place of class kpa."""
    tests = ["cargo", "test", "--workspace", "--no-fail-fast", "--test", "end_to_end", "--", "no_lost_request"]
    with environment(EBB_TEST_CLASS="ahpa.autoscaling.knative.dev"):
        return Suites(ROOT, LOGS).workspace(tests, limit)


def prediction(limit):
    """Five rises of the thirty, for each takes a minute and no rule is in force before the fifth (tests/tests/prediction.rs)."""
    with environment(PREDICTION_RISES="5"):
        return suite("prediction")(limit)


def properties(limit):
    """The property tests draw other worlds and inputs than the gate's."""
    seed = str(random.SystemRandom().randrange(2**32))
    print(f"PROPTEST_RNG_SEED={seed}", flush=True)
    tests = ["cargo", "test", "--workspace", "--no-fail-fast", "--lib", "--test", "laws", "--test", "wire"]
    with environment(PROPTEST_RNG_SEED=seed):
        outcome = Suites(ROOT, LOGS).workspace(tests, limit)
    if outcome.failed:
        outcome.words.append(f"PROPTEST_RNG_SEED={seed} draws it again")
    return outcome


def stages() -> list[Stage]:
    return [
        Stage("release", 420, command("first-run-release", [ROOT / ".ci/first-run"])),
        Stage("peers", 480, peers),
        Stage("dist", 300, dist),
        Stage("images", 240, images),
        Stage("people", 480, people),
        Stage("dashboard", 240, suite("dashboard", threads=2)),
        Stage("properties", 240, properties),
        Stage("lost-requests", 240, lost_requests),
        Stage("prediction", 300, prediction),
        Stage("cluster", 2400, one_node),
        Stage("two-nodes", 960, two_nodes),
        Stage("knative", 720, knative),
        Stage("loom", 120, command("loom", [ROOT / "tests/loom/run"])),
        Stage("fuzz", 480, command("fuzz", [ROOT / "tests/fuzz/run", "20"])),
        Stage("worlds", 300, command("worlds", ["cargo", "bench", "-p", "simulator", "--bench", "worlds", "--", "--hours", "1000"])),
        *[Stage(f"bench-{name}", 90, benchmark(name)) for name in BENCHMARKS],
        Stage("bench-foresight", 180, benchmark("foresight")),
        Stage("bench-twins", 120, command("bench-twins", ["cargo", "bench", "-p", "simulator", "--profile", "dev", "--bench", "twins", "--", "--quick"])),
        Stage("bench-instructions", 180, instructions),
        Stage("bench-windows_and_decider", 60,
              command("bench-windows_and_decider", ["cargo", "test", "--workspace", "--bench", "windows_and_decider"])),
    ]


def main() -> bool:
    target, _ = machine.kept_target(ROOT)
    os.environ["CARGO_TARGET_DIR"] = str(target)
    names = [stage.name for stage in stages()]
    parser = argparse.ArgumentParser(prog=".ci/all", description=__doc__)
    parser.add_argument("--from", dest="first", metavar="STAGE", choices=names, default=names[0], help=", ".join(names))
    first = names.index(parser.parse_args().first)
    stamps, table = Stamps(ROOT), Table()
    missing = [name for name in names[:first] if not stamps.has(name)]
    if missing:
        print(f"no green run of {', '.join(missing)} is known for this commit, compiler and clean tree: begin with --from {missing[0]}")
        return False
    if stamps.has(gate.STAGE):
        if not gate.prepare(table, NEEDED, is_cluster=True, target_whole=room.TARGET_OF_ALL):
            return table.end(".ci/all")
    elif not gate.whole(Table(), NEEDED, room.TARGET_OF_ALL):
        return False
    table.rows += [stamps.row(name) for name in [gate.STAGE, *names[:first]] if stamps.has(name)]
    # The stamp of the gate may be another checkout's, and older than the kept target: the programs are this commit's, and this checkout has its Kubernetes.
    programs = command("build", ["cargo", "test", "--workspace", "--no-run"])
    if not gate.kubernetes(table) or not table.stage("programs of this commit", 360, programs):
        return table.end(".ci/all")
    for stage in stages()[first:]:
        table.stage(stage.name, stage.budget, stage.action)
        stamps.write(table.rows)
    return table.end(".ci/all")


if __name__ == "__main__":
    end_on_signals()
    sys.exit(0 if main() else 1)

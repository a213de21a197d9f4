"""The gate: what must hold before a change lands, in 25 minutes where Kubernetes is kept and in 40 on a machine that has toolchains alone."""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from . import machine, room
from .process import end_on_signals, run
from .stages import Row, Table
from .stamps import Stamps
from .suites import Outcome, Suites

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "target/ci"
CLUSTER = ROOT / "tests/cluster"

NEEDED = {"cc": "build-essential", "curl": "curl", "hey": "hey", "systemd-analyze": "systemd", "git": "git"}
"""What the tests of the workspace and the README's first command use."""

NEEDED_FOR_CLUSTER = {
    "/usr/local/go/bin/go": "golang-go", "ip": "iproute2", "nft": "nftables", "iptables": "iptables", "conntrack": "conntrack",
    "pkg-config": "pkg-config", "zstd": "zstd", "openssl": "openssl", "pkg-config:libseccomp": "libseccomp-dev",
}
"""What builds a real Kubernetes, and what its nodes use."""

STAGE = "the gate"
"""The name of the stamp of a whole green gate."""


def prepare(table: Table, needed, is_cluster: bool, target_whole=room.TARGET_OF_GATE) -> bool:
    """Settings of every stage, the packages, and what fails at once on a machine that cannot do the rest."""
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    os.environ.update(CARGO_TERM_COLOR="never", CARGO_INCREMENTAL="0", RUST_BACKTRACE="0")
    # Backtraces are off, so nothing reads line tables: fifty executables are linked and written without them.
    os.environ["CARGO_PROFILE_DEV_DEBUG"] = "false"
    # Where Go's own archive puts it.
    os.environ["PATH"] += os.pathsep + "/usr/local/go/bin"
    # The worlds and inputs that property tests draw are the same in every run: a commit that was green stays so.
    os.environ.setdefault("PROPTEST_RNG_SEED", "1")
    os.environ.setdefault("CLUSTER_CACHE", str(machine.cache() / "ebb-cluster"))

    wanted = {**needed, **(NEEDED_FOR_CLUSTER if is_cluster else {})}
    if shutil.which("go"):
        wanted.pop("/usr/local/go/bin/go", None)
    missing = machine.missing_packages(wanted)

    def packages(_):
        machine.install(missing)
        left = machine.missing_packages(wanted)
        return Outcome(words=[f"{', '.join(left)}: installed, and what they bring is still missing"] if left else [])

    if missing and not table.stage("packages of the system, installed", 300, packages):
        return False
    return table.stage("preflight: rights, room, the pipeline's own tests", 10, lambda _: preflight(is_cluster, target_whole))


def preflight(is_cluster: bool, target_whole: int) -> Outcome:
    """What is missing on this machine, before anything is compiled."""
    words = machine.missing_for_rust()
    if is_cluster:
        words += [f"{word} (WITHOUT_CLUSTER=1 runs the rest)" for word in machine.missing_for_cluster()]
    kubernetes = 0
    if is_cluster:
        kubernetes = room.KUBERNETES_UNPACKED if is_kubernetes_kept() else room.KUBERNETES_BUILT
    target = machine.target_folder()
    words += room.missing(room.parts(ROOT, target, target_whole, machine.size(target), kubernetes))
    suite = unittest.defaultTestLoader.loadTestsFromName("pipeline.tests")
    tried = unittest.TextTestRunner(stream=sys.stdout, verbosity=0).run(suite)
    failed = [str(test) for test, _ in tried.failures + tried.errors]
    return Outcome(passed=tried.testsRun - len(failed), failed=failed, words=words)


def command(name: str, words, env=None):
    """A stage that is one command."""
    def action(limit):
        code = run(words, ROOT, LOGS / f"{name}.log", limit, env=env)
        return Outcome(words=[f"`{' '.join(map(str, words))}` ended with {code}"] if code else [])

    return action


def cluster(nodes: int, act):
    """An action with a cluster of tests that is up, and taken down however the action ends."""
    def action(limit):
        def script(name, *words):
            code = run([CLUSTER / name, *words], ROOT, LOGS / f"cluster-{name}.log", 120)
            return Outcome(words=[f"tests/cluster/{name} ended with {code}"]) if code else None

        if failure := script("down"):
            return failure
        try:
            # A cluster that came up in part is taken down too.
            if failure := script("up", str(nodes)):
                return failure
            outcome = act(limit)
            if not outcome.is_green:
                shutil.copytree(ROOT / "target/cluster/run/log", LOGS / "cluster-log", dirs_exist_ok=True)
            return outcome
        finally:
            run([CLUSTER / "down"], ROOT, LOGS / "cluster-down.log", 60, is_clean_up=True)

    return action


def install(script="install") -> Outcome:
    code = run([CLUSTER / script], ROOT, LOGS / f"cluster-{script}.log", 400)
    return Outcome(words=[f"tests/cluster/{script} ended with {code}"] if code else [])


def smoke(limit):
    installed = install()
    return Suites(ROOT, LOGS).suite("cluster_smoke", min(limit, 300)) if installed.is_green else installed


LOCKS = " && ".join(f"cargo metadata --locked --format-version 1 --manifest-path tests/{own}/Cargo.toml > target/ci/{own}-metadata.json"
                    for own in ("fuzz", "loom"))
"""Workspaces with a Cargo.lock of their own have to know the dependencies of this one's crates."""


def kubernetes_key() -> str:
    """By which tests/cluster/build knows what it has built: the line in which it makes the key is run."""
    line = re.search(r"^key=.*$", (CLUSTER / "build").read_text(), re.MULTILINE)[0]
    return subprocess.run(["bash", "-c", f'{line}; echo "$key"'], env={**os.environ, "here": str(CLUSTER)}, capture_output=True, text=True).stdout.strip()


def kept_kubernetes() -> Path:
    return Path(os.environ["CLUSTER_CACHE"]) / f"cluster-{kubernetes_key()}.tar.zst"


def is_kubernetes_kept() -> bool:
    """Whether the Kubernetes that this commit asks for has been built. One of other versions does not help."""
    here = ROOT / "target/cluster/bin/key"
    return kept_kubernetes().exists() or here.exists() and here.read_text().strip() == kubernetes_key()


def kubernetes(table: Table) -> bool:
    """The stage after which this checkout has a Kubernetes to start; returns whether it has."""
    is_kept = is_kubernetes_kept()
    if is_kept:
        # Of a build that was ended on its way.
        shutil.rmtree(ROOT / "target/cluster/go-cache", ignore_errors=True)
    name, budget = ("Kubernetes, unpacked", 20) if is_kept else ("Kubernetes, built", 720)
    is_green = table.stage(name, budget, command("cluster-build", [CLUSTER / "build"]))
    if is_green:
        room.forget_old(Path(os.environ["CLUSTER_CACHE"]), kept_kubernetes())
    return is_green


def stages(table: Table, is_cluster: bool):
    """The stages of the gate, in order. Each runs though the one before it failed, so that one run shows all."""
    target, is_kept = machine.kept_target(ROOT)
    os.environ["CARGO_TARGET_DIR"] = str(target)
    tests = ["cargo", "test", "--workspace", "--no-fail-fast"]
    table.stage("format", 5, command("format", ["cargo", "fmt", "--all", "--check"]))
    found, budget = machine.tests_budget(is_kept)
    table.stage(f"tests (the README's command), {found}", budget, lambda limit: Suites(ROOT, LOGS).workspace(tests, limit))
    table.stage("lints", 200, command("lints", ["bash", "-c", f"cargo lint && cargo lint-suites && {LOCKS}"]))
    table.stage("documentation", 60, command("documentation", ["cargo", "doc", "--workspace", "--no-deps", "--quiet"],
                                             {"RUSTDOCFLAGS": "-D warnings"}))
    table.stage("the README's first command, with hey", 40,
                command("first-run", [ROOT / ".ci/first-run", target / "debug/ebb"]))
    if is_cluster and kubernetes(table):
        table.stage("smoke of the cluster: images, up, install, smoke, down", 240, cluster(1, smoke))


def whole(table: Table, needed=NEEDED, target_whole=room.TARGET_OF_GATE) -> bool:
    """Everything of the gate; returns whether it is green."""
    is_cluster = not os.environ.get("WITHOUT_CLUSTER")
    note = "" if is_cluster else " WITHOUT the cluster"
    if prepare(table, needed, is_cluster, target_whole):
        stages(table, is_cluster)
    is_green = table.end(".ci/run", note)
    if is_green and is_cluster:
        total = Outcome(passed=sum(row.outcome.passed for row in table.rows), flaky=[test for row in table.rows for test in row.outcome.flaky])
        Stamps(ROOT).write([Row(STAGE, sum(row.seconds for row in table.rows), 25 * 60, total)])
    return is_green


if __name__ == "__main__":
    end_on_signals()
    sys.exit(0 if whole(Table()) else 1)

"""Runs test programs by cargo. What depends on time and failed runs again, and is flaky when it passes then."""

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import flaky, libtest, second_runs
from .flaky import FlakyTest
from .process import run
from .second_runs import Suspect

TIME_DEPENDENT = {
    # Suites with real processes, and with other makers' programs.
    "activator", "command_line", "end_to_end", "it", "peers", "processes", "dist", "images", "prediction", "dashboard",
    # Suites with a real Kubernetes.
    "cluster_smoke", "cluster_shared", "cluster_exclusive", "cluster_teardown", "cluster_upgrade", "cluster_two_nodes",
    "cluster_knative",
}
"""The test programs whose tests are run again. A pure test that failed once has failed."""


@dataclass
class Outcome:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    flaky: list[FlakyTest] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """Why the outcome is red, apart from failed tests."""

    @property
    def is_green(self):
        return not self.failed and not self.words

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.flaky += other.flaky
        self.words += other.words


class Suites:
    """How the suites of one checkout are run."""

    def __init__(self, root: Path, logs: Path):
        self.root, self.logs = root, logs

    def workspace(self, command: list[str], limit: float) -> Outcome:
        """`cargo test` of several programs."""
        reader = libtest.Reader()
        code = run(command, self.root, self.logs / log_name(command), limit, reader.line)
        outcome = Outcome(passed=sum(program.passed for program in reader.programs))
        suspects = []
        for program in reader.programs:
            if not program.has_ended:
                outcome.words.append(f"{program.name} ended without a result (it crashed, aborted, or took too long)")
            for test in program.failed:
                if program.name in TIME_DEPENDENT and not program.is_unit_tests:
                    suspects.append(Suspect(program.name, test, program.outputs.get(test, [])))
                else:
                    outcome.failed.append(f"{program.name}::{test}")
        if code != 0 and not outcome.words and not suspects and not outcome.failed:
            outcome.words.append(f"`{' '.join(command)}` ended with {code} and named no failed test")
        if not reader.programs:
            outcome.words.append(f"`{' '.join(command)}` ran no test")
        self._second_runs(suspects, outcome)
        return outcome

    def suite(self, name: str, limit: float, threads=None, only=()) -> Outcome:
        """One suite by its name, or those of its tests whose names have one of these texts."""
        filters = ["--", *only] if only else []
        with environment(**({"RUST_TEST_THREADS": str(threads)} if threads else {})):
            return self.workspace(["cargo", "test", "--workspace", "--no-fail-fast", "--test", name, *filters], limit)

    def _second_runs(self, suspects, outcome):
        if len(suspects) > flaky.MOST_IN_A_RUN:
            outcome.failed += [suspect.name for suspect in suspects]
            outcome.words.append(f"{len(suspects)} tests failed, too many to be a matter of time: none was run again")
            return
        for suspect in suspects:
            output = self.logs / f"{suspect.name.replace('::', '-')}.first-failure.log"
            output.write_text("\n".join(suspect.output) + "\n")
            print(f"\n--- {suspect.name} failed; second runs: alone, then among its neighbours", flush=True)
        passed = second_runs.passed_twice(
            suspects, second_runs.Runner(self.root, self.logs).attempt, second_runs.budget_of(suspects))
        table = self.root / "tests/flaky.md"
        for suspect in suspects:
            if suspect not in passed:
                outcome.failed.append(suspect.name)
                continue
            outcome.passed += 1
            outcome.flaky.append(FlakyTest(suspect.program, suspect.test, libtest.reason(suspect.output)))
            if suspect.name in flaky.known(table):
                outcome.words.append(f"{suspect.name} is flaky a second time: tests/flaky.md has it already, and it was not mended")
        flaky.write(table, outcome.flaky)


def log_name(command: list[str]) -> str:
    """The file for what `cargo test` prints: named for the suites, and for the texts by which tests of them are chosen."""
    if "--test" not in command:
        return "tests.log"
    chosen = command[command.index("--test"):]
    return "-".join(word.strip(":").replace("::", "-") for word in chosen if not word.startswith("-")) + ".log"


@contextmanager
def environment(**values: str):
    """Sets environment variables for the commands that are run meanwhile, and gives them their former values back."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

"""Which of the tests that failed once pass twice? Each runs alone, and then beside its neighbours: those that ran beside it the first time."""

import enum
import os
import re
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from . import libtest
from .process import ENOUGH, LATE, run

BUDGET_SECONDS = 120
"""What all second runs of one suite may take. A test whose second runs find no time has failed."""

CLUSTER_BUDGET_SECONDS = 600
"""The same for the suites of a cluster in `.ci/all`, where one test can take minutes."""

LISTED_AFTER = 12
"""Neighbours from behind the test in the list: each of them starts when another has ended, so the test has company for as long as it runs."""


class Turn(enum.Enum):
    ALONE = "alone"
    AMONG_NEIGHBOURS = "among neighbours"


class Verdict(enum.Enum):
    PASSED = "passed"
    FAILED = "FAILED"
    NO_TIME = "no result in its share of the time"


@dataclass(eq=False)
class Suspect:
    """A test that failed once, and depends on time."""

    program: str
    test: str
    output: list[str] = field(default_factory=list)
    """What it printed."""

    @property
    def name(self):
        return f"{self.program}::{self.test}"


def budget_of(suspects: list[Suspect]) -> float:
    """Every test of a cluster but the gate's smoke belongs to `.ci/all`."""
    programs = {suspect.program for suspect in suspects} - {"cluster_smoke"}
    return CLUSTER_BUDGET_SECONDS if any(program.startswith("cluster_") for program in programs) else BUDGET_SECONDS


def passed_twice(suspects: list[Suspect], attempt, budget: float = BUDGET_SECONDS, clock=time.monotonic) -> list[Suspect]:
    """Gives each run an equal share of the time that is left, so that no test decides about another.

    A run that its share ended has one more after all others, where these left more than that. `attempt` takes suspect, turn and limit, and returns a
    `Verdict`.
    """
    ends = clock() + budget
    waiting = deque((suspect, turn) for suspect in suspects for turn in Turn)
    passed, shares = [], {}
    for _ in range(2):
        postponed = []
        while waiting:
            suspect, turn = waiting[0]
            share = (ends - clock()) / len(waiting)
            verdict = attempt(suspect, turn, share) if share > shares.get(suspect, 0) else Verdict.NO_TIME
            if verdict is Verdict.PASSED:
                waiting.popleft()
                passed += [suspect] if turn is Turn.AMONG_NEIGHBOURS else []
                continue
            own = [entry for entry in waiting if entry[0] is suspect]
            waiting = deque(entry for entry in waiting if entry[0] is not suspect)
            if verdict is Verdict.NO_TIME:
                shares[suspect] = share
                postponed += own
        waiting = deque(postponed)
    return passed


class Runner:
    """How the tests of one checkout run again."""

    def __init__(self, root: Path, logs: Path):
        self.root, self.logs = root, logs
        self.listed: dict[str, list[str]] = {}

    def attempt(self, suspect: Suspect, turn: Turn, limit: float) -> Verdict:
        """One run. Among neighbours it ends as soon as the suspect has passed: the neighbours' results do not matter."""
        began = time.monotonic()
        tests = [suspect.test] if turn is Turn.ALONE else self._neighbours(suspect)
        limit -= time.monotonic() - began
        verdict = self._run(suspect, turn, tests, limit) if limit > 1 else Verdict.NO_TIME
        print(f"--- {suspect.name} {turn.value}: {verdict.value} ({time.monotonic() - began:.0f} s)", flush=True)
        return verdict

    def _run(self, suspect, turn, tests, limit):
        reader = libtest.Reader()

        def line(text):
            reader.line(text)
            is_passed = any(program.results.get(suspect.test) == "ok" for program in reader.programs)
            # After a failure the run goes on: libtest shows what a failed test printed when all tests have ended.
            return ENOUGH if is_passed and turn is Turn.AMONG_NEIGHBOURS else None

        command = ["cargo", "test", "--workspace", "--test", suspect.program, "--", "--exact", *tests]
        log = self.logs / f"{suspect.name.replace('::', '-')}.{turn.value.replace(' ', '-')}.log"
        code = run(command, self.root, log, limit, line)
        return _verdict(reader.programs, suspect, code)

    def _neighbours(self, suspect):
        if suspect.program not in self.listed:
            lines = []
            command = ["cargo", "test", "--quiet", "--workspace", "--test", suspect.program, "--", "--list"]
            run(command, self.root, self.logs / "list.log", 60, lambda line: lines.append(line.rstrip()), is_silent=True)
            self.listed[suspect.program] = [line.removesuffix(": test") for line in lines if line.endswith(": test")]
        # With fewer before it than run at once, it starts with them and waits for none of them. Where tests run one by one, none can be beside it.
        return libtest.neighbours(self.listed[suspect.program], suspect.test, self._at_once() - 1, LISTED_AFTER)

    def _at_once(self):
        """How many tests of a program run at once. Cargo sets the variable where the environment does not."""
        settings = (self.root / ".cargo/config.toml").read_text()
        return int(os.environ.get("RUST_TEST_THREADS") or re.search(r'^RUST_TEST_THREADS = "(\d+)"$', settings, re.MULTILINE)[1])


def _verdict(programs, suspect, code):
    program = next((program for program in programs if program.name == suspect.program), libtest.Program(suspect.program, False))
    result = program.results.get(suspect.test)
    if result == "FAILED" or suspect.test in program.failed:
        return Verdict.FAILED
    # Something that a process printed into the line of the result can hide the line. Then the whole program's result says how the test ended.
    if result == "ok" or program.has_ended and program.passed > 0:
        return Verdict.PASSED
    return Verdict.NO_TIME if code == LATE else Verdict.FAILED

"""A run is a list of stages. Each has a budget, is red when it fails or takes more than twice that, and stands in the table at the end."""

import time
from dataclasses import dataclass, field

from . import flaky, machine
from .suites import Outcome


@dataclass
class Row:
    stage: str
    seconds: float
    budget: float
    outcome: Outcome
    is_kept: bool = False
    """Whether a stamp of the same commit stands for it."""


@dataclass
class Table:
    rows: list[Row] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def stage(self, name: str, budget: float, action) -> bool:
        """Runs one stage. `action` takes the seconds after which it is ended, and returns an `Outcome`."""
        print(f"\n=== {name} (budget {budget:.0f} s; {machine.load()})", flush=True)
        began = time.monotonic()
        try:
            outcome = action(2 * budget)
        except Exception as error:  # The other stages show what they know all the same.
            outcome = Outcome(words=[f"{type(error).__name__}: {error}"])
        seconds = time.monotonic() - began
        if seconds > 2 * budget:
            outcome.words.append(f"{seconds:.0f} s are more than twice the budget")
        self.rows.append(Row(name, seconds, budget, outcome))
        late = " *** beyond its budget ***" if seconds > budget else ""
        print(f"--- {seconds:.0f} s of {budget:.0f}: {name}: {'ok' if outcome.is_green else 'RED'}{late}", flush=True)
        for word in outcome.words:
            print(f"    {word}", flush=True)
        return outcome.is_green

    def end(self, title: str, note="") -> bool:
        """Prints the table; returns whether everything is green."""
        total = Outcome()
        for row in self.rows:
            total.add(row.outcome)
        if len(total.flaky) > flaky.MOST_IN_A_RUN:
            total.words.append(f"{len(total.flaky)} tests are flaky; more than {flaky.MOST_IN_A_RUN} in a run are red")
        print(f"\n=== {title}: {time.monotonic() - self.began:.0f} s, {machine.load()}\n")
        print(f"{'stage':<58}{'s':>6}{'budget':>8}{'passed':>8}{'failed':>8}{'flaky':>7}")
        for row in self.rows:
            mark = "  kept" if row.is_kept else "" if row.outcome.is_green else "  RED"
            mark += "  beyond its budget" if row.seconds > row.budget and not row.is_kept else ""
            print(f"{row.stage:<58}{row.seconds:>6.0f}{row.budget:>8.0f}{row.outcome.passed:>8}"
                  f"{len(row.outcome.failed):>8}{len(row.outcome.flaky):>7}{mark}")
        for name in total.failed:
            print(f"failed: {name}")
        for test in total.flaky:
            print(f"flaky: {test.name}: {test.reason} (outputs in target/ci, row in tests/flaky.md)")
        for word in total.words:
            print(f"red: {word}")
        is_green = total.is_green
        print(f"\n{total.passed} passed, {len(total.failed)} failed")
        print(("passed" if is_green else "FAILED") + note, flush=True)
        return is_green

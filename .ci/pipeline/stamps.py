"""Which stages were green at which commit? A later run of the same commit, with the same compiler and a clean tree, need not prove them again."""

import json
import subprocess
from pathlib import Path

from . import machine
from .stages import Row
from .suites import Outcome

KEPT = 20
"""Commits whose stamps are kept."""


class Stamps:
    def __init__(self, root: Path):
        self.root = root
        self.file = machine.cache() / "ebb-ci/stamps.json"

    def _key(self):
        """`None` while something is not committed: then nothing is proven about any commit."""
        def git(*words):
            return subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True).stdout.strip()

        return f"{git('rev-parse', 'HEAD')} {machine.rustc()}" if not git("status", "--porcelain") and git("rev-parse", "HEAD") else None

    def _all(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def has(self, stage: str) -> bool:
        key = self._key()
        return key is not None and stage in self._all().get(key, {})

    def row(self, stage: str) -> Row:
        """The row of a stage that `has` knows."""
        kept = self._all()[self._key()][stage]
        return Row(stage, kept["seconds"], kept["budget"], Outcome(passed=kept["passed"]), is_kept=True)

    def write(self, rows):
        """Keeps the green ones. Those with a flaky test wrote it into the tree, which is not clean then, and have no stamp."""
        key = self._key()
        if key is None:
            return
        stamps = self._all()
        of_commit = stamps.pop(key, {})
        for row in rows:
            if row.outcome.is_green and not row.outcome.flaky and not row.is_kept and row.seconds <= 2 * row.budget:
                of_commit[row.stage] = {"seconds": row.seconds, "budget": row.budget, "passed": row.outcome.passed}
        stamps[key] = of_commit
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(dict(list(stamps.items())[-KEPT:]), indent=1))

"""A test that failed once and then passed twice is flaky: a debt with a name. The debts stand in `tests/flaky.md`."""

import datetime
from dataclasses import dataclass
from pathlib import Path

MOST_IN_A_RUN = 3
"""With more failures than this in one run, no test is run again: the change is at fault, not the clock."""


@dataclass
class FlakyTest:
    suite: str
    test: str
    reason: str

    @property
    def name(self):
        return f"{self.suite}::{self.test}"


def known(table: Path) -> set[str]:
    """Names that the table holds already. Each of them was to be mended, so it may not come again."""
    rows = (line for line in table.read_text().splitlines() if line.startswith("|"))
    cells = ([cell.strip() for cell in row.strip("|").split("|")] for row in rows)
    return {cells_of_row[1].strip("`") for cells_of_row in cells if len(cells_of_row) == 3 and "::" in cells_of_row[1]}


def write(table: Path, found: list[FlakyTest]):
    today = datetime.date.today().isoformat()
    with table.open("a") as file:
        for test in found:
            file.write(f"| {today} | `{test.name}` | {test.reason} |\n")

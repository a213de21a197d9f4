"""Which tests ran, and how did they end? Reads the output of `cargo test`, line by line."""

import re
from dataclasses import dataclass, field

RUNNING = re.compile(r"^\s+Running (?P<what>.+?) \((?P<executable>\S+)\)$")
DOC_TESTS = re.compile(r"^\s+Doc-tests (?P<crate>\S+)$")
RESULT = re.compile(r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed;")
RESULT_OF = re.compile(r"^test (?P<name>\S+)(?: - should panic)? \.\.\. (?P<word>ok|FAILED)$")
OUTPUT_OF = re.compile(r"^---- (?P<name>\S+)(?: stdout)? ----$")


@dataclass
class Program:
    """One test program that cargo started."""

    name: str
    is_unit_tests: bool
    passed: int = 0
    results: dict[str, str] = field(default_factory=dict)
    """`ok` or `FAILED`, of each test that has ended. A line into which a process printed something else is not known as a result."""
    failed: list[str] = field(default_factory=list)
    outputs: dict[str, list[str]] = field(default_factory=dict)
    """What each failed test printed."""
    has_ended: bool = False
    """Whether the program printed its result. One that was killed or aborted did not."""


class Reader:
    """Takes the lines of one `cargo test`."""

    def __init__(self):
        self.programs: list[Program] = []
        self._output_of = None
        self._is_list = False

    def line(self, line: str):
        line = line.rstrip("\n")
        if started := RUNNING.match(line):
            name = started["executable"].rsplit("/", 1)[-1].rsplit("-", 1)[0]
            self._begin(Program(name, started["what"].startswith("unittests ")))
        elif started := DOC_TESTS.match(line):
            self._begin(Program(f"doc-tests of {started['crate']}", True))
        elif self.programs and not self.programs[-1].has_ended:
            self._line_of(self.programs[-1], line)

    def _begin(self, program):
        self.programs.append(program)
        self._output_of, self._is_list = None, False

    def _line_of(self, program, line):
        if result := RESULT.match(line):
            program.passed, program.has_ended = int(result["passed"]), True
        elif begun := OUTPUT_OF.match(line):
            self._output_of, self._is_list = begun["name"], False
            program.outputs[begun["name"]] = []
        elif line == "failures:":
            # The word stands before the outputs and before the list of names. Both times what follows says which it is.
            self._output_of, self._is_list = None, True
        elif self._output_of is not None:
            program.outputs[self._output_of].append(line)
        elif not self._is_list and (result := RESULT_OF.match(line)):
            program.results[result["name"]] = result["word"]
        elif self._is_list and line.startswith("    ") and " " not in line.strip():
            program.failed.append(line.strip())


def reason(output: list[str]) -> str:
    """The first words of a panic, for a table: one line, no bars."""
    for at, line in enumerate(output):
        if " panicked at " in line:
            words = next((text for text in output[at + 1 :] if text.strip()), line)
            return words.strip().replace("|", "/")[:160]
    return next((line.strip().replace("|", "/")[:160] for line in output if line.strip()), "no output")


def neighbours(listed: list[str], name: str, before: int, after: int) -> list[str]:
    """The test and those that ran beside it: a test program starts its tests in the order in which it lists them."""
    at = listed.index(name)
    return listed[max(0, at - before) : at + after + 1]

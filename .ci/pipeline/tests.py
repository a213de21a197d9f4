"""The pipeline's own tests, which its first stage runs: `cd .ci && python3 -m unittest pipeline.tests`."""

import contextlib
import os
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from . import flaky, libtest, machine
from .process import run
from .stages import Table
from .suites import Outcome, Suites

FAILED_SUITE = """\
     Running unittests src/lib.rs (target/debug/deps/scaling-0123456789abcdef)

running 2 tests
test window::tests::empty ... ok
test window::tests::full ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/up/main.rs (/somewhere/debug/deps/up-fedcba9876543210)

running 2 tests
test faults::slow ... FAILED
test faults::quick ... ok

failures:

---- faults::slow stdout ----

thread 'faults::slow' (7) panicked at tests/tests/up/faults.rs:9:5:
3 requests are missing | of 7

failures:
    faults::slow

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s

   Doc-tests scaling
"""


def read(text):
    reader = libtest.Reader()
    for line in text.splitlines(keepends=True):
        reader.line(line)
    return reader.programs


class Reading(unittest.TestCase):
    def test_programs_have_their_names_results_and_failures(self):
        scaling, up, doc_tests = read(FAILED_SUITE)
        self.assertEqual((scaling.name, scaling.is_unit_tests, scaling.passed, scaling.failed), ("scaling", True, 2, []))
        self.assertEqual((up.name, up.is_unit_tests, up.passed, up.failed), ("up", False, 1, ["faults::slow"]))
        self.assertFalse(doc_tests.has_ended, "it printed no result")

    def test_a_reason_is_the_first_line_of_the_panic(self):
        up = read(FAILED_SUITE)[1]
        self.assertEqual(libtest.reason(up.outputs["faults::slow"]), "3 requests are missing / of 7")

    def test_neighbours_are_those_that_are_listed_around_a_test(self):
        self.assertEqual(libtest.neighbours(list("abcdefg"), "b", 2), list("abcd"))


CARGO = """\
#!/bin/sh
# Plays cargo: the first run fails, a second one as the file `second` says.
echo "$*" >>calls
case "$*" in *--list*) echo 'faults::quick: test'; echo 'faults::slow: test'; exit 0 ;; esac
cat <<END
     Running tests/up/main.rs (target/debug/deps/up-fedcba9876543210)
END
name=faults::slow result=FAILED code=101
case "$*" in *--exact*) result=$(cat second); [ "$result" = ok ] && code=0 ;; esac
if [ $result = ok ]; then
    echo "test result: ok. 1 passed; 0 failed; 0 ignored"
else
    printf 'failures:\\n\\n---- %s stdout ----\\npanicked at x:1:\\nlate\\n\\nfailures:\\n    %s\\n\\n' $name $name
    echo "test result: FAILED. 5 passed; 1 failed; 0 ignored"
fi
exit $code
"""


class SecondRuns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "tests").mkdir()
        self.table = self.root / "tests/flaky.md"
        self.table.write_text("| date | test | reason |\n|---|---|---|\n")
        cargo = self.root / "bin/cargo"
        cargo.parent.mkdir()
        cargo.write_text(CARGO)
        cargo.chmod(cargo.stat().st_mode | stat.S_IXUSR)
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{cargo.parent}:{path}"
        self.addCleanup(os.environ.__setitem__, "PATH", path)

    def outcome(self, second) -> Outcome:
        (self.root / "second").write_text(second)
        suites = Suites(self.root, self.root / "target/ci")
        with open(os.devnull, "w") as silence:
            with contextlib.redirect_stdout(silence):
                return suites.suite("up", 30)

    def test_a_test_that_passes_alone_and_among_neighbours_is_flaky_and_written_down(self):
        outcome = self.outcome("ok")
        self.assertTrue(outcome.is_green, outcome)
        self.assertEqual([test.name for test in outcome.flaky], ["up::faults::slow"])
        self.assertEqual(flaky.known(self.table), {"up::faults::slow"})
        exact = [call for call in (self.root / "calls").read_text().splitlines() if "--exact" in call]
        self.assertEqual([call.split("--exact ")[1] for call in exact], ["faults::slow", "faults::quick faults::slow"])

    def test_a_flaky_test_that_comes_a_second_time_is_red(self):
        self.outcome("ok")
        outcome = self.outcome("ok")
        self.assertFalse(outcome.is_green)
        self.assertIn("a second time", outcome.words[0])

    def test_a_test_that_fails_again_has_failed(self):
        outcome = self.outcome("FAILED")
        self.assertEqual((outcome.failed, outcome.flaky), (["up::faults::slow"], []))
        self.assertEqual(flaky.known(self.table), set())


def is_gone(file: Path) -> bool:
    """Whether the process whose number the file holds has ended. One that its new parent has not collected yet has ended, too."""
    try:
        return Path(f"/proc/{file.read_text().strip()}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class KeptTarget(unittest.TestCase):
    def test_what_another_checkout_built_is_dropped_and_what_this_one_built_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            target, bin_folder = Path(folder) / "target", Path(folder) / "bin"
            target.mkdir()
            bin_folder.mkdir()
            cargo = bin_folder / "cargo"
            cargo.write_text(f"#!/bin/sh\necho \"$*\" >>{folder}/calls\n")
            cargo.chmod(0o755)
            path = os.environ["PATH"]
            os.environ["PATH"] = f"{bin_folder}:{path}"
            self.addCleanup(os.environ.__setitem__, "PATH", path)
            checkouts = [Path(folder) / name for name in "aab"]
            for checkout in checkouts:
                checkout.mkdir(exist_ok=True)
                with open(os.devnull, "w") as silence, contextlib.redirect_stdout(silence):
                    machine.forget_other_checkout(target, checkout)
            calls = (Path(folder) / "calls").read_text().splitlines()
            self.assertEqual(calls, [f"clean --workspace --quiet --target-dir {target}"])


class Stages(unittest.TestCase):
    def quiet(self, act):
        with open(os.devnull, "w") as silence, contextlib.redirect_stdout(silence):
            return act()

    def test_a_stage_is_red_when_it_fails_or_takes_more_than_twice_its_budget(self):
        table = Table()
        self.assertTrue(self.quiet(lambda: table.stage("quick", 5, lambda _: Outcome())))
        self.assertFalse(self.quiet(lambda: table.stage("failed", 5, lambda _: Outcome(failed=["up::x"]))))
        self.assertFalse(self.quiet(lambda: table.stage("late", -1, lambda _: Outcome())))
        self.assertFalse(self.quiet(lambda: table.end("a run")))

    def test_more_than_three_flaky_tests_in_a_run_are_red(self):
        def end(number):
            table = Table()
            found = [flaky.FlakyTest("up", str(count), "late") for count in range(number)]
            self.quiet(lambda: table.stage("tests", 5, lambda _: Outcome(flaky=found)))
            return self.quiet(lambda: table.end("a run"))

        self.assertTrue(end(3))
        self.assertFalse(end(4))

    def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            started = Path(folder) / "started"
            command = ["sh", "-c", f"sleep 600 & echo $! >{started}; wait"]
            code = run(command, Path(folder), Path(folder) / "log", 0.5, is_silent=True)
            self.assertEqual(code, 124)
            self.assertTrue(is_gone(started))


    def test_a_run_that_is_told_to_end_ends_its_command(self):
        with tempfile.TemporaryDirectory() as folder:
            started = Path(folder) / "started"
            script = (
                "import pathlib; from pipeline.process import end_on_signals, run; end_on_signals(); "
                f"run(['sh', '-c', 'echo $$ >{started}; exec sleep 600'], '/', pathlib.Path('{folder}/log'), 600)"
            )
            with subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[1], stderr=subprocess.DEVNULL) as child:
                while not (started.exists() and started.read_text().endswith("\n")):
                    self.assertIsNone(child.poll())
                    time.sleep(0.01)
                child.terminate()
                self.assertNotEqual(child.wait(10), 0)
            ends = time.monotonic() + 10
            while not is_gone(started):
                self.assertLess(time.monotonic(), ends, "the command lives on")
                time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()

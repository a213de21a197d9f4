"""The pipeline's own tests, which its first stage runs: `cd .ci && python3 -m unittest pipeline.tests`."""

import contextlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest
from pathlib import Path
from unittest import mock

from . import everything, flaky, gate, libtest, machine, room, second_runs, stamps
from .process import ENOUGH, run
from .second_runs import Suspect, Turn, Verdict
from .sources import Sources
from .stages import Row, Table
from .stamps import Stamps
from .suites import Outcome, Suites

FAILED_SUITE = """\
     Running unittests src/lib.rs (target/debug/deps/scaling-0123456789abcdef)

running 2 tests
test window::tests::empty ... ok
test window::tests::full ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/end_to_end/main.rs (/somewhere/debug/deps/end_to_end-fedcba9876543210)

running 2 tests
test faults::slow ... FAILED
test faults::quick ... ok

failures:

---- faults::slow stdout ----

thread 'faults::slow' (7) panicked at tests/tests/end_to_end/up/faults.rs:9:5:
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


class SuitesAndBenchmarks(unittest.TestCase):
    def setUp(self):
        self.manifest = tomllib.loads((gate.ROOT / "tests/Cargo.toml").read_text())

    def test_each_suite_that_the_first_command_leaves_out_and_each_benchmark_of_one_machine_has_a_stage(self):
        stages = "".join((gate.ROOT / ".ci/pipeline" / name).read_text() for name in ("gate.py", "everything.py"))
        suites = [suite["name"] for suite in self.manifest["test"] if not suite.get("test", True)]
        benchmarks = [bench["name"] for bench in self.manifest["bench"]]
        # Those of a cluster run by `tests/cluster/bench`, and the report measures nothing.
        of_one_machine = [name for name in benchmarks if not name.startswith("cluster-") and name != "report"]
        self.assertGreater(len(suites) + len(of_one_machine), 25)
        self.assertEqual([name for name in suites + of_one_machine if f'"{name}"' not in stages], [])

    def test_each_part_of_a_suite_that_runs_on_two_nodes_is_there(self):
        modules = (gate.ROOT / "tests/tests/cluster/shared/main.rs").read_text().splitlines()
        self.assertEqual([part for part in everything.ON_TWO_NODES if f"mod {part.removesuffix('::')};" not in modules], [])

    def test_suites_compile_the_same_features(self):
        targets = [target for kind in ("bin", "test", "bench") for target in self.manifest[kind]]
        self.assertEqual([target["name"] for target in targets if "required-features" in target], [])


class Reading(unittest.TestCase):
    def test_programs_have_their_names_results_and_failures(self):
        scaling, suite, doc_tests = read(FAILED_SUITE)
        self.assertEqual((scaling.name, scaling.is_unit_tests, scaling.passed, scaling.failed), ("scaling", True, 2, []))
        self.assertEqual((suite.name, suite.is_unit_tests, suite.passed, suite.failed), ("end_to_end", False, 1, ["faults::slow"]))
        self.assertFalse(doc_tests.has_ended, "it printed no result")

    def test_a_reason_is_the_first_line_of_the_panic(self):
        suite = read(FAILED_SUITE)[1]
        self.assertEqual(libtest.reason(suite.outputs["faults::slow"]), "3 requests are missing / of 7")

    def test_neighbours_are_those_that_are_listed_around_a_test(self):
        self.assertEqual(libtest.neighbours(list("abcdefg"), "b", 2, 2), list("abcd"))
        self.assertEqual(libtest.neighbours(list("abcdefg"), "e", 1, 3), list("defg"))

    def test_results_are_read_as_they_come_and_not_from_what_a_failed_test_printed(self):
        suite = read(FAILED_SUITE.replace("3 requests are missing", "test faults::slow ... ok"))[1]
        self.assertEqual(suite.results, {"faults::slow": "FAILED", "faults::quick": "ok"})
        line = "     Running tests/end_to_end/main.rs (debug/deps/end_to_end-0)\ntest refused - should panic ... ok\n"
        self.assertEqual(read(line)[0].results, {"refused": "ok"})


CARGO = """\
#!/usr/bin/env python3
# Plays cargo and a test program of libtest. `plan.json` says of each test, in the order of the list, how long each of its runs takes and how the run ends.
import concurrent.futures, json, os, pathlib, sys, time

plan = json.loads(pathlib.Path("plan.json").read_text())
with open("calls", "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if "--list" in sys.argv:
    print("\\n".join(f"{name}: test" for name in plan))
    sys.exit()
pathlib.Path("pid").write_text(str(os.getpid()))
chosen = sys.argv[sys.argv.index("--exact") + 1 :] if "--exact" in sys.argv else plan
runs = {name: plan[name].pop(0) if len(plan[name]) > 1 else plan[name][0] for name in plan if name in chosen}
pathlib.Path("plan.json").write_text(json.dumps(plan))

def test(name):
    seconds, result = runs[name]
    time.sleep(seconds)
    print(f"test {name} ... {result}", flush=True)

print("     Running tests/end_to_end/main.rs (target/debug/deps/end_to_end-fedcba9876543210)", flush=True)
print(f"\\nrunning {len(runs)} tests", flush=True)
with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("RUST_TEST_THREADS", 4))) as pool:
    list(pool.map(test, runs))
failed = [name for name in runs if runs[name][1] != "ok"]
if failed:
    outputs = "".join(f"---- {name} stdout ----\\npanicked at x:1:\\nlate\\n\\n" for name in failed)
    print(f"\\nfailures:\\n\\n{outputs}\\nfailures:\\n    " + "\\n    ".join(failed))
print(f"\\ntest result: {'FAILED' if failed else 'ok'}. {len(runs) - len(failed)} passed; {len(failed)} failed; 0 ignored")
sys.exit(101 if failed else 0)
"""

PASSES, FAILS, FAILS_ONCE = [[0, "ok"]], [[0, "FAILED"]], [[0, "FAILED"], [0, "ok"]]
HANGS_AFTERWARDS = [[0, "ok"], [600, "ok"]]


class SecondRuns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "tests").mkdir()
        self.table = self.root / "tests/flaky.md"
        self.table.write_text("| date | test | reason |\n|---|---|---|\n")
        settings = self.root / ".cargo/config.toml"
        settings.parent.mkdir()
        settings.write_text('[env]\nRUST_TEST_THREADS = "4"\n')
        cargo = self.root / "bin/cargo"
        cargo.parent.mkdir()
        cargo.write_text(CARGO)
        cargo.chmod(cargo.stat().st_mode | stat.S_IXUSR)
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{cargo.parent}:{path}"
        self.addCleanup(os.environ.__setitem__, "PATH", path)

    def outcome(self, plan, threads=None) -> Outcome:
        (self.root / "plan.json").write_text(json.dumps(plan))
        suites = Suites(self.root, self.root / "target/ci")
        with open(os.devnull, "w") as silence:
            with contextlib.redirect_stdout(silence):
                return suites.suite("end_to_end", 30, threads)

    def chosen(self):
        """The tests of each run that chose its tests."""
        calls = (self.root / "calls").read_text().splitlines()
        return [call.split("--exact ")[1] for call in calls if "--exact" in call]

    def test_a_test_that_passes_alone_and_among_neighbours_is_flaky_and_written_down(self):
        outcome = self.outcome({"faults::quick": PASSES, "faults::slow": FAILS_ONCE})
        self.assertTrue(outcome.is_green, outcome)
        self.assertEqual([test.name for test in outcome.flaky], ["end_to_end::faults::slow"])
        self.assertEqual(flaky.known(self.table), {"end_to_end::faults::slow"})
        self.assertEqual(self.chosen(), ["faults::slow", "faults::quick faults::slow"])

    def test_a_part_of_a_suite_is_chosen_by_texts_in_the_names(self):
        (self.root / "plan.json").write_text(json.dumps({"faults::quick": PASSES}))
        with open(os.devnull, "w") as silence, contextlib.redirect_stdout(silence):
            outcome = Suites(self.root, self.root / "target/ci").suite("end_to_end", 30, only=("faults::", "files::"))
        self.assertTrue(outcome.is_green, outcome)
        self.assertTrue((self.root / "calls").read_text().endswith("--test end_to_end -- faults:: files::\n"))
        self.assertTrue((self.root / "target/ci/end_to_end-faults-files.log").is_file())

    def test_a_flaky_test_that_comes_a_second_time_is_red(self):
        self.outcome({"faults::slow": FAILS_ONCE})
        outcome = self.outcome({"faults::slow": FAILS_ONCE})
        self.assertFalse(outcome.is_green)
        self.assertIn("a second time", outcome.words[0])

    def test_a_test_that_fails_again_has_failed(self):
        for runs in (FAILS, [[0, "FAILED"], [0, "ok"], [0, "FAILED"]]):
            outcome = self.outcome({"faults::quick": PASSES, "faults::slow": runs})
            self.assertEqual((outcome.failed, outcome.flaky), (["end_to_end::faults::slow"], []))
            self.assertEqual(flaky.known(self.table), set())

    def test_more_failed_tests_than_a_run_may_have_flaky_ones_do_not_run_again(self):
        names = [f"faults::number_{number}" for number in range(flaky.MOST_IN_A_RUN + 1)]
        outcome = self.outcome(dict.fromkeys(names, FAILS_ONCE))
        self.assertEqual((outcome.failed, outcome.flaky, self.chosen()), ([f"end_to_end::{name}" for name in names], [], []))

    def test_a_pure_test_does_not_run_again(self):
        cargo = self.root / "bin/cargo"
        cargo.write_text(CARGO.replace("tests/end_to_end/main.rs", "unittests src/lib.rs"))
        outcome = self.outcome({"faults::slow": FAILS_ONCE})
        self.assertEqual((outcome.failed, outcome.flaky, self.chosen()), (["end_to_end::faults::slow"], [], []))

    def test_neighbours_run_beside_a_test_and_end_with_it(self):
        plan = {f"faults::{letter}": HANGS_AFTERWARDS for letter in "abcdefgh"} | {"faults::e": FAILS_ONCE}
        outcome = self.outcome(plan)
        self.assertEqual([test.name for test in outcome.flaky], ["end_to_end::faults::e"], outcome)
        self.assertTrue(is_gone(self.root / "pid"))
        # Three before it: four run at once, and all four start together.
        self.assertEqual(self.chosen()[1], " ".join(f"faults::{letter}" for letter in "bcdefgh"))

    def test_a_test_of_a_suite_that_runs_one_by_one_waits_for_no_neighbour(self):
        outcome = self.outcome({"faults::a": HANGS_AFTERWARDS, "faults::b": FAILS_ONCE}, threads=1)
        self.assertEqual([test.name for test in outcome.flaky], ["end_to_end::faults::b"], outcome)


class SharesOfTime(unittest.TestCase):
    """Of 120 made-up seconds."""

    def passed(self, seconds):
        """The tests that pass twice, where each of their runs takes so long."""
        now = [0]

        def attempt(suspect, _, limit):
            now[0] += min(seconds[suspect.test], limit)
            return Verdict.PASSED if seconds[suspect.test] <= limit else Verdict.NO_TIME

        suspects = [Suspect("end_to_end", test) for test in seconds]
        passed = second_runs.passed_twice(suspects, attempt, 120, lambda: now[0])
        self.assertLessEqual(now[0], 120)
        return {suspect.test for suspect in passed}

    def test_suites_of_a_cluster_have_more_time_but_for_the_smoke_of_the_gate(self):
        for program, budget in (("end_to_end", 120), ("cluster_smoke", 120), ("cluster_shared", 600), ("cluster_two_nodes", 600)):
            self.assertEqual(second_runs.budget_of([Suspect(program, "a")]), budget)

    def test_a_test_may_use_what_the_others_leave(self):
        self.assertEqual(self.passed({"alone": 60}), {"alone"})
        self.assertEqual(self.passed({"first": 40, "quick": 1, "other": 1}), {"first", "quick", "other"})
        self.assertEqual(self.passed({"quick": 1, "other": 1, "last": 58}), {"quick", "other", "last"})

    def test_a_test_that_hangs_takes_no_time_from_the_others(self):
        self.assertEqual(self.passed({"hangs": 999, "first": 19, "second": 19}), {"first", "second"})
        self.assertEqual(self.passed({"hangs": 999}), set())
        self.assertEqual(self.passed({"hangs": 999, "too": 999}), set())

    def test_a_test_that_failed_again_gives_its_time_to_the_others(self):
        seen = []

        def attempt(suspect, turn, limit):
            seen.append((suspect.test, turn, limit))
            return Verdict.FAILED if suspect.test == "broken" else Verdict.PASSED

        good, broken = Suspect("end_to_end", "good"), Suspect("end_to_end", "broken")
        self.assertEqual(second_runs.passed_twice([broken, good], attempt, 120, lambda: 0), [good])
        self.assertEqual(seen, [("broken", Turn.ALONE, 30), ("good", Turn.ALONE, 60), ("good", Turn.AMONG_NEIGHBOURS, 120)])


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
            record = target / "sources.json"
            record.write_text("{}")
            for checkout in checkouts:
                self.assertTrue(record.exists())
                checkout.mkdir(exist_ok=True)
                with open(os.devnull, "w") as silence, contextlib.redirect_stdout(silence):
                    machine.forget_other_checkout(target, checkout)
            self.assertFalse(record.exists())
            calls = (Path(folder) / "calls").read_text().splitlines()
            self.assertEqual(calls, [f"clean --workspace --quiet --target-dir {target}"])


class Room(unittest.TestCase):
    """On a machine whose checkout and target lie on disks of these names."""

    def missing(self, free, kept=0, kubernetes=room.KUBERNETES_BUILT, disks=("disk", "disk")):
        checkout, target = Path("/checkout"), Path("/target")
        names = dict(zip((checkout, target), disks))
        parts = room.parts(checkout, target, room.TARGET_OF_GATE, kept * room.GIGABYTE, kubernetes)
        return room.missing(parts, lambda folder: (names[folder], free[names[folder]] * room.GIGABYTE))

    def test_an_empty_machine_needs_room_for_all_and_what_is_kept_lowers_it(self):
        for needed, kept, kubernetes in [
            (12, 0, room.KUBERNETES_BUILT), (9, 3, room.KUBERNETES_BUILT), (8, 4, room.KUBERNETES_BUILT), (8, 15, room.KUBERNETES_BUILT),
            (6.5, 0, room.KUBERNETES_UNPACKED), (2.5, 4, room.KUBERNETES_UNPACKED), (6, 0, 0), (2, 4, 0),
        ]:
            self.assertEqual(self.missing({"disk": needed}, kept, kubernetes), [], (kept, kubernetes))
            self.assertEqual(len(self.missing({"disk": needed - 0.1}, kept, kubernetes)), 1, (kept, kubernetes))

    def test_what_is_missing_is_told_with_the_parts_that_need_it(self):
        said = self.missing({"disk": 8.5}, kept=2)
        self.assertEqual(said, [
            "8.5 GB of the disk below /target are free, and 10.0 GB are needed: 3.0 GB for cargo's builds in /target, which holds 2.0 GB; 1.0 GB for logs and images "
            "in /checkout/target; 6.0 GB for the Kubernetes of the tests in /checkout/target/cluster, built, as none is kept. Free 1.5 GB there, or name folders on "
            "another disk ($EBB_CI_TARGET for cargo's builds)"])

    def test_each_disk_has_room_for_its_own_parts(self):
        disks = ("checkouts", "caches")
        self.assertEqual(self.missing({"checkouts": 7, "caches": 5}, disks=disks), [])
        self.assertEqual(len(self.missing({"checkouts": 6.9, "caches": 100}, disks=disks)), 1)
        self.assertEqual(len(self.missing({"checkouts": 6.9, "caches": 4.9}, disks=disks)), 2)

    def test_a_folder_that_is_not_there_yet_has_the_disk_of_the_one_above_it(self):
        with tempfile.TemporaryDirectory() as folder:
            parts = room.parts(Path(folder), Path(folder) / "not/yet", 0, 0, 0)
            self.assertEqual(room.missing([room.Part("nothing", part.folder, 0) for part in parts]), [])
            self.assertEqual(len(room.missing([room.Part("too much", part.folder, 1 << 60) for part in parts])), 1)

    def test_the_archives_of_kubernetes_that_were_used_last_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder)
            archives = [cache / f"cluster-{letter}.tar.zst" for letter in "abcde"]
            for hour, archive in enumerate(archives):
                archive.touch()
                os.utime(archive, (hour * 3600, hour * 3600))
            (cache / "metrics-server-a.tar").touch()
            with open(os.devnull, "w") as silence, contextlib.redirect_stdout(silence):
                room.forget_old(cache, archives[0])
            self.assertEqual(sorted(os.listdir(cache)), ["cluster-a.tar.zst", "cluster-d.tar.zst", "cluster-e.tar.zst", "metrics-server-a.tar"])

    def test_the_key_of_kubernetes_is_that_of_its_build(self):
        self.assertRegex(gate.kubernetes_key(), "^[0-9a-f]{32}$")


HOUR = 3600 * 10**9


class SourcesOfAClone(unittest.TestCase):
    """Clones at one path, an hour one after another; a run of each takes a few minutes."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.target, self.checkout = Path(folder.name) / "target", Path(folder.name) / "checkout"
        self.began = 1_700_000_000 * 10**9
        self.hours = 0

    def set_time(self, file, time):
        os.utime(file, ns=(time, time))

    def clone(self, **contents) -> Sources:
        self.hours += 1
        shutil.rmtree(self.checkout, ignore_errors=True)
        self.checkout.mkdir()
        subprocess.run(["git", "init", "--quiet", self.checkout], check=True)
        for name, text in contents.items():
            (self.checkout / name).write_text(text)
            self.set_time(self.checkout / name, self.began + self.hours * HOUR)
        subprocess.run(["git", "add", "."], cwd=self.checkout, check=True)
        return Sources(self.target, self.checkout)

    def build(self, time):
        build = self.target / "debug/.fingerprint/a-0/invoked.timestamp"
        build.parent.mkdir(parents=True, exist_ok=True)
        build.touch()
        self.set_time(build, time)

    def run_whole(self, sources, act=lambda: None):
        began = self.began + self.hours * HOUR
        sources.restore()
        self.build(began + HOUR // 10)
        act()
        sources.keep()
        self.set_time(sources.record, began + HOUR // 5)

    def age(self, name):
        """In which hour the file changed for the last time, as cargo sees it."""
        return ((self.checkout / name).stat().st_mtime_ns - self.began) / HOUR

    def test_unchanged_sources_are_as_old_as_they_were_and_changed_ones_are_new(self):
        self.run_whole(self.clone(a="one", b="one"))
        self.assertEqual((self.age("a"), self.age("b")), (1, 1))
        self.run_whole(self.clone(a="one", b="two", c="one"))
        self.assertEqual((self.age("a"), self.age("b"), self.age("c")), (1, 2, 2))
        # The former content of `b` was compiled before another was.
        self.run_whole(self.clone(a="one", b="one", c="one"))
        self.assertEqual((self.age("a"), self.age("b"), self.age("c")), (1, 3, 2))

    def test_what_is_built_is_told_by_the_beginning_of_a_name(self):
        self.run_whole(self.clone(a1="one", a2="one", b="one"))
        sources = self.clone(a1="one", a2="one", b="two")
        self.run_whole(sources)
        self.assertEqual((sources.are_built("a"), sources.are_built("b")), (True, False))
        same = Sources(self.target, self.checkout)
        self.hours += 1
        self.run_whole(same)
        self.assertEqual((same.are_built("a"), same.are_built("b")), (True, True))

    def test_a_source_that_was_written_during_a_run_is_new_in_the_next(self):
        self.run_whole(self.clone(a="one", b="one"), lambda: (self.checkout / "b").write_text("one"))
        self.run_whole(self.clone(a="one", b="one"))
        self.assertEqual((self.age("a"), self.age("b")), (1, 2))

    def test_a_run_that_was_killed_leaves_no_record(self):
        self.run_whole(self.clone(a="one"))
        self.clone(a="one").restore()
        self.run_whole(self.clone(a="one"))
        self.assertEqual(self.age("a"), 3)

    def test_what_another_program_built_meanwhile_makes_all_sources_new(self):
        self.run_whole(self.clone(a="one"))
        self.build(self.began + self.hours * HOUR + HOUR // 2)
        self.run_whole(self.clone(a="one"))
        self.assertEqual(self.age("a"), 2)

    def test_a_checkout_in_which_a_person_works_keeps_its_times(self):
        self.run_whole(self.clone(a="one", b="one"))
        (self.checkout / "b").write_text("two")
        (self.checkout / "b").write_text("one")
        written = self.age("b")
        self.run_whole(Sources(self.target, self.checkout))
        self.assertEqual((self.age("a"), self.age("b")), (1, written))

    def test_a_source_that_is_older_than_the_last_build_is_new_in_the_next_clone(self):
        self.run_whole(self.clone(a="one"))
        # Another content with an old time, as an archive or a move brings it: cargo does not compile it.
        (self.checkout / "a").write_text("two")
        self.set_time(self.checkout / "a", self.began)
        self.run_whole(Sources(self.target, self.checkout))
        self.run_whole(self.clone(a="two"))
        self.assertEqual(self.age("a"), 2)


class StampsOfACheckout(unittest.TestCase):
    """Commits of one checkout, each of which may have been proven in part."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkout = Path(folder.name) / "checkout"
        self.checkout.mkdir()
        self.stamps = Stamps(self.checkout)
        self.stamps.file = Path(folder.name) / "cache/stamps.json"
        self.compile_with("rustc 1")
        self.git("init", "--quiet")
        self.commit("one")

    def compile_with(self, version):
        patch = mock.patch.object(machine, "rustc", lambda: version)
        patch.start()
        self.addCleanup(patch.stop)

    def git(self, *words):
        person = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
        subprocess.run(["git", *person, *words], cwd=self.checkout, check=True, capture_output=True)

    def edit(self, text):
        (self.checkout / "file").write_text(text)

    def commit(self, text):
        self.edit(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", text)

    def test_a_green_stage_is_known_for_its_commit_its_compiler_and_a_clean_tree(self):
        self.stamps.write([Row("dist", 5, 10, Outcome(passed=3))])
        row = self.stamps.row("dist")
        self.assertEqual((row.seconds, row.outcome.passed, row.is_kept), (5, 3, True))
        self.assertFalse(self.stamps.has("peers"), "another stage")
        self.edit("two")
        self.assertFalse(self.stamps.has("dist"), "a tree that is not clean")
        self.commit("two")
        self.assertFalse(self.stamps.has("dist"), "another commit")
        self.git("checkout", "--quiet", "HEAD~1")
        self.assertTrue(self.stamps.has("dist"), "the same commit again")
        self.compile_with("rustc 2")
        self.assertFalse(self.stamps.has("dist"), "another compiler")

    def test_a_stage_that_is_red_flaky_or_late_has_no_stamp(self):
        found = flaky.FlakyTest("peers", "slow", "late")
        self.stamps.write([
            Row("failed", 5, 10, Outcome(failed=["peers::slow"])), Row("red", 5, 10, Outcome(words=["it crashed"])),
            Row("flaky", 5, 10, Outcome(flaky=[found])), Row("late", 21, 10, Outcome()), Row("green", 20, 10, Outcome()),
        ])
        known = [stage for stage in ("failed", "red", "flaky", "late", "green") if self.stamps.has(stage)]
        self.assertEqual(known, ["green"])

    def test_a_tree_that_is_not_clean_gets_no_stamp(self):
        self.edit("two")
        self.stamps.write([Row("dist", 5, 10, Outcome())])
        self.git("checkout", "--quiet", "file")
        self.assertFalse(self.stamps.has("dist"))

    def test_stages_are_added_to_those_of_the_commit_and_old_commits_are_forgotten(self):
        patch = mock.patch.object(stamps, "KEPT", 2)
        patch.start()
        self.addCleanup(patch.stop)
        for number in range(3):
            self.commit(f"commit {number}")
            for stage in ("dist", "peers"):
                self.stamps.write([Row(stage, 5, 10, Outcome())])
        self.assertTrue(self.stamps.has("dist") and self.stamps.has("peers"))
        self.git("checkout", "--quiet", "HEAD~2")
        self.assertFalse(self.stamps.has("dist"))
        self.git("checkout", "--quiet", "-")
        self.assertTrue(self.stamps.has("dist"))


class Stages(unittest.TestCase):
    def quiet(self, act):
        with open(os.devnull, "w") as silence, contextlib.redirect_stdout(silence):
            return act()

    def test_a_stage_is_red_when_it_fails_or_takes_more_than_twice_its_budget(self):
        table = Table()
        self.assertTrue(self.quiet(lambda: table.stage("quick", 5, lambda _: Outcome())))
        self.assertFalse(self.quiet(lambda: table.stage("failed", 5, lambda _: Outcome(failed=["end_to_end::x"]))))
        self.assertFalse(self.quiet(lambda: table.stage("late", -1, lambda _: Outcome())))
        self.assertFalse(self.quiet(lambda: table.end("a run")))

    def test_the_table_names_failed_and_flaky_tests_and_the_last_line_what_was_left_out(self):
        table = Table()
        found = flaky.FlakyTest("peers", "slow", "late")
        self.quiet(lambda: table.stage("peers", 5, lambda _: Outcome(passed=7, flaky=[found])))
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertTrue(table.end("a run", " WITHOUT the cluster"))
        lines = shown.getvalue().splitlines()
        self.assertIn("load", lines[1], "a slow run may have had a busy machine")
        self.assertTrue(any(line.split() == ["peers", "0", "5", "7", "0", "1"] for line in lines), lines)
        self.assertIn("flaky: peers::slow: late (outputs in target/ci, row in tests/flaky.md)", lines)
        self.assertEqual(lines[-1], "passed WITHOUT the cluster")
        self.quiet(lambda: table.stage("dist", 5, lambda _: Outcome(failed=["dist::made"])))
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertFalse(table.end("a run"))
        lines = shown.getvalue().splitlines()
        self.assertIn("failed: dist::made", lines)
        self.assertEqual(lines[-1], "FAILED")

    def test_more_than_three_flaky_tests_in_a_run_are_red(self):
        def end(number):
            table = Table()
            found = [flaky.FlakyTest("end_to_end", str(count), "late") for count in range(number)]
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

    def test_a_command_that_said_enough_is_ended_with_all_that_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            started = Path(folder) / "started"
            # What it starts lives on for a moment after TERM, and has no part in its output.
            rest = f"trap 'sleep 0.3; exit' TERM; echo $$ >{started}; while :; do sleep 0.1; done"
            command = ["sh", "-c", f'sh -c "{rest}" >/dev/null 2>&1 & while [ ! -s {started} ]; do sleep 0.01; done; echo ready; exec sleep 600']
            run(command, Path(folder), Path(folder) / "log", 600, lambda text: ENOUGH if text == "ready\n" else None, is_silent=True)
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

"""What does the machine have, and what is it missing? Packages come from the system's package manager."""

import atexit
import ctypes
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from .room import GIGABYTE
from .sources import Sources

MEMORY_NEEDED = 6 * GIGABYTE
TARGET_LARGEST = 20 * GIGABYTE
CLONE_NEWNET = 0x40000000


def cache() -> Path:
    """Where builds outlive checkouts."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def load() -> str:
    """The machine's load, beside times that depend on it."""
    return "load " + " ".join(f"{average:.1f}" for average in os.getloadavg()) + f", {os.cpu_count()} cores"


class MissingProgram(Exception):
    """Something is not there, and the message says how to get it."""


def missing_packages(needed: dict[str, str]) -> list[str]:
    """The package of each program that is missing. A key with a slash is a file, any other a program in the path."""
    return sorted({package for program, package in needed.items() if not _has(program)})


def install(missing: list[str]):
    """Installs these packages."""
    command = f"apt-get update && apt-get install -y {' '.join(missing)}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise MissingProgram(f"missing packages: {', '.join(missing)}; run: sudo sh -c '{command}'")
    print(f"installing {' '.join(missing)}", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *missing]):
        subprocess.run(step, check=True, env=quiet, stdout=subprocess.DEVNULL)


def _has(program: str) -> bool:
    if "/" in program:
        return Path(program).exists()
    if program.startswith("pkg-config:"):
        return shutil.which("pkg-config") is not None and not subprocess.run(["pkg-config", "--exists", program.split(":")[1]]).returncode
    if program.startswith("python3:"):
        return not subprocess.run(["python3", "-c", f"import {program.split(':')[1]}"], stderr=subprocess.DEVNULL).returncode
    return shutil.which(program) is not None


def missing_for_rust() -> list[str]:
    """What cargo cannot get by itself."""
    words = []
    if not shutil.which("cargo"):
        return ["cargo is missing: install a Rust toolchain (rustup.rs), 1.95 or newer"]
    for program, component in (("fmt", "rustfmt"), ("clippy", "clippy")):
        if subprocess.run(["cargo", program, "--version"], capture_output=True).returncode:
            words.append(f"{component} is missing: rustup component add {component}")
    return words


def missing_for_cluster() -> list[str]:
    """What keeps a real Kubernetes from running here. Takes less than a second."""
    words = []
    if os.geteuid() != 0:
        words.append("the cluster of tests needs root: network namespaces and containers")
    elif not _may_unshare():
        words.append("this user may not make a network namespace (unshare -n): give the machine or container CAP_SYS_ADMIN")
    elif subprocess.run(["nft", "list", "ruleset"], capture_output=True).returncode:
        words.append("nft cannot read the kernel's rules: kube-proxy needs nftables in this kernel")
    groups = Path("/proc/self/cgroup").read_text().splitlines()
    if not any(line.split(":")[1] for line in groups):
        words.append("this machine has cgroup v2 alone; the cluster of tests needs the controllers of v1")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < MEMORY_NEEDED:
        words.append(f"this machine has {memory // GIGABYTE} GB of memory; {MEMORY_NEEDED // GIGABYTE} are needed")
    return words


def _may_unshare() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(0 if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


target_lock = []
"""The open file whose lock this run holds until it ends."""

sources_of_run = []
"""The sources of this run's checkout, once the run has the kept target."""


def rustc() -> str:
    """The compiler's version, by which kept builds and stamps are known."""
    return subprocess.run(["rustc", "-V"], capture_output=True, text=True, check=True).stdout.strip()


def target_folder() -> Path:
    """Where cargo builds in a run. `$EBB_CI_TARGET` names another folder."""
    return Path(os.environ.get("EBB_CI_TARGET") or cache() / "ebb-target")


def kept_target(checkout: Path) -> tuple[Path, bool]:
    """The target folder that outlives checkouts, and whether it holds a build.

    One run at a time has it: the suites start executables that lie there, and each checkout puts its own in their place.
    """
    target = target_folder()
    if not target_lock:
        target.parent.mkdir(parents=True, exist_ok=True)
        target_lock.append(target.with_name(target.name + ".lock").open("w"))
        try:
            fcntl.flock(target_lock[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another run uses {target}: waiting for its end ($EBB_CI_TARGET names another folder)", flush=True)
            fcntl.flock(target_lock[0], fcntl.LOCK_EX)
    key = target / "rustc"
    is_other = key.exists() and key.read_text().strip() != rustc()
    if is_other or size(target) > TARGET_LARGEST:
        print(f"{target} is dropped: {'it is of another compiler' if is_other else 'it is larger than 20 GB'}", flush=True)
        shutil.rmtree(target)
    is_kept = (target / "debug/deps").exists()
    target.mkdir(parents=True, exist_ok=True)
    key.write_text(rustc() + "\n")
    forget_other_checkout(target, checkout)
    if not sources_of_run:
        sources_of_run.append(Sources(target, checkout))
        sources_of_run[0].restore()
        atexit.register(sources_of_run[0].keep)
    return target, is_kept


def tests_budget(is_kept: bool) -> tuple[str, int]:
    """How much of the build the tests find, in words, and the seconds that they may take with it."""
    if not is_kept:
        return "from nothing", 600
    # Each crate uses `vocabulary`, so a change there compiles the whole workspace.
    if sources_of_run and sources_of_run[0].are_built("crates/vocabulary/"):
        return "kept target", 360
    return "kept dependencies", 480


def forget_other_checkout(target: Path, checkout: Path):
    """Keeps the dependencies alone where another checkout was the last to build.

    Cargo names what it builds of a workspace without the workspace's folder, and compiles a crate anew if a source is newer than the build: where the sources of
    this checkout are older, it would take the other's programs for its own, and these read the other's files.
    """
    last = target / "checkout"
    if last.exists() and last.read_text() != str(checkout):
        print(f"{target} was last used by {last.read_text()}: what was built of that checkout is dropped", flush=True)
        subprocess.run(["cargo", "clean", "--workspace", "--quiet", "--target-dir", str(target)], cwd=checkout, check=True)
        # Cargo cleans the profile of the tests alone. For the others all sources of this checkout are new.
        Sources(target, checkout).forget()
    last.write_text(str(checkout))


def size(folder: Path) -> int:
    """The bytes that a folder takes of its disk."""
    if not folder.exists():
        return 0
    said = subprocess.run(["du", "-s", "-B1", str(folder)], capture_output=True, text=True).stdout
    return int(said.split()[0]) if said else 0

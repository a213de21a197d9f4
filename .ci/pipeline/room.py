"""Have the disks room for what a run writes? What earlier runs left, and this one uses again, is not written a second time."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

GIGABYTE = 10**9
TARGET_OF_GATE = 5 * GIGABYTE
"""Cargo's target folder after a gate from nothing: 3.9 GB, and room for what the crates grow by."""
TARGET_OF_ALL = 9 * GIGABYTE
"""The same with the release build, the static executables, the fuzz targets and the benchmarks of `.ci/all`; an estimate."""
TARGET_LEAST = 1 * GIGABYTE
"""Beside a whole kept target: what is compiled anew, before the build that it replaces is gone."""
KUBERNETES_BUILT = 6 * GIGABYTE
"""Go's modules and objects while it is built (tests/cluster/build). Most of this is given back."""
KUBERNETES_UNPACKED = GIGABYTE // 2
"""Its programs and first images: 0.35 GB."""
RUN = 1 * GIGABYTE
"""Logs, images of the cluster, and the state of its nodes."""

ARCHIVES_LEFT = 3
"""How many versions of Kubernetes stay in the cache: checkouts of several branches take turns."""


@dataclass
class Part:
    """Something that the run writes below a folder."""

    what: str
    folder: Path
    needed: int
    """In bytes, beside what is there."""


def parts(checkout: Path, target: Path, target_whole: int, kept: int, kubernetes: int) -> list[Part]:
    """What a run writes. `kept` is what the target folder holds: it is used again, or given back before the first build. `kubernetes` is one of the above, or 0
    where the run has none."""
    there = f", which holds {_gigabytes(kept)}" if kept else ""
    found = [
        Part(f"cargo's builds in {target}{there}", target, max(TARGET_LEAST, target_whole - kept)),
        Part(f"logs and images in {checkout}/target", checkout, RUN),
    ]
    if kubernetes:
        how = "built, as none is kept" if kubernetes == KUBERNETES_BUILT else "unpacked"
        found.append(Part(f"the Kubernetes of the tests in {checkout}/target/cluster, {how}", checkout, kubernetes))
    return found


def missing(found: list[Part], disk=None) -> list[str]:
    """A line for each disk that has less free than the parts on it write. `disk` says of a folder which disk it is on, and how much of that is free."""
    disks: dict[object, tuple[int, list[Part]]] = {}
    for part in found:
        name, free = (disk or _disk)(part.folder)
        disks.setdefault(name, (free, []))[1].append(part)
    words = []
    for free, there in disks.values():
        needed = sum(part.needed for part in there)
        if free < needed:
            each = "; ".join(f"{_gigabytes(part.needed)} for {part.what}" for part in there)
            words.append(
                f"{_gigabytes(free)} of the disk below {there[0].folder} are free, and {_gigabytes(needed)} are needed: {each}. Free "
                f"{_gigabytes(needed - free)} there, or name folders on another disk ($EBB_CI_TARGET for cargo's builds)")
    return words


def forget_old(cache: Path, used: Path):
    """Leaves the archives of Kubernetes that were used last. `used` is the one of this run."""
    if used.exists():
        os.utime(used)
    archives = sorted(cache.glob("cluster-*.tar.zst"), key=lambda archive: archive.stat().st_mtime_ns, reverse=True)
    for archive in archives[ARCHIVES_LEFT:]:
        print(f"{archive} is dropped: {ARCHIVES_LEFT} others were used since", flush=True)
        archive.unlink()


def _disk(folder: Path) -> tuple[int, int]:
    # A folder that is made later lies on the disk of the one that it is made in.
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    return os.stat(there).st_dev, shutil.disk_usage(there).free


def _gigabytes(number: int) -> str:
    return f"{number / GIGABYTE:.1f} GB"

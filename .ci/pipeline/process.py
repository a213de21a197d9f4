"""Starts a command, shows and keeps what it prints, and ends it with everything that it started when its time is over."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

KILL_AFTER_SECONDS = 20
"""Between TERM and KILL: a suite takes its pods and namespaces away on TERM."""

LATE = 124
"""The exit code of a command that took too long, as `timeout` says it."""

ENOUGH = object()
"""What a reader of lines returns when it knows what it wants to know: the command is ended."""

running = set()
"""The commands that run now."""

interrupted_by = []
"""The signals that ended this run. With one of them no further command is started."""


def run(command, folder: Path, log: Path, limit: float, line=lambda text: None, is_silent=False, env=None, is_clean_up=False) -> int:
    """The exit code; `LATE` if the command took longer than `limit` seconds. A signal does not end a clean-up.

    Of a command that is ended nothing is left: everything that it started in its process group has ended as well.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **(env or {})}
    is_late, is_enough = threading.Event(), threading.Event()
    with log.open("w", buffering=1) as kept, subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True, env=environment,
    ) as process:
        if not is_clean_up:
            running.add(process)
            if interrupted_by:
                _end(process, signal.SIGTERM)
        timers = [_end_after(limit, process, signal.SIGTERM, is_late), _end_after(limit + KILL_AFTER_SECONDS, process, signal.SIGKILL, is_late)]
        try:
            for text in process.stdout:
                kept.write(text)
                if not is_silent:
                    sys.stdout.write(text)
                    sys.stdout.flush()
                if line(text) is ENOUGH and not is_enough.is_set():
                    timers.append(_end_after(KILL_AFTER_SECONDS, process, signal.SIGKILL))
                    _end(process, signal.SIGTERM, is_enough)
            code = process.wait()
            if is_late.is_set() or is_enough.is_set():
                _until_gone(process)
        finally:
            running.discard(process)
            for timer in timers:
                timer.cancel()
    if interrupted_by and not is_clean_up:
        raise KeyboardInterrupt(interrupted_by[0])
    return LATE if is_late.is_set() else code


def end_on_signals():
    """From now on INT, TERM and HUP end the command that runs, and the run after it; a cluster is taken down on the way.

    A handler that raised would do so anywhere: also where a command has been started and nobody knows it yet.
    """
    def interrupt(number, _):
        interrupted_by.append(signal.Signals(number).name)
        for process in list(running):
            _end(process, signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def _end_after(seconds, process, number, is_ended=None):
    timer = threading.Timer(seconds, _end, (process, number, is_ended))
    timer.daemon = True
    timer.start()
    return timer


def _until_gone(process):
    """Waits for the rest of an ended command, which may have closed its output long before it ends. KILL ends what takes too long."""
    ends = time.monotonic() + KILL_AFTER_SECONDS
    while _lives(process.pid) and time.monotonic() < ends:
        time.sleep(0.02)
    _end(process, signal.SIGKILL)


def _lives(group: int) -> bool:
    """Whether a process of this group lives. One that its parent has not collected yet does not."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = file.read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:
            continue  # It has ended since.
        if int(its_group) == group and state not in "ZX":
            return True
    return False


def _end(process, number, is_ended=None):
    if is_ended is not None:
        is_ended.set()
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass

"""Starts a command, shows and keeps what it prints, and ends it with everything that it started when its time is over."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

KILL_AFTER_SECONDS = 20
"""Between TERM and KILL: a suite takes its pods and namespaces away on TERM."""


running = set()
"""The commands that run now."""

interrupted_by = []
"""The signals that ended this run. With one of them no further command is started."""


def run(command, folder: Path, log: Path, limit: float, line=lambda text: None, is_silent=False, env=None, is_clean_up=False) -> int:
    """The exit code; 124 if the command took longer than `limit` seconds, as `timeout` says it. A signal does not end a clean-up."""
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **(env or {})}
    is_late = threading.Event()
    with log.open("w", buffering=1) as kept, subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True, env=environment,
    ) as process:
        if not is_clean_up:
            running.add(process)
            if interrupted_by:
                _end(process, signal.SIGTERM)
        timers = [threading.Timer(seconds, _end, (process, number, is_late))
                  for seconds, number in ((limit, signal.SIGTERM), (limit + KILL_AFTER_SECONDS, signal.SIGKILL))]
        for timer in timers:
            timer.daemon = True
            timer.start()
        try:
            for text in process.stdout:
                kept.write(text)
                if not is_silent:
                    sys.stdout.write(text)
                    sys.stdout.flush()
                line(text)
            code = process.wait()
        finally:
            running.discard(process)
            for timer in timers:
                timer.cancel()
    if interrupted_by and not is_clean_up:
        raise KeyboardInterrupt(interrupted_by[0])
    return 124 if is_late.is_set() else code


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


def _end(process, number, is_late=None):
    if is_late is not None:
        is_late.set()
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass

"""Starts a command, shows and keeps what it prints, and ends it with everything that it started when its time is over."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

KILL_AFTER_SECONDS = 20
"""Between TERM and KILL: a suite takes its pods and namespaces away on TERM."""


def run(command, folder: Path, log: Path, limit: float, line=lambda text: None, is_silent=False, env=None) -> int:
    """The exit code; 124 if the command took longer than `limit` seconds, as `timeout` says it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **(env or {})}
    is_late = threading.Event()
    with log.open("w") as kept, subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True, env=environment,
    ) as process:
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
        except KeyboardInterrupt:
            _end(process, signal.SIGTERM, is_late)
            raise
        finally:
            for timer in timers:
                timer.cancel()
    return 124 if is_late.is_set() else code


def end_on_signals():
    """From now on TERM and HUP end the run as Ctrl-C does: the command that runs is ended, and a cluster is taken down."""
    def interrupt(number, _):
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def _end(process, number, is_late):
    is_late.set()
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass

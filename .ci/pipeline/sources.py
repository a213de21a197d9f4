"""Which sources of a fresh clone are those that the kept target was built of? They get the modification times that they had then.

Cargo compiles a crate again when a source is newer than the crate's build, and in a fresh clone all are. A source whose content is that of the last run, at the same
path, becomes as old as it was then; every other keeps the time of the clone, which is later than all that was built. Only a clone that is younger than the record is
changed: the times of a checkout in which a person works are also read by that person's own builds.
"""

import hashlib
import json
import os
import subprocess
from pathlib import Path


class Sources:
    """The files of one checkout, and the record of them in the kept target. A run has both from its begin to its end, under the target's lock."""

    def __init__(self, target: Path, checkout: Path):
        self.target, self.checkout = target, checkout
        self.record = target / "sources.json"
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=checkout, capture_output=True, text=True).stdout.split("\0")
        self.files = [name for name in listed if name and (checkout / name).is_file() and not (checkout / name).is_symlink()]
        self.contents: dict[str, tuple[str, int]] = {}
        """The digest and the modification time of each file, in nanoseconds."""
        self.built: set[str] = set()
        """The files that are not newer than the builds, so that cargo compiles nothing for their sake."""

    def restore(self):
        """Before anything is compiled. The record is gone until `keep`: after a run that was killed all sources are new."""
        newest_build = max((file.stat().st_mtime_ns for file in self.target.glob("**/.fingerprint/*/invoked.timestamp")), default=0)
        kept = self._record_for_clone(newest_build)
        self.forget()
        for name in self.files:
            file = self.checkout / name
            digest, modified = hashlib.sha256(file.read_bytes()).hexdigest(), self._modified(name)
            if kept.get(name, [None])[0] == digest:
                modified = kept[name][1]
                os.utime(file, ns=(modified, modified))
                self.built.add(name)
            elif modified <= newest_build:
                # Cargo takes what is built for a build of this content, and nothing here proves that. A clone in this place is to be compiled.
                self.built.add(name)
                continue
            self.contents[name] = (digest, modified)

    def are_built(self, folder: str) -> bool:
        """Whether cargo compiles nothing for the sake of a folder."""
        return all(name in self.built for name in self.files if name.startswith(folder))

    def forget(self):
        """Makes all sources of the next checkout new."""
        self.record.unlink(missing_ok=True)

    def keep(self):
        """After the last command of a run: the files that nothing has touched meanwhile. Of another it is not known with which content it was compiled."""
        left = ((name, known) for name, known in self.contents.items() if (self.checkout / name).exists())
        untouched = {name: known for name, known in left if self._modified(name) == known[1]}
        written = self.record.with_suffix(".new")
        written.write_text(json.dumps(untouched))
        written.replace(self.record)

    def _record_for_clone(self, newest_build):
        """The record, if this is a clone that was made after it and nothing was built in the target between the two."""
        if not self.record.exists():
            return {}
        ended = self.record.stat().st_mtime_ns
        is_clone = all(self._modified(name) > ended for name in self.files)
        return json.loads(self.record.read_text()) if is_clone and newest_build <= ended else {}

    def _modified(self, name):
        return (self.checkout / name).stat().st_mtime_ns

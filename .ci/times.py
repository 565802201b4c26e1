# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Gives files of a clean checkout the times that they had in the one before it.

Git gives every file the time of the checkout, and cargo compiles what is newer than its result. The list in .cache names
content (git's digest), time and path of all files and folders. What has the same content and path now gets its time
back, so cargo compiles only what has changed. Programs contain the path of the checkout, so another path begins anew.
"""

import json
import os
import pathlib
import subprocess

TIMES = pathlib.Path(".cache/times.json")


def lines(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], check=True, capture_output=True, text=True)
    return done.stdout.split("\0")[:-1]


def main() -> None:
    if lines("status", "--porcelain", "-z"):
        # The digests are those of the commit, not of the files that are compiled now.
        TIMES.unlink(missing_ok=True)
        return
    last = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    known = last.get(os.getcwd(), {})
    times = {}
    for entry in lines("ls-tree", "-r", "-t", "-z", "--format=%(objectname) %(path)", "HEAD"):
        path = entry.partition(" ")[2]
        if entry in known:
            os.utime(path, ns=(known[entry], known[entry]), follow_symlinks=False)
        times[entry] = os.stat(path, follow_symlinks=False).st_mtime_ns
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps({os.getcwd(): times}))


main()

"""Starts Chorus from its one file; the first start unpacks it.

The ``__main__`` of the file is this module with a call of ``start`` at its end. Each start runs it, so it imports as
little as it can.
"""

from __future__ import annotations

import os
import sys

_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C has ended, as shells have it."""


def start(name: str, made_for: str, extension: str) -> None:
    """Become the unpacked program ``name``, in the folder of the user's cache.

    ``extension`` is how the compiled libraries in the file end, and ``made_for`` says it in words.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(cache, "chorus", name)
    python = os.path.join(folder, "bin", "python")
    if not os.access(python, os.X_OK):
        from release.one_file_unpacking import unpack

        try:
            problem = unpack(sys.argv[0], folder, made_for, extension)
        except KeyboardInterrupt:
            sys.exit(_INTERRUPTED)
        if problem:
            sys.exit(problem)
    os.execv(python, [python, os.path.join(folder, "bin", "chorus"), *sys.argv[1:]])

"""The process: runs the command line and leaves at once with its exit code."""

from __future__ import annotations

import os
import sys

from chorus_cli.cli import main


def run() -> None:
    """Run ``chorus`` and exit; everything is closed by then, and tearing down litellm would take half a second."""
    code = main(sys.argv[1:], dict(os.environ))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue
    os._exit(code)


if __name__ == "__main__":
    run()

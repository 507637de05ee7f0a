"""The process: runs the command line, then exits at once with its code."""

from __future__ import annotations

import gc
import os
import signal
import sys

_OBJECTS_OF_A_START = 200_000


def run() -> None:
    """Run ``chorus`` and exit without Python's clean-up: all is closed by then, and cleaning up litellm takes 0.5 s."""
    ctrl_c = signal.getsignal(signal.SIGINT)
    if ctrl_c is not signal.SIG_IGN:
        # Until Chorus can catch Ctrl-C, the signal ends the process without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Imported modules stay; a search for garbage in them would take a tenth of the start-up time.
    gc.set_threshold(_OBJECTS_OF_A_START)
    from chorus_cli.cli import main

    signal.signal(signal.SIGINT, ctrl_c)
    code = main(sys.argv[1:], dict(os.environ))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue
    os._exit(code)


if __name__ == "__main__":
    run()

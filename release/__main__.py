"""Makes a release: ``python -m release VERSION [--dry-run]``.

It works in clones in a temporary folder. Its last two steps put the files into ``dist``, then commits and a tag into
the checkout; a release that fails before leaves both as they were, but for ``dist/release.log``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from release.checkout import Checkout
from release.making import Release
from release.running import ReleaseError

ROOT = Path(__file__).resolve().parents[1]
_LOG = "release.log"


def main(arguments: list[str]) -> int:
    """Make a release and return the exit code."""
    chosen = _parser().parse_args(arguments)
    made = ROOT / "dist"
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="chorus-release-") as temporary:
            release = Release(Checkout(ROOT), chosen.version, Path(temporary), made / chosen.version)
            for step, work in release.steps(dry=chosen.dry_run):
                print(f"== {step}", flush=True)
                if told := work():
                    print(told, flush=True)
    except ReleaseError as error:
        sentence = str(error)
        if error.output:
            made.mkdir(exist_ok=True)
            (made / _LOG).write_text(error.output + "\n", encoding="utf-8")
            sentence = f"{sentence.removesuffix('.')}. All of its output is in dist/{_LOG}."
        print(sentence, file=sys.stderr)
        return 1
    print(f"== {made / chosen.version}, in {time.monotonic() - began:.0f} s")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description="Make a release of Chorus.")
    parser.add_argument("version", metavar="VERSION", help="the new version, such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="make and try the files, without commit and tag")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The program of a local model's process: llama.cpp's server on a loopback port, until its standard input ends.

Loading a model would hold the lock of Python for seconds, and a crash of llama.cpp would end the chat. The program is
started by its path, imports nothing of Chorus, reads one line of JSON, the order, and writes one, the answer.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xllamacpp

_ERRORS_ONLY = 1


def main() -> None:
    """Serve until standard input ends: then Chorus has ended too, however it did."""
    order = json.loads(sys.stdin.readline())
    watching = threading.Thread(target=_end_with_input, daemon=True)
    watching.start()
    try:
        server = _server(order)
    except Exception as error:  # noqa: BLE001 - the only reader of its cause is the process that started this one
        sys.stdout.write(json.dumps({"error": str(error)}))
        return
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    # After this nobody reads what llama.cpp reports.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    watching.join()


def _end_with_input() -> None:
    """End this process when standard input ends, in the middle of loading or of a reply if need be."""
    while os.read(0, 1):
        pass
    os._exit(0)


def _server(order: dict[str, Any]) -> xllamacpp.Server:
    import xllamacpp  # its absence is part of the answer

    parameters = xllamacpp.CommonParams()
    parameters.model.path = order["file"]
    parameters.n_ctx = order["context_tokens"]
    parameters.api_keys = [order["key"]]
    # The threads wait for each other busily: with one for each core, any other busy program makes replies ten times
    # slower.
    threads = max(1, (os.cpu_count() or 1) // 2)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = _ERRORS_ONLY
    parameters.warmup = False
    parameters.ui = False
    parameters.endpoint_slots = False
    # Copies of earlier prompts would take up to eight gigabytes beside the one in use.
    parameters.cache_ram_mib = 0
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()

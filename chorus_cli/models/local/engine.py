"""The program of a local model's process: it runs llama.cpp's server on a loopback port until standard input ends.

Inside the chat's own process, loading a model would hold Python's lock for seconds, and a crash of llama.cpp would end
the chat. The program imports nothing of Chorus. It reads an order as one line of JSON, and writes its answer likewise.
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
    """Serve the model until standard input ends; that happens when Chorus ends, even if Chorus is killed."""
    order = json.loads(sys.stdin.readline())
    watching = threading.Thread(target=_end_with_input, daemon=True)
    watching.start()
    try:
        server = _server(order)
    except Exception as error:  # noqa: BLE001 - the process that started this one gets the cause
        sys.stdout.write(json.dumps({"error": str(error)}))
        return
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    # From here on nobody reads the messages of llama.cpp.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    watching.join()


def _end_with_input() -> None:
    """End this process when standard input ends, even while it loads the model or writes a reply."""
    while os.read(0, 1):
        pass
    os._exit(0)


def _server(order: dict[str, Any]) -> xllamacpp.Server:
    import xllamacpp  # if it is missing, the answer says so

    parameters = xllamacpp.CommonParams()
    parameters.model.path = order["file"]
    parameters.n_ctx = order["context_tokens"]
    parameters.api_keys = [order["key"]]
    # The threads keep their cores busy even while they wait for each other. With a thread for every core, another busy
    # program would make replies ten times slower.
    threads = max(1, (os.cpu_count() or 1) // 2)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = _ERRORS_ONLY
    parameters.warmup = False
    parameters.ui = False
    parameters.endpoint_slots = False
    # By default llama.cpp also keeps copies of earlier prompts, in up to eight gigabytes of memory.
    parameters.cache_ram_mib = 0
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()

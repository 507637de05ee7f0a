"""litellm is kept offline and quiet, however many threads import it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from chorus_cli.models.litellm import library


def test_litellm_is_kept_offline_but_its_log_level_is_the_users() -> None:
    environment = {"LITELLM_LOG": "DEBUG", "LITELLM_LOCAL_MODEL_COST_MAP": "False", "HF_HUB_OFFLINE": "0"}
    library.prepare_environment(environment)
    assert environment == {
        "LITELLM_LOG": "DEBUG",
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
        "HF_HUB_OFFLINE": "1",
    }


def test_nobody_who_leaves_waits_for_the_import() -> None:
    async def leave() -> None:
        loading = asyncio.create_task(library.load_beside())
        await asyncio.sleep(0)
        loading.cancel()
        await asyncio.wait({loading})
        assert loading.cancelled()

    with library._importing:
        asyncio.run(leave())
    assert asyncio.run(library.load_beside()) is library.load()


def test_two_threads_may_import_litellm_at_once_and_nothing_is_fetched_or_printed() -> None:
    program = (
        "import socket, sys, threading\n"
        "def refuse(*_): raise SystemExit('a connection was opened')\n"
        "socket.socket.connect = refuse\n"
        "from chorus_cli.models.providers.model_map import installation_folder\n"
        "from chorus_cli.models.litellm import client, library\n"
        "folder = installation_folder()\n"
        "assert 'litellm' not in sys.modules\n"
        "assert library.loaded() is None\n"
        "threads = [threading.Thread(target=library.warm) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "assert library.load().__file__ == str(folder / '__init__.py')\n"
        "assert library.load().suppress_debug_info\n"
        "assert library.loaded() is library.load()\n"
        "with library._importing: assert library.loaded() is None\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LITELLM_", "HF_"))}
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment
    )
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")

"""How much of the costly is tried: a part in the usual run, all of it in a run of the slow tests.

Over a server, which takes its time for each statement, few examples are tried, and what fails is not made smaller.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

from tests.storage.schemas import SERVER

USUAL, THOROUGH = "usual", "thorough"
_PER_CENT = {USUAL: 15, SERVER: 4, THOROUGH: 100}
_FEWEST = 10


def set_amount(*, is_thorough: bool) -> None:
    # What is slow is found out by the benchmarks: a machine that is busy for a moment proves nothing.
    checks = [*settings().suppress_health_check, HealthCheck.too_slow]
    for name, count in _PER_CENT.items():
        phases = (Phase.explicit, Phase.generate) if name == SERVER else tuple(Phase)
        chosen = settings(deadline=None, suppress_health_check=checks, max_examples=count, phases=phases)
        settings.register_profile(name, chosen)
    usual = SERVER if SERVER in os.environ else USUAL
    settings.load_profile(THOROUGH if is_thorough else usual)


def is_thorough() -> bool:
    return settings.get_current_profile_name() == THOROUGH


def examples(count: int) -> settings:
    """Return the settings of a test of so many examples, of which the usual run tries a part."""
    most = settings().max_examples
    return settings(max_examples=max(min(_FEWEST, most), count * most // 100))

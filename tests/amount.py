"""How much of the costly is tried: a part in the usual run, all of it in a run of the slow tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

USUAL, THOROUGH = "usual", "thorough"
_PER_CENT = {USUAL: 15, THOROUGH: 100}


def set_amount(marked: str) -> None:
    """Take the amount that an expression of pytest's ``-m`` asks for: all, unless it leaves the slow tests out."""
    # What is slow is found out by the benchmarks: a machine that is busy for a moment proves nothing.
    checks = [*settings().suppress_health_check, HealthCheck.too_slow]
    for name, count in _PER_CENT.items():
        settings.register_profile(name, settings(deadline=None, suppress_health_check=checks, max_examples=count))
    settings.load_profile(USUAL if "not slow" in marked else THOROUGH)


def is_thorough() -> bool:
    return settings.get_current_profile_name() == THOROUGH


def examples(count: int) -> settings:
    """Return the settings of a test of so many examples, of which the usual run tries a part."""
    return settings(max_examples=max(10, count * settings().max_examples // 100))

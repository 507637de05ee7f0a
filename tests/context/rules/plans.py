"""The plan of a request as a turn makes it."""

from __future__ import annotations

from collections.abc import Callable

from chorus_cli.context.rules.plan import RequestPlan, plan_fitting, plan_whole
from chorus_cli.context.rules.view import ContextSnapshot


def plan_request(snapshot: ContextSnapshot, count: Callable[[str], int]) -> RequestPlan:
    """Plan the request of a snapshot whole, or else so that it fits."""
    return plan_whole(snapshot) or plan_fitting(snapshot, count)

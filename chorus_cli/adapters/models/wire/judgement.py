"""The sentences for failures of the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chorus_cli.adapters.models.failures import Failure, Trouble
from chorus_cli.adapters.models.litellm import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chorus_cli.core.errors import ModelError


class _FailedRequestError(Exception):
    """A failed request, with the attributes of an error of litellm."""

    def __init__(self, failure: Failure) -> None:
        super().__init__("no key is set" if failure.trouble is Trouble.NO_KEY else failure.words)
        self.status_code = 500 if failure.trouble is Trouble.INVALID_RESPONSE else failure.status
        self.body = failure.body
        self.headers = failure.headers
        self.is_pre_first_chunk = failure.trouble is not Trouble.BROKE_OFF


class HTTPStatusError(_FailedRequestError):
    """An answer of the provider."""


class _LostError(_FailedRequestError, OSError):
    """No connection, or a lost one."""


class _UnansweredError(_FailedRequestError, TimeoutError):
    """No answer in time."""


_CLASSES = {None: HTTPStatusError, Trouble.UNREACHABLE: _LostError, Trouble.UNANSWERED: _UnansweredError}


def model_error(failure: Failure, model: str, secrets: Sequence[str], *, address: str = "") -> ModelError:
    """Return the sentences for ``failure`` of a request to ``model`` at ``address``, without any of ``secrets``."""
    kind = _CLASSES.get(failure.trouble, _FailedRequestError)
    return errors.model_error(kind(failure), model, secrets, address=address)

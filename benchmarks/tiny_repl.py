"""The smallest useful prompt, the reference for the start of Chorus."""

from __future__ import annotations

from prompt_toolkit import PromptSession


def talk() -> None:
    """Repeat every line until Ctrl-D."""
    session: PromptSession[str] = PromptSession()
    while True:
        try:
            print(session.prompt("\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} "))
        except EOFError:
            return


if __name__ == "__main__":
    talk()

"""The clipboard, by scripted tools and by a terminal that is a string."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest

from chorus_cli.core import limits
from chorus_cli.core.errors import AttachmentError, OutputError
from chorus_cli.machine.clipboard import LARGEST_SEQUENCE_BYTES, Clipboard

OSC_52 = "by your terminal, if it allows that (OSC 52)"


class Screen(io.StringIO):
    """A terminal that keeps its output."""

    def isatty(self) -> bool:
        return True


def tool(folder: Path, name: str, *, code: int = 0) -> None:
    """Make a clipboard tool that keeps its input and its arguments and, like the real ones, stays behind."""
    script = folder / name
    script.write_text(
        f'#!/bin/sh\necho "$@" >"{folder}/{name}.arguments"\n/bin/cat >"{folder}/{name}.text"\n'
        f"(/bin/sleep 2) &\nexit {code}\n"
    )
    script.chmod(0o700)


def written(text: str) -> str:
    return f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x1b\\"


def test_a_terminal_is_given_the_text_in_base64_only(tmp_path: Path) -> None:
    screen, text = Screen(), "naïve \x1b]52;c;AAAA\x07 \x1b[2J 東京\n"
    assert Clipboard({"PATH": str(tmp_path), "TERM": "xterm"}, screen).copy(text) == OSC_52
    assert screen.getvalue() == written(text)


@pytest.mark.parametrize(
    ("name", "variables", "arguments"),
    [
        *(("pbcopy", {}, ""), ("wl-copy", {"WAYLAND_DISPLAY": "wayland-0"}, "")),
        *(("xclip", {"DISPLAY": ":0"}, "-selection clipboard"), ("xsel", {"DISPLAY": ":0"}, "--clipboard --input")),
        ("tmux", {"TMUX": "socket,1,0"}, "load-buffer -w -"),
    ],
)
def test_a_tool_is_given_the_text_where_it_has_a_clipboard(
    tmp_path: Path, name: str, variables: dict[str, str], arguments: str
) -> None:
    tool(tmp_path, name)
    assert Clipboard({"PATH": str(tmp_path), **variables}, None).copy("naïve\n") == f"by {name}"
    assert (tmp_path / f"{name}.text").read_text(encoding="utf-8") == "naïve\n"
    assert (tmp_path / f"{name}.arguments").read_text().strip() == arguments


@pytest.mark.parametrize("name", ["wl-copy", "xclip", "xsel", "tmux"])
def test_a_tool_without_its_display_is_left_alone(tmp_path: Path, name: str) -> None:
    tool(tmp_path, name)
    with pytest.raises(OutputError, match="There is no clipboard here"):
        Clipboard({"PATH": str(tmp_path)}, io.StringIO()).copy("text")
    assert not (tmp_path / f"{name}.text").exists()


def test_the_first_tool_that_takes_it_is_enough_and_the_terminal_is_offered_it_too(tmp_path: Path) -> None:
    tool(tmp_path, "wl-copy", code=1)
    for name in ("xclip", "xsel", "tmux"):
        tool(tmp_path, name)
    variables = {"WAYLAND_DISPLAY": "w", "DISPLAY": ":0", "TMUX": "t", "TERM": "tmux"}
    screen = Screen()
    ways = Clipboard({"PATH": str(tmp_path), **variables}, screen).copy("text")
    assert ways == f"by xclip and by tmux and {OSC_52}"
    assert not (tmp_path / "xsel.text").exists()
    assert screen.getvalue() == written("text")


def test_over_ssh_the_far_desktop_is_left_alone(tmp_path: Path) -> None:
    tool(tmp_path, "pbcopy")
    assert Clipboard({"PATH": str(tmp_path), "SSH_TTY": "/dev/pts/1"}, Screen()).copy("text") == OSC_52


@pytest.mark.parametrize(("terminal", "variables"), [(io.StringIO(), {}), (None, {}), (Screen(), {"TERM": "dumb"})])
def test_no_sequence_goes_to_what_is_no_terminal(
    tmp_path: Path, terminal: io.StringIO | None, variables: dict[str, str]
) -> None:
    with pytest.raises(OutputError, match="There is no clipboard here"):
        Clipboard({"PATH": str(tmp_path), **variables}, terminal).copy("text")
    assert terminal is None or terminal.getvalue() == ""


def test_what_is_too_long_for_a_terminal_is_not_offered_to_it(tmp_path: Path) -> None:
    screen = Screen()
    with pytest.raises(OutputError, match=r"too long for the terminal's clipboard \(100,000 bytes\)"):
        Clipboard({"PATH": str(tmp_path)}, screen).copy("x" * LARGEST_SEQUENCE_BYTES)
    tool(tmp_path, "pbcopy")
    assert Clipboard({"PATH": str(tmp_path)}, screen).copy("x" * LARGEST_SEQUENCE_BYTES) == "by pbcopy"
    assert screen.getvalue() == ""


def test_a_tool_that_cannot_be_run_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "pbcopy").write_text("no program")
    (tmp_path / "pbcopy").chmod(0o700)
    assert Clipboard({"PATH": str(tmp_path)}, Screen()).copy("text") == OSC_52


# Pictures


def pasting_tool(folder: Path, name: str, *, code: int = 0, prints: str = "a picture") -> None:
    """Make a tool that prints ``prints`` if it is asked for a picture."""
    script = folder / name
    script.write_text(f'#!/bin/sh\ncase "$*" in *image/png*|-) printf %s "{prints}";; *) exit 9;; esac\nexit {code}\n')
    script.chmod(0o700)


@pytest.mark.parametrize(
    ("name", "variables"),
    [("pngpaste", {}), ("wl-paste", {"WAYLAND_DISPLAY": "wayland-0"}), ("xclip", {"DISPLAY": ":0"})],
)
def test_a_picture_is_read_by_the_tool_of_the_desktop(tmp_path: Path, name: str, variables: dict[str, str]) -> None:
    pasting_tool(tmp_path, name)
    assert Clipboard({"PATH": str(tmp_path), **variables}, None).picture() == b"a picture"


@pytest.mark.parametrize(("code", "prints"), [(1, "a picture"), (0, "")])
def test_a_clipboard_without_a_picture_is_told(tmp_path: Path, code: int, prints: str) -> None:
    pasting_tool(tmp_path, "xclip", code=code, prints=prints)
    with pytest.raises(AttachmentError, match=r"^There is no picture in the clipboard\.$"):
        Clipboard({"PATH": str(tmp_path), "DISPLAY": ":0"}, None).picture()


def test_a_machine_without_a_tool_for_pictures_is_told(tmp_path: Path) -> None:
    pasting_tool(tmp_path, "xclip")
    with pytest.raises(AttachmentError, match="neither wl-paste nor xclip nor pngpaste works here"):
        Clipboard({"PATH": str(tmp_path)}, None).picture()


def test_a_picture_without_an_end_is_read_no_further_than_an_attachment_may_be(tmp_path: Path) -> None:
    script = tmp_path / "xclip"
    script.write_text("#!/bin/sh\nexec /bin/cat /dev/zero\n")
    script.chmod(0o700)
    picture = Clipboard({"PATH": str(tmp_path), "DISPLAY": ":0"}, None).picture()
    assert len(picture) == limits.ATTACHMENT.most + 1


def test_tools_get_no_secrets(tmp_path: Path) -> None:
    for name, variables in (("xclip", {"DISPLAY": ":0"}), ("tmux", {"TMUX": "socket,1,0"})):
        (tmp_path / name).write_text(f"#!/bin/sh\n/usr/bin/env >>{tmp_path}/passed\n")
        (tmp_path / name).chmod(0o700)
        environment = {"PATH": str(tmp_path), "DEPLOY_TOKEN": "canary", "NOTE": "gsk_canary0123456789", **variables}
        Clipboard(environment, None).copy("text")
    assert "PATH=" in (tmp_path / "passed").read_text()
    assert "canary" not in (tmp_path / "passed").read_text()

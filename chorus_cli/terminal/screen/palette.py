"""Styles of Markdown and code: weights, lines and a few palette colours, on the terminal's own background.

Red, blue and magenta are readable on dark and light backgrounds; cyan, yellow, white and all bright colours are faint
on one of them, and RGB colours ignore the background.
"""

from __future__ import annotations

# pygments has no types.
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String  # type: ignore[import-untyped]
from rich.style import Style
from rich.syntax import ANSISyntaxTheme
from rich.theme import Theme

MARKDOWN = Theme(
    {
        "markdown.code": "magenta",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.list": "none",
        "markdown.item.number": "bold",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold blue underline",
        "markdown.h3": "bold blue",
        "markdown.h4": "italic blue",
        "markdown.link": "blue",
        "markdown.link_url": "underline blue",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "markdown.kbd": "reverse",
    }
)

CODE = ANSISyntaxTheme(
    {
        kind: Style.parse(style)
        for kind, style in {
            Comment: "dim italic",
            Keyword: "bold blue",
            Operator.Word: "bold blue",
            Name.Function: "bold",
            Name.Class: "bold",
            Name.Tag: "blue",
            Name.Attribute: "magenta",
            Name.Decorator: "magenta",
            Name.Builtin: "blue",
            Name.Exception: "blue",
            Number: "magenta",
            String: "magenta",
            Generic.Heading: "bold",
            Generic.Subheading: "bold",
            Generic.Prompt: "bold",
            Generic.Inserted: "blue",
            Generic.Deleted: "red",
            Generic.Error: "red",
            Generic.Emph: "italic",
            Generic.Strong: "bold",
        }.items()
    }
)

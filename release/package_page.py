"""The page of the package and its links, from ``docs/package.md`` and the address of the repository."""

from __future__ import annotations

import re

_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https:)([^)]+)\)\n*")


def package_page(text: str, repository: str, version: str) -> str:
    """Return the page with whole addresses of pictures and links; without a repository it has neither."""

    def whole(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        rest = found[0][found[0].rindex(")") + 1 :]
        if not repository:
            return "" if picture else f"{words}{rest}"
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({repository}/{kind}/v{version}/docs/{target}){rest}"

    return _RELATIVE.sub(whole, text)


def project_urls(repository: str, version: str) -> dict[str, str]:
    """Return the links beside the page of the package."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }

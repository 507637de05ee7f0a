"""Every table of the log and every place of a home is on the list of stores, or known to have no words."""

from __future__ import annotations

from contextlib import closing

from chorus_cli.machine.paths import paths
from chorus_cli.stores import listing
from tests.storage.database import database


def test_every_table_is_on_the_list_once() -> None:
    with closing(database()) as connection:
        found = connection.execute("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow'")
        tables = {name for (name,) in found} - {"sqlite_schema"}
    listed = {each.table for each in listing.ROWS}
    assert tables - listed - listing.FOLLOWING.keys() - listing.WORDLESS == set()
    assert not listed & listing.FOLLOWING.keys()
    assert not (listed | listing.FOLLOWING.keys()) & listing.WORDLESS


def test_every_place_of_a_home_is_on_the_list_once() -> None:
    places = {name for name, _ in paths({}, "/home/of/nobody").listing()}
    assert places == listing.FOLDERS.keys() | listing.WORDLESS_FOLDERS
    assert not listing.FOLDERS.keys() & listing.WORDLESS_FOLDERS

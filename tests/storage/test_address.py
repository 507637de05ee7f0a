"""The address of a log on a server: what is one, and what of it is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chorus_cli.core.errors import SettingsError
from chorus_cli.storage.postgres.address import checked, digest, named, refuse_password, without_password

WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://host/chorus", "host/chorus"),
        ("postgres://sam@host:5433/chorus", "host:5433/chorus"),
        ("postgresql://sam:s3cret%40@host/chorus?sslmode=require", "host/chorus"),
        ("postgresql://[::1]:5432/chorus", "[::1]:5432/chorus"),
        ("postgresql://one:1,two:2/chorus", "one:1,two:2/chorus"),
        ("postgresql:///chorus?host=/run/postgresql", "/run/postgresql/chorus"),
        ("postgresql://?service=home", "home"),
        ("postgresql://", "this machine"),
    ],
)
def test_an_address_is_taken_and_named_by_host_and_database(url: str, name: str) -> None:
    assert checked(url, "log") == url
    assert named(url) == name


@pytest.mark.parametrize(
    "text",
    [
        *("", "chorus", "mysql://host/chorus", "host=localhost dbname=chorus", "postgresql:/host", "POSTGRESQL://host"),
        *("postgresql://sam:pass/word@host/chorus", "postgresql://sam:p@ss@host/chorus", "postgresql://host:x/chorus"),
    ],
)
def test_any_other_text_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        checked(text, "CHORUS_LOG")
    assert str(refusal.value) == (
        'CHORUS_LOG must be "local" or the address of a PostgreSQL server, such as postgresql://host/chorus. '
        "In a name or a password, write @ as %40, / as %2F, : as %3A and ? as %3F."
    )


def test_local_is_no_address() -> None:
    assert not checked("local", "log")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://sam:s3cret@host/chorus", "postgresql://sam@host/chorus"),
        ("postgresql://host/chorus?password=s3cret", "postgresql://host/chorus"),
        ("postgresql://a:s3cret@host/c?sslpassword=s3cret&port=1", "postgresql://a@host/c?port=1"),
    ],
)
def test_a_password_is_not_shown_and_a_file_may_not_have_one(url: str, shown: str) -> None:
    assert without_password(url) == shown
    with pytest.raises(SettingsError) as refusal:
        refuse_password(url, "config.jsonc:1")
    assert str(refusal.value) == (
        "config.jsonc:1 has a password, but Chorus reads no password from settings. "
        "Put it into ~/.pgpass, into the service that PGSERVICE names, or into PGPASSWORD."
    )


@pytest.mark.parametrize(
    "url", ["postgresql://sam@host/chorus?options=-c%20a%3Db", "postgresql:///c?sslmode=require&host=x"]
)
def test_an_address_without_a_password_stays_as_it_is(url: str) -> None:
    assert without_password(url) == url
    refuse_password(url, "config.jsonc:1")


@given(WORDS, WORDS, WORDS, WORDS)
def test_no_name_has_a_password(user: str, password: str, host: str, database: str) -> None:
    url = f"postgresql://{user}:=={password}@{host}/{database}?password=%3D%3D{password}"
    assert f"=={password}" not in named(url) + without_password(url) + digest(url)


def test_two_spellings_of_one_log_have_one_file_beside_and_two_logs_have_two() -> None:
    plain = digest("postgresql://host/chorus")
    same = ("postgres://host/chorus", "postgresql://sam:x@HOST:5432/chorus", "postgresql://host/chorus?sslmode=require")
    others = (
        "postgresql://host:5433/chorus",
        "postgresql://host/other",
        "postgresql://host/chorus?options=-csearch_path%3Da",
    )
    assert {digest(url) for url in same} == {plain}
    assert len({plain, *(digest(url) for url in others)}) == 4

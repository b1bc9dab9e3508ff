"""Jars are fetched once; a machine that cannot is told what it missed, and what to do works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from catchment.engines.spark.jars import Wanted, bundled, fetch
from catchment.errors import PeerError

WANTED = [Wanted("org.slf4j", "slf4j-simple", "[1.0,1.7.36]", ("org.slf4j:slf4j-api",))]
# Nothing listens there.
OFFLINE = {"JAVA_TOOL_OPTIONS": "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9 -Dhttp.proxyHost=127.0.0.1"}


def test_offline_it_says_what_is_missing_and_a_copied_directory_is_enough(tmp_path: Path) -> None:
    directory = tmp_path / "cache" / "jars"
    environment = {**os.environ, **OFFLINE, "HOME": str(tmp_path)}
    with pytest.raises(PeerError, match="E205") as refused:
        fetch("a logger", WANTED, directory, environment)
    assert "slf4j-simple" in refused.value.why
    assert str(directory) in refused.value.fix
    assert list(directory.parent.iterdir()) == [], "nothing half-fetched stays"
    directory.mkdir()
    (directory / "slf4j-simple-1.7.36.jar").touch()
    assert [jar.name for jar in fetch("a logger", WANTED, directory, environment)] == ["slf4j-simple-1.7.36.jar"]


def test_the_users_own_settings_say_where_from(tmp_path: Path) -> None:
    own = tmp_path / "own" / "org.slf4j" / "slf4j-simple"
    own.mkdir(parents=True)
    (own / "slf4j-simple-1.7.36.jar").write_bytes(b"mine")
    (tmp_path / ".ivy2").mkdir()
    (tmp_path / ".ivy2" / "ivysettings.xml").write_text(
        '<ivysettings><settings defaultResolver="own"/><resolvers><filesystem name="own">'
        f'<artifact pattern="{tmp_path}/own/[organisation]/[module]/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    environment = {**os.environ, **OFFLINE, "HOME": str(tmp_path)}
    (jar,) = fetch("a logger", WANTED, tmp_path / "jars", environment)
    assert jar.read_bytes() == b"mine"


def test_what_spark_brings_is_known_by_its_name() -> None:
    scala, _, release = bundled("spark-sql_").partition("-")
    assert (scala.count("."), release.count(".")) == (1, 2)

"""What the tests share: connections with sdcduck, and the reference data of the established packages."""

from __future__ import annotations

import gc
import inspect
import os
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import effort  # noqa: F401 - before NumPy comes
import pytest
from compiled_once import wait_for_each_other
from effort import OF_NO_DATABASE, OF_NUMBERS, OLDER, in_turn, of_no_database, times
from hypothesis import settings
from one_database import OneDatabase, leaves_what_is_not_seen

import sdcduck

# The same examples in each run, so that what lands is what was tried; `make fuzz` draws others. No deadline: a busy
# machine is no fault of an example. As they are the same, each run finds what the first one found with them: so there are
# fewer where a test says nothing else, and as many as Hypothesis has in `make fuzz` and `make test-long`.
settings.register_profile("same", deadline=None, derandomize=True, database=None, max_examples=times(50, 100, older=20))
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("SDCDUCK_EXAMPLES", "same"))

gc.disable()  # until all tests are collected, which leaves no garbage but looking for it takes a fifth of the time
_TESTS = Path(__file__).resolve().parent
wait_for_each_other()


def _asked_by_name(config: pytest.Config) -> set[Path]:
    """The files that were named, or tests in them."""
    named = {Path(config.invocation_params.dir, argument.split("::")[0]).resolve() for argument in config.args}
    return {path for path in named if path.is_file()}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is the same on every DuckDB, with one that is not the newest; not where it is asked for by name."""
    if not OLDER or collection_path in _asked_by_name(config):
        return None
    return f"tests/{collection_path.relative_to(_TESTS).as_posix()}" in OF_NO_DATABASE | OF_NUMBERS or None


_LONGEST = frozenset(
    f"tests/{name}"
    for name in [
        "attacks/test_suppression_audit.py", "attacks/test_twins.py", "gateway/test_bad_days.py", "synthesis/test_comparison.py",
        "test_demo.py", "test_docs.py", "test_ending.py", "test_examples.py",
    ]
)  # fmt: skip
"""Modules with tests that take many seconds each, of a processor or of waiting."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests, and leave out what an older DuckDB need not run (`effort`), but for files that are asked for by name.

    Where several workers share all tests, long ones come first: at the end each would wait for whoever has such a one.
    """
    if hasattr(config, "workerinput") and "SDCDUCK_SECONDS" not in os.environ:
        items.sort(key=lambda item: item.nodeid.split("::")[0] not in _LONGEST)
    if not OLDER:
        return
    named = _asked_by_name(config)
    asked = [item for item in items if item.path not in named]
    kept = in_turn(
        item.nodeid for item in asked if not item.get_closest_marker("newest") and not of_no_database(item.nodeid)
    )
    left_out = [item for item in asked if item.nodeid not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def pytest_collection_finish() -> None:
    """Spare the collector of garbage what stays to the end anyway: the tests themselves, and all modules.

    It would go through their million objects again and again. What the tests leave behind is found all the same.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


_STARTED, _SECONDS = time.monotonic(), float(os.environ.get("SDCDUCK_SECONDS", "inf"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Start no more tests after so many seconds."""
    if time.monotonic() - _STARTED > _SECONDS:
        pytest.skip(f"none is started after {_SECONDS:.0f} seconds")


SECRET = "the secret of the tests"
_SHARED = Path(os.environ.get("SDCDUCK_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="module")
def one_database() -> Iterator[OneDatabase]:
    """What `con` takes its database from."""
    one = OneDatabase(SECRET)
    yield one
    one.close()


@pytest.fixture
def con(request: pytest.FixtureRequest, one_database: OneDatabase) -> Iterator[duckdb.DuckDBPyConnection]:
    """An in-memory database with the SQL functions, and nothing else."""
    if not leaves_what_is_not_seen(inspect.getsource(request.module)):
        yield one_database.emptied()
    else:
        with sdcduck.connect(secret=SECRET) as connection:
            yield connection


@pytest.fixture(scope="module")
def lasting() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same for all tests of a module and all examples of a property, which make their tables anew."""
    with sdcduck.connect(secret=SECRET) as connection:
        yield connection


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """The folder with reference inputs and outputs; tests that need it are skipped where it is absent."""
    folder = _SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"no reference data of the R packages at {folder}")
    return folder


@pytest.fixture(scope="module")
def adult_halves() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with Adult (UCI) as split by Platzer and Reutterer: ``trn`` and ``val``, 24,421 records each."""
    with sdcduck.connect() as connection:
        for half in ("trn", "val"):
            connection.execute(
                f"CREATE TABLE {half} AS SELECT * EXCLUDE (half) FROM '{_TESTS}/data/adult.parquet' WHERE half = '{half}'"
            )
        yield connection

"""The settings of a session that clients may see and change; none of them reaches the database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

VERSION = "15.0"
VERSION_NUMBER = "150000"
VERSION_TEXT = f"PostgreSQL {VERSION} (sdcduck: statistical disclosure control over DuckDB)"


class BadSetting(Exception):
    """A setting that is not there or cannot have this value.

    Attributes:
        code: SQLSTATE.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


NOISE = "sdcduck.noise"
"""Whether a notice beside each answer says what its numbers are worth."""

_FIXED = {
    "server_version": VERSION, "server_version_num": VERSION_NUMBER, "server_encoding": "UTF8",
    "integer_datetimes": "on", "is_superuser": "off", "in_hot_standby": "off", "max_identifier_length": "63",
    "max_index_keys": "32", "lc_collate": "C", "lc_ctype": "C", "block_size": "8192", "session_authorization": "",
    "wal_level": "replica",
    "default_table_access_method": "heap", "default_tablespace": "", "data_directory_mode": "0700", "ssl": "on",
    "password_encryption": "scram-sha-256", "lc_messages": "C", "lc_monetary": "C", "lc_numeric": "C", "lc_time": "C",
}  # fmt: skip
_CHANGEABLE = {
    "application_name": "", "client_encoding": "UTF8", "client_min_messages": "notice", "datestyle": "ISO, MDY",
    "timezone": "UTC", "extra_float_digits": "1", "intervalstyle": "postgres", "bytea_output": "hex",
    "standard_conforming_strings": "on", "statement_timeout": "0", "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0", "search_path": '"$user", public', "default_transaction_isolation":
    "read committed", "transaction_isolation": "read committed", "default_transaction_read_only": "on",
    "transaction_read_only": "on", "row_security": "on", "jit": "off", "geqo": "on", "xmloption": "content",
    "synchronous_commit": "on", "synchronize_seqscans": "on", "escape_string_warning": "on",
    "default_transaction_deferrable": "off", "transaction_deferrable": "off", "enable_seqscan": "on", "role": "none",
    "quote_all_identifiers": "off", "work_mem": "4MB", "cursor_tuple_fraction": "0.1", "from_collapse_limit": "8",
    "ssl_renegotiation_limit": "0", NOISE: "off",
}  # fmt: skip
_REPORTED = {
    "server_version": "server_version", "server_encoding": "server_encoding", "client_encoding": "client_encoding",
    "application_name": "application_name", "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby", "is_superuser": "is_superuser",
    "session_authorization": "session_authorization", "datestyle": "DateStyle", "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone", "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings",
}  # fmt: skip
_ON, _OFF = frozenset(["on", "true", "1", "yes"]), frozenset(["off", "false", "0", "no"])
_MILLISECONDS = re.compile(r"(\d+)\s*(ms|s|min|h|)")
_UNITS = {"": 1, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}


def _utf8(value: str) -> str:
    if value.lower().replace("-", "").replace("_", "") not in ("utf8", "unicode", "sqlascii"):
        raise ValueError("UTF8")
    return "UTF8"


def _iso(value: str) -> str:
    if "iso" not in value.lower():
        raise ValueError("ISO")
    return "ISO, " + ("DMY" if "dmy" in value.lower() else "YMD" if "ymd" in value.lower() else "MDY")


def _on(value: str) -> str:
    if value.lower() not in _ON:
        raise ValueError("on")
    return "on"


def _on_or_off(value: str) -> str:
    if value.lower() not in _ON | _OFF:
        raise ValueError("on or off")
    return "on" if value.lower() in _ON else "off"


def _only(wanted: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value.lower() != wanted:
            raise ValueError(wanted)
        return wanted

    return check


def _duration(value: str) -> str:
    found = _MILLISECONDS.fullmatch(value.strip().lower())
    if found is None:
        raise ValueError("milliseconds")
    return str(int(found[1]) * _UNITS[found[2]])


_CHECKS: Mapping[str, Callable[[str], str]] = {
    "client_encoding": _utf8, "datestyle": _iso, "standard_conforming_strings": _on, "intervalstyle": _only("postgres"),
    "bytea_output": _only("hex"), "statement_timeout": _duration, "default_transaction_read_only": _on,
    "transaction_read_only": _on, NOISE: _on_or_off,
}  # fmt: skip
_LONGEST = 200


class Settings:
    """The settings of one session.

    >>> settings = Settings("ann")
    >>> settings.set("DateStyle", "iso, dmy")
    >>> settings.show("datestyle")
    'ISO, DMY'
    """

    def __init__(self, user: str) -> None:
        self._first: dict[str, str] = {**_CHANGEABLE, **_FIXED, "session_authorization": user}
        self._now = dict(self._first)

    def set(self, name: str, value: str | None) -> None:
        """Give a setting a value; None: the one that it had when the session began.

        Raises:
            BadSetting: it cannot have it.
        """
        key = name.lower()
        if key == "all" and value is None:
            self._now = dict(self._first)
            return
        if key in _FIXED:
            raise BadSetting("55P02", f'parameter "{key}" cannot be changed')
        if key not in _CHANGEABLE:
            raise BadSetting("42704", f'unrecognized configuration parameter "{key[:63]}"')
        try:
            self._now[key] = self._first[key] if value is None else _CHECKS.get(key, str)(value[:_LONGEST])
        except ValueError as wanted:
            raise BadSetting("22023", f'parameter "{key}" can only be {wanted} here') from None

    def begin(self) -> None:
        """What is set now is what RESET goes back to."""
        self._first = dict(self._now)

    def show(self, name: str) -> str:
        """The value of a setting.

        Raises:
            BadSetting: there is none of the name.
        """
        if name.lower() not in self._now:
            raise BadSetting("42704", f'unrecognized configuration parameter "{name[:63]}"')
        return self._now[name.lower()]

    def all(self) -> list[tuple[str, str]]:
        """All settings, by name."""
        return sorted(self._now.items())

    def reported(self) -> Iterator[tuple[str, str]]:
        """Those that clients are told of, with their names as clients know them."""
        for key, name in _REPORTED.items():
            yield name, self._now[key]

    def statement_seconds(self) -> float | None:
        """How long the client lets a statement run."""
        milliseconds = int(self._now["statement_timeout"])
        return milliseconds / 1000 if milliseconds else None

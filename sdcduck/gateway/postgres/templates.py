"""Templates of PostgreSQL's ``to_char``, ``to_timestamp`` and ``to_date``, for what means the same in DuckDB.

sqlglot lets through what it does not know, so that ``'Mon'`` would print ``Mon``. Here a template is read as PostgreSQL
reads it, the longest pattern first, and what is not on the list makes the whole template one that is not known.
"""

from __future__ import annotations

import re
from datetime import datetime

_NUMBERS = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "DDD": "%j", "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M",
    "SS": "%S", "MS": "%g", "US": "%f", "IYYY": "%G", "IW": "%V", "ID": "%u", "FMMM": "%-m", "FMDD": "%-d",
    "FMDDD": "%-j", "FMHH24": "%-H", "FMHH12": "%-I", "FMHH": "%-I", "FMMI": "%-M", "FMSS": "%-S",
}  # fmt: skip
_WORDS = {
    "AM": "%p", "PM": "%p", "Mon": "%b", "Dy": "%a", "FMMon": "%b", "FMDy": "%a", "FMMonth": "%B", "FMDay": "%A",
}  # fmt: skip
_WRITTEN = _WORDS | _NUMBERS | {pattern.lower(): sign for pattern, sign in _NUMBERS.items()}
"""Pattern: what ``strftime`` writes for it. Words are as they are written: ``MON`` and ``mon`` are other texts."""

_READ = {
    "YYYY": r"(?P<year>\d{4})", "MM": r"(?P<month>\d{2})", "DD": r"(?P<day>\d{2})", "HH24": r"(?P<hour>\d{2})",
    "HH12": r"(?P<half>\d{2})", "HH": r"(?P<half>\d{2})", "MI": r"(?P<minute>\d{2})", "SS": r"(?P<second>\d{2})",
    "MS": r"(?P<fraction>\d{3})", "US": r"(?P<fraction>\d{6})", "AM": "(?P<noon>AM|PM)", "PM": "(?P<noon>AM|PM)",
}  # fmt: skip
_LONGER = (
    "SSSSS",
    "SSSS",
    "FMSSSSS",
    "FMSSSS",
    "IDDD",
    "Month",
    "Day",
)  # patterns that begin with one that is known, and mean another thing
_PART = re.compile(
    rf"(?P<pattern>{'|'.join(sorted({*_WRITTEN, *_LONGER, *map(str.lower, _LONGER)}, key=len, reverse=True))})"
    r"|\"(?P<text>[^\"\\]*)\"|(?P<sign>[ \-/.,:;_()])"
)


def _parts(template: str) -> list[tuple[str, bool]] | None:
    """Patterns, and texts between them; None: something is neither."""
    parts, place = [], 0
    while place < len(template):
        found = _PART.match(template, place)
        if found is None:
            return None
        pattern = found["pattern"]
        parts.append((pattern or found["text"] or found["sign"] or "", pattern is not None))
        place = found.end()
    return parts or None


def written(template: str) -> str | None:
    """The format of ``strftime`` that writes what ``to_char`` writes; None: there is none.

    >>> written('YYYY-MM-DD"T"HH24:MI'), written("FMDay, DD Mon"), written("Day"), written("DDth")
    ('%Y-%m-%dT%H:%M', '%A, %d %b', None, None)
    """
    parts = _parts(template)
    if parts is None or any(is_pattern and part not in _WRITTEN for part, is_pattern in parts):
        return None
    return "".join(_WRITTEN[part] if is_pattern else part.replace("%", "%%") for part, is_pattern in parts)


def _for_reading(template: str) -> list[tuple[str, bool]] | None:
    """The parts of a template with which a text is a moment in one way only."""
    parts = _parts(template)
    if parts is None:
        return None
    patterns = [part.upper() for part, is_pattern in parts if is_pattern]
    if not all(pattern in _READ for pattern in patterns):
        return None
    groups = [_READ[pattern][4:8] for pattern in patterns]
    once = len(set(groups)) == len(groups) and not {"hour", "half"} <= {*groups}
    return parts if once and "year" in groups and ("half" in groups) == ("noon" in groups) else None


def read_format(template: str) -> str | None:
    """The format of ``strptime`` that reads what ``to_timestamp`` reads; None: there is none.

    >>> read_format("YYYY-MM-DD HH12:MI PM"), read_format("YYYY-MM-DD HH12:MI"), read_format("YY")
    ('%Y-%m-%d %I:%M %p', None, None)
    """
    parts = _for_reading(template)
    if parts is None:
        return None
    return "".join(_WRITTEN[part.upper()] if is_pattern else part.replace("%", "%%") for part, is_pattern in parts)


def moment(text: str, template: str) -> datetime | None:
    """The moment that a text is by a template; None: it is not written as the template says.

    >>> moment("2024-05-01 01:30 pm", "YYYY-MM-DD HH12:MI AM")
    datetime.datetime(2024, 5, 1, 13, 30)
    """
    parts = _for_reading(template)
    if parts is None:
        return None
    pattern = "".join(_READ[part.upper()] if is_pattern else re.escape(part) for part, is_pattern in parts)
    found = re.fullmatch(pattern, text, re.ASCII | re.I)
    if found is None:
        return None
    parsed = found.groupdict()
    hour = int(parsed.get("hour", "0"))
    if "half" in parsed:
        half = int(parsed["half"])
        if not 1 <= half <= 12:
            return None
        hour = half % 12 + 12 * (parsed["noon"].upper() == "PM")
    number = {name: int(digits) for name, digits in parsed.items() if digits.isdecimal()}
    fraction = int(parsed.get("fraction", "0").ljust(6, "0"))
    day = number["year"], number.get("month", 1), number.get("day", 1)
    try:
        return datetime(*day, hour, number.get("minute", 0), number.get("second", 0), fraction)
    except ValueError:
        return None

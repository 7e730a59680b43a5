"""Records and batches of tau-Argus: the planners of ``sdc_read_asc`` and ``sdc_read_arb``."""

from __future__ import annotations

import json
import re

import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.registry import Rows, Session
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.hierarchy.levels import in_line, lines_of, metadata_of
from sdcduck.udfs.rows import table_of

_COMMANDS = {"line": "BIGINT", "command": "VARCHAR", "arguments": "VARCHAR"}
_RECORDS = {"line": "VARCHAR"}
_DIGITS = 30
_COMMAND = re.compile(r"<([A-Za-z]+)>\s*(.*)")


def plan_read_asc(session: Session, path: str | None, metadata: str | None) -> Rows:
    """``sdc_read_asc``: the records of a file, as its metadata say; which columns, is known when it is bound."""
    variables = metadata_of(lines_of(session, metadata))
    if not variables:
        raise SDCError("argument 'metadata' names a file without variables")
    separator = variables[0]["separator"]
    shown, checked = [], []
    for place, variable in enumerate(variables):
        if separator is not None:
            raw = f"trim(string_split(line, {literal(separator)})[{place + 1}], ' \"')"
        elif variable["position"] is None:
            raise SDCError("argument 'metadata' describes a table, not records")
        elif not variable["position"]:
            raise SDCError(f"variable '{variable['name']}' begins at 0; the first character of a line is 1")
        else:
            raw = f"trim(substr(line, {variable['position']}, {variable['width']}))"
            checked.append(variable["position"] + variable["width"] - 1)
        missing = ", ".join(map(literal, _texts(variable["missing"])))
        kept = f"CASE WHEN {raw} IN ({missing}) THEN NULL ELSE {raw} END" if missing else raw
        kept = f"nullif({kept}, '')"
        is_number = variable["numeric"] or variable["weight"]
        if (variable["decimals"] or 0) > _DIGITS:
            raise SDCError(f"variable '{variable['name']}' has more than {_DIGITS} decimals")
        kind = f"DECIMAL({_DIGITS}, {variable['decimals'] or 0})" if is_number else "VARCHAR"
        shown.append(f"({kept})::{kind} AS {identifier(variable['name'])}")
    least = max(checked, default=0)

    def read() -> pa.Table:
        lines = [one for one in lines_of(session, path) if one.strip()]
        if any(len(one) < least for one in lines):
            raise SDCError(f"a record is shorter than the {least} characters that the metadata say")
        if separator is not None and any(
            one.removesuffix(separator).count(separator) != len(variables) - 1
            and one.count(separator) != len(variables) - 1
            for one in lines
        ):
            raise SDCError(
                f"a record has not {len(variables)} fields, as the metadata say; a code must not have a separator in it"
            )
        return pa.table({"line": pa.array(lines, pa.string())})

    return Rows(read, f"SELECT {', '.join(shown)} FROM {{rows}}")


def _texts(text: str) -> list[str]:
    """The missing codes of a variable."""
    return [str(one) for one in json.loads(text)]


def plan_read_arb(session: Session, path: str | None) -> Rows:
    """``sdc_read_arb``: one row a command."""

    def read() -> pa.Table:
        rows = []
        for number, line in enumerate(lines_of(session, path), start=1):
            if not line.strip() or line.strip().startswith("//"):
                continue
            found = _COMMAND.fullmatch(line.strip())
            if found is None:
                raise in_line(number, "a command in angle brackets is expected")
            rows.append({"line": number, "command": found[1].upper(), "arguments": found[2].strip() or None})
        return table_of(rows, _COMMANDS)

    return Rows(read)


PLANNERS = (planner(plan_read_asc, _RECORDS), planner(plan_read_arb, _COMMANDS))

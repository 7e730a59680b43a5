"""The options of COPY (query) TO STDOUT."""

from __future__ import annotations

from collections.abc import Mapping

from sdcduck.gateway.postgres.rows import CopyText
from sdcduck.gateway.postgres.statements import Unsupported


def copy_text(form: str, options: Mapping[str, str]) -> CopyText:
    """How COPY writes text.

    Raises:
        Unsupported: an option that the form does not have.

    >>> copy_text("csv", {"header": "true"}).header
    True
    """
    csv = form == "csv"
    if options.get("encoding", "UTF8").upper().replace("-", "") not in ("UTF8", "UNICODE"):
        raise Unsupported("0A000", "COPY writes UTF8 only")
    if "force_quote" in options:
        raise Unsupported("0A000", "COPY has no FORCE_QUOTE here")
    if not csv and {"quote", "escape"} & set(options):
        raise Unsupported("0A000", "COPY has quotes in CSV only")
    delimiter = options.get("delimiter", "," if csv else "\t")
    quote = options.get("quote", '"') if csv else ""
    if len(delimiter) != 1 or (csv and len(quote) != 1) or delimiter in "\n\r" or delimiter == quote:
        raise Unsupported("22023", "COPY takes one character as delimiter and one as quote")
    header = options.get("header", "false").lower() in ("true", "on", "1", "match")
    null = options.get("null", "" if csv else "\\N")
    return CopyText(delimiter, null, header, quote, options.get("escape", quote) if csv else "")

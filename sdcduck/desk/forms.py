"""What a form sent, or the question mark of an address: texts under names, several where boxes were ticked."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl, urlencode

from sdcduck.errors import SDCError

_MOST_FIELDS = 2_000


class Form:
    """The fields of a form.

    >>> form = Form.read("dimension=region&dimension=sex&max_count=3&p_percent=")
    >>> form.all("dimension"), form.whole("max_count", "records"), form.number("p_percent", "per cent")
    (['region', 'sex'], 3, None)
    """

    def __init__(self, fields: Iterable[tuple[str, str]]) -> None:
        self.fields = list(fields)

    @classmethod
    def read(cls, text: str) -> Form:
        """What stands behind the question mark, or in the body of a form.

        Raises:
            SDCError: it is no form, or one with thousands of fields.
        """
        try:
            return cls(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS))
        except ValueError:
            raise SDCError("this is no form of the desk") from None

    def all(self, name: str) -> list[str]:
        """All that was given under a name, each once."""
        return list(dict.fromkeys(value for known, value in self.fields if known == name))

    def one(self, name: str, default: str = "") -> str:
        """The first that was given, without the spaces around it."""
        return next((value for known, value in self.fields if known == name), default).strip()

    def has(self, name: str) -> bool:
        """Whether a box was ticked, or a field filled in."""
        return bool(self.one(name))

    def number(self, name: str, words: str) -> float | None:
        """A number; None where the field was left empty.

        Raises:
            SDCError: it is something else.
        """
        text = self.one(name)
        if not text:
            return None
        try:
            return float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)
        except ValueError:
            raise SDCError(f"'{words}' must be a number, such as 3") from None

    def whole(self, name: str, words: str) -> int | None:
        """The same, without decimals."""
        value = self.number(name, words)
        if value is None:
            return None
        if not value.is_integer():
            raise SDCError(f"'{words}' must be a whole number, such as 3")
        return int(value)

    @property
    def encoded(self) -> str:
        """To stand behind a question mark, for a page that has the form filled in again."""
        return urlencode(self.fields)

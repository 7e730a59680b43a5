"""A request as the pages see it: the database, the form, and how a page is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from jinja2 import Environment
from starlette.responses import HTMLResponse, Response

from sdcduck.desk.forms import Form
from sdcduck.desk.register import Reading, Register
from sdcduck.desk.work import Work

_PATIENCE = 0.25
"""Seconds that a form waits for its work: what is shorter is shown at once."""


@dataclass(frozen=True)
class Desk:
    """What all pages share."""

    register: Register
    templates: Environment


@dataclass(frozen=True)
class Posted:
    """Where the browser goes after a form."""

    to: str


@dataclass(frozen=True)
class Asked:
    """One request."""

    desk: Desk
    reading: Reading
    form: Form
    place: Mapping[str, Any]

    @property
    def register(self) -> Register:
        return self.desk.register

    def page(
        self, template: str, *, title: str, status: int = HTTPStatus.OK, here: str = "", **values: Any
    ) -> Response:
        """A page, with the statements that made it below."""
        text = self.desk.templates.get_template(template).render(
            title=title, here=here, asked=self.reading.asked, file=self.register.file.name,
            written=len(self.register.worker.written), **values,
        )  # fmt: skip
        return HTMLResponse(text, status_code=status)

    def begin(self, work: Work) -> Posted:
        """Start work, and go to its page."""
        worker = self.register.worker
        worker.start(work).over.wait(_PATIENCE)
        return Posted(f"/work/{work.number}")

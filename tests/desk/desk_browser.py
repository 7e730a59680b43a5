"""A browser of few words: it keeps a cookie, follows an answer, sends forms, and reads a page for what must be there."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urlsplit


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    text: str
    path: str

    @property
    def page(self) -> Page:
        return Page.read(self.text)


class Browser:
    """One that was told an address."""

    def __init__(self, address: str, register: Any) -> None:
        parts = urlsplit(address)
        self.host, self.port = str(parts.hostname), int(parts.port or 0)
        self.base, self.token_path = f"http://{parts.netloc}", f"{parts.path}?{parts.query}"
        self.token = parts.query.removeprefix("token=")
        self.register = register
        self.cookie = ""

    def ask(self, method: str, path: str, body: str | None = None, **headers: str | None) -> Answer:
        """One request, with the headers that a browser sends unless they are said to be others; None: without."""
        given = {"Host": f"{self.host}:{self.port}", "Cookie": self.cookie or None}
        if method == "POST":
            given |= {"Origin": self.base, "Content-Type": "application/x-www-form-urlencoded"}
            given |= {"Content-Length": str(len((body or "").encode()))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        con = http.client.HTTPConnection(self.host, self.port)
        try:
            con.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value is not None:
                    con.putheader(name, value.encode("utf-8"))
            con.endheaders((body or "").encode() if method == "POST" else None)
            answer = con.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode(), path)
        finally:
            con.close()

    def get(self, path: str) -> Answer:
        """A page, and the one that it leads to."""
        return self._followed(self.ask("GET", path))

    def post(self, path: str, fields: list[tuple[str, str]]) -> Answer:
        """Send a form."""
        return self._followed(self.ask("POST", path, urlencode(fields)))

    def finished(self, answer: Answer) -> Answer:
        """The answer of work, once it is over: as the page does, look again."""
        while 'http-equiv="refresh"' in answer.text:
            answer = self.get(answer.path)
        return answer

    def _followed(self, answer: Answer) -> Answer:
        if cookie := answer.headers.get("Set-Cookie"):
            self.cookie = cookie.split(";")[0]
        while answer.status == 303:
            answer = self.ask("GET", answer.headers["Location"])
        return answer


@dataclass
class Page(HTMLParser):
    """The tags of a page, its cells, its statements, and its forms as they would be sent."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    unlabelled: list[str] = field(default_factory=list)
    text: str = ""
    source: str = ""

    @classmethod
    def read(cls, text: str) -> Page:
        page = cls()
        HTMLParser.__init__(page)
        page._open: list[str] = []
        page.source = text
        page.feed(text)
        labels = {tag["for"] for name, tag in page.tags if name == "label" and "for" in tag}
        page.unlabelled = [one for one in page.unlabelled if one not in labels]
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        self.tags.append((tag, known))
        if tag in ("input", "select", "textarea") and known.get("type") != "hidden" and "label" not in self._open:
            self.unlabelled.append(known.get("id", f"{tag} {known.get('name')}"))
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag == "code" and self._open[-1:] == ["pre"]:
            self.statements.append("")
        if tag not in ("input", "meta", "link", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open[-1:] and self._open[-1] in ("th", "td", "a", "label") and {"th", "td"} & set(self._open):
            self.rows[-1][-1] += data
        if self._open[-2:] == ["pre", "code"]:
            self.statements[-1] += data

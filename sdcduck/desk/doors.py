"""Who may ask the desk: the browser that was given the token, on this machine, from pages of the desk itself.

A page of somebody else that is open in the same browser can send requests to this machine, too (CSRF), and have its
own name stand for it (DNS rebinding). So: the name in ``Host`` is one of this machine, whatever is sent comes from a
page of the desk (``Origin``), and all needs the cookie, which the token in the address was changed for.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With 'no-referrer', browsers would send forms with the Origin 'null'.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LONGEST_BODY = 1_000_000
_METHODS = ("GET", "HEAD", "POST")


class Doors:
    """What stands before the pages.

    Args:
        pages: the application.
        port: that the desk listens on.
        token: what the address has that the terminal shows.
    """

    def __init__(self, pages: ASGIApp, port: int, token: str) -> None:
        self._pages, self._token = pages, token
        names = ("127.0.0.1", "localhost")
        # Port 80 is left out by browsers.
        self._hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
        self._cookie, self._session = f"sdcduck-desk-{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._pages(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here speaks anything else
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        request = Request(scope, receive)
        answer = self._refusal(request)
        if answer is None:
            answer = self._let_in(request)
        if answer is None and not self._has_cookie(request):
            answer = _refused("Open the address that the terminal shows, with its token.", 403)
        await (answer or self._pages)(scope, receive, sent)

    def _refusal(self, request: Request) -> Response | None:
        """What is wrong with where a request comes from, if anything is."""
        headers = request.headers
        if request.method not in _METHODS:
            return _refused("The desk has pages and forms, and nothing else.", 405)
        host = _only(headers, "host")
        if host not in self._hosts:
            return _refused("The desk answers under the address that the terminal shows, and no other.", 421)
        if request.method != "POST":
            return None
        if (
            _only(headers, "origin") != f"http://{host}"
            or headers.get("sec-fetch-site", "same-origin") != "same-origin"
        ):
            return _refused("A form is taken from pages of the desk only.", 403)
        length = headers.get("content-length", "")
        if not length.isdecimal() or int(length) > _LONGEST_BODY:
            return _refused("This form is too long.", 413)
        return None

    def _let_in(self, request: Request) -> Response | None:
        """Change the token in an address for the cookie; the address is shown without it then."""
        tokens = request.query_params.getlist("token")
        if request.method != "GET" or not tokens:
            return None
        if len(tokens) != 1 or not _same(tokens[0], self._token):
            return _refused("This token is not that of the desk: open the address that the terminal shows.", 403)
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        # A path that begins with two slashes would be the name of another machine.
        path = "/" + request.url.path.lstrip("/\\")
        answer = RedirectResponse(path + (f"?{urlencode(rest)}" if rest else ""), status_code=303)
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
        return answer

    def _has_cookie(self, request: Request) -> bool:
        return _same(request.cookies.get(self._cookie, ""), self._session)


def _only(headers: Headers, name: str) -> str | None:
    """A header that must be there once."""
    found = headers.getlist(name)
    return found[0] if len(found) == 1 else None


def _same(given: str, wanted: str) -> bool:
    """Compared in a time that tells nothing of where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def _refused(words: str, status: int) -> Response:
    return PlainTextResponse(f"{words}\n", status_code=status)

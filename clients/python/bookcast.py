"""The client of a Bookcast server, in one file. It needs Python 3.9 or later and only the standard library.

    import bookcast

    client = bookcast.Client("http://localhost:8080")
    for row in client.lob(market="KXHIGHNY-26JUL02-B82.5", date="2026-07-02", interval=60):
        print(row["ts"], row["mid"])
    frame = client.lob(series="KXHIGHNY", date="2026-07-02", interval=60).to_df()
    client.lob(series="KXHIGHNY", date="2026-07-02").to_file("day.parquet")

A method returns an Answer, which sends its request when it is read. Rows are dicts as in the server's JSON; `ts` is in
nanoseconds since the Unix epoch. An incomplete response raises IncompleteError; it never ends silently. `to_df`,
`to_polars` and `to_arrow` need pandas, polars or pyarrow, and import it when they are called.

Dates and instants are text, datetime.date, or datetime.datetime with a time zone. A datetime without one raises a
BookcastError, because it could mean any zone. For a date, the UTC date of a datetime is sent.
"""

import datetime
import hashlib
import http.client
import importlib.util
import json
import operator
import os
import random
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from typing import (
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Literal,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
)

__version__ = "0.0.0"

# Small enough that the rows of one chunk are freed before the next chunk arrives. Larger chunks are slower.
_READ_BYTES = 16 * 1024
_PROBLEM_BYTES_MAX = 64 * 1024
_LINE_BYTES_MAX = 16 * 1024 * 1024
# Rows per page of JSON, which is held in memory as a whole because it cannot be streamed.
_JSON_PAGE_ROWS = 10_000
_STREAMED_PAGE_ROWS = 100_000
# The server's limit of rows in one JSON response.
_JSON_FILE_ROWS = 50_000
# After this much progress, the count of resumes starts again.
_PROGRESS_BYTES = 64 * 1024
# Limits resumes without a range: a server that ignores `after` would send the same rows without end.
_UNRANGED_MAX = 100
# Protects against a server whose pages never end.
_PAGES_MAX = 100_000


class BookcastError(Exception):
    """The base class of all errors of this client."""


class ApiError(BookcastError):
    """The server refused the request; the text is the server's error message.

    status: the HTTP status. code: the server's stable code, such as `unknown_market`; `http_502` and the like if a
    proxy responded. errors: one dict for each invalid parameter, with `parameter` and `detail`. request_id: names the
    request in the server's log.
    """

    def __init__(
        self, detail: str, status: int, code: str, errors: List[Dict[str, str]], request_id: Optional[str]
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.errors = errors
        self.request_id = request_id


class IncompleteError(BookcastError):
    """The response broke off, or is incomplete for another reason.

    rows, bytes: how much of it was read; rows is 0 if the client does not parse rows, as for a file.
    """

    def __init__(self, why: str, rows: int, bytes: int) -> None:
        super().__init__(f"The answer is not whole: {why} after {rows} rows, {bytes} bytes.")
        self.rows = rows
        self.bytes = bytes


class TimeoutError(BookcastError):
    """The server sent nothing for too long. rows, bytes: how much of the response was read."""

    def __init__(self, timeout: float, rows: int, bytes: int) -> None:
        super().__init__(f"The server said nothing for {timeout:g} s, after {rows} rows, {bytes} bytes.")
        self.rows = rows
        self.bytes = bytes


class ConnectionError(BookcastError):
    """No response: the server cannot be reached, or closed the connection before it sent anything."""


class CancelledError(BookcastError):
    """`cancel` was called."""


class MoreRowsError(BookcastError):
    """There are more rows than one file of the format may have. The unfinished file was removed."""


class Progress(NamedTuple):
    """The progress of a response; bytes are those of the decompressed body."""

    rows: int
    bytes: int


class _Connection(NamedTuple):
    """Where and how requests are sent."""

    base: urllib.parse.SplitResult
    headers: Dict[str, str]
    timeout: float
    attempts: int
    first_wait: float
    longest_wait: float
    resumes: int
    on_progress: Optional[Callable[[Progress], None]]


class _BrokenOff(Exception):
    """The connection ended before the response did; the text says how."""


class _Cancelling:
    """Cancels a request from another thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._socket: Optional[socket.socket] = None

    def watch(self, sock: Optional[socket.socket]) -> None:
        with self._lock:
            self._socket = sock
        if self._event.is_set():
            self.cancel()

    def cancel(self) -> None:
        self._event.set()
        with self._lock:
            if self._socket is not None:
                try:
                    # Wakes the thread that reads from the socket.
                    self._socket.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def check(self) -> None:
        if self._event.is_set():
            raise CancelledError("The request was cancelled.")

    def sleep(self, seconds: float) -> None:
        self._event.wait(seconds)
        self.check()


class _GivenRows:
    """Where a compressed stream of order-book rows can be resumed: after the last complete row that the reader received.

    The server's response from there begins with exactly the bytes of the next row.
    """

    def __init__(self) -> None:
        self._line = b""
        # The bytes received after the line.
        self._rest = b""

    @classmethod
    def of(cls, target: str) -> "Optional[_GivenRows]":
        path, _, query = target.partition("?")
        given = dict(urllib.parse.parse_qsl(query))
        columns = given.get("columns", "ts,market_id").split(",")
        is_open = given.get("format") == "ndjson" and "limit" not in given
        is_placed = "ts" in columns and "market_id" in columns
        return cls() if path == "/api/v1/lob" and is_open and is_placed else None

    def take(self, chunk: bytes) -> None:
        end = chunk.rfind(b"\n")
        if end == -1:
            self._rest += chunk
            return
        start = chunk.rfind(b"\n", 0, end)
        self._line = self._rest + chunk[:end] if start == -1 else chunk[start + 1 : end]
        self._rest = chunk[end + 1 :]

    def next(self, target: str) -> Optional[Tuple[str, bytes]]:
        """The request for the remaining rows, and the first bytes of its response, which the reader has; None before a row."""
        try:
            row = json.loads(self._line)
            after = f"{row['ts']},{row['market_id']}"
        except (ValueError, KeyError, TypeError):
            return None
        path, _, query = target.partition("?")
        given = {**dict(urllib.parse.parse_qsl(query)), "after": after}
        return f"{path}?{urllib.parse.urlencode(given)}", self._rest


class _Transfer:
    """One request and its response with status 200, which is resumed after a lost connection.

    Without a strong ETag, a response is not resumed. With one, the client requests it again: a response with the same strong
    ETag has the same bytes (RFC 9110, section 8.8.1). If the server supports ranges, it sends only the remaining bytes; a
    compressed stream of order-book rows continues after the last row. For any other response, the client skips the bytes
    that it already has. If the ETag is now another, the two responses are not combined: IncompleteError.
    """

    def __init__(
        self, connection: _Connection, target: str, cancelling: _Cancelling, method: str = "GET"
    ) -> None:
        self._method = method
        self._connection = connection
        self._cancelling = cancelling
        self.target = target
        self._http: Optional[http.client.HTTPConnection] = None
        self.rows = 0
        self.bytes = 0
        self._response = self._open({})
        self.headers = self._response.headers
        is_coded = self.headers.get("Content-Encoding", "identity") != "identity"
        self._given = _GivenRows.of(target) if is_coded else None
        # The bytes with which the remaining rows must begin.
        self._known = b""
        self._unranged = 0

    def _open(self, more: Dict[str, str], *, target: Optional[str] = None) -> http.client.HTTPResponse:
        attempt = 1
        while True:
            try:
                response = self._ask(more, target or self.target)
                if response.status == 200 or (response.status == 206 and "Range" in more):
                    return response
                asked = response.headers.get("Retry-After") or "0"
                error: BookcastError = self._refusal(response)
                self.close()
            except ConnectionError as lost:
                error, asked = lost, "0"
            wait = self._wait_before(attempt, asked) if _may_pass(error) else None
            if wait is None:
                raise error
            self._cancelling.sleep(wait)
            attempt += 1

    def _ask(self, more: Dict[str, str], target: str) -> http.client.HTTPResponse:
        base = self._connection.base
        self._cancelling.check()
        try:
            self._http, path = _http_connection(base, self._connection.timeout, base.path + target)
            self._http.connect()
            self._cancelling.watch(self._http.sock)
            self._http.request(self._method, path, headers={**self._connection.headers, **more})
            return self._http.getresponse()
        except socket.timeout:
            self.close()
            raise TimeoutError(self._connection.timeout, 0, 0) from None
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            self.close()
            self._cancelling.check()
            raise ConnectionError(f"{base.scheme}://{base.netloc} cannot be reached: {error}.") from error
        except BaseException:
            self.close()
            raise

    def _refusal(self, response: http.client.HTTPResponse) -> ApiError:
        try:
            body = response.read(_PROBLEM_BYTES_MAX)
            if response.headers.get("Content-Encoding") == "gzip":
                body = zlib.decompressobj(31).decompress(body)
            problem = json.loads(body)
        except (OSError, ValueError, zlib.error, http.client.HTTPException):
            self._cancelling.check()
            problem = {}
        if not isinstance(problem, dict):
            problem = {}
        status = response.status
        return ApiError(
            str(problem.get("detail") or f"The server answered {status} {response.reason}."),
            status,
            str(problem.get("code") or f"http_{status}"),
            problem.get("errors") or [],
            problem.get("request_id") or response.headers.get("X-Request-Id"),
        )

    def _wait_before(self, attempt: int, asked: str) -> Optional[float]:
        connection = self._connection
        seconds = float(asked) if asked.isdigit() else 0.0
        if attempt >= connection.attempts or seconds > connection.longest_wait:
            return None
        own = self._own_wait(attempt)
        # The jitter spreads out clients that were refused together.
        return max(seconds, own / 2) + random.random() * own / 2

    def _own_wait(self, attempt: int) -> float:
        """The wait if the server states none: exponential back-off."""
        connection = self._connection
        return min(connection.longest_wait, connection.first_wait * 2 ** (attempt - 1))

    def _raw_chunks(self) -> Iterator[bytes]:
        """The encoded body of one response. Raises unless its end is known to have been reached."""
        response = self._response
        length = response.headers.get("Content-Length")
        is_chunked = bool(getattr(response, "chunked", False))
        raw_bytes = 0
        try:
            while True:
                self._cancelling.check()
                chunk = response.read1(_READ_BYTES)
                if not chunk:
                    break
                raw_bytes += len(chunk)
                yield chunk
        except socket.timeout:
            raise TimeoutError(self._connection.timeout, self.rows, self.bytes) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            self._cancelling.check()
            raise _BrokenOff("the connection broke off") from error
        self._cancelling.check()
        if length is not None and not is_chunked and raw_bytes != int(length):
            raise _BrokenOff(f"the connection ended before its {length} bytes")
        if length is None and not is_chunked:
            raise self.incomplete("nothing tells where it ends, and it may have been cut")

    def _decoded_chunks(self) -> Iterator[bytes]:
        """The body of one response, decompressed."""
        if self._response.headers.get("Content-Encoding", "identity") != "gzip":
            yield from self._raw_chunks()
            return
        unzip = zlib.decompressobj(31)
        for coded in self._raw_chunks():
            try:
                chunk = unzip.decompress(coded)
            except zlib.error as error:
                raise self.incomplete("it is not gzip") from error
            if chunk:
                yield chunk
        if not unzip.eof:
            raise self.incomplete("its gzip does not end")

    def chunks(self) -> Iterator[bytes]:
        """The decompressed body in chunks; the connection is closed at its end and when the loop is left."""
        # Bytes at the start of the response that the reader already has.
        held = 0
        resume = 0
        bytes_at_resume = 0
        try:
            while True:
                try:
                    for chunk in self._decoded_chunks():
                        known = self._known[: len(chunk)]
                        if not chunk.startswith(known):
                            raise self.incomplete("asked for the rest, the server sent something else")
                        self._known = self._known[len(known) :]
                        if held >= len(chunk):
                            held -= len(chunk)
                            continue
                        if held > 0:
                            chunk, held = chunk[held:], 0
                        self.bytes += len(chunk)
                        if self._given is not None:
                            self._given.take(chunk)
                        yield chunk
                    if held == 0:
                        return
                    raise _BrokenOff("asked for again, it ended before")
                except _BrokenOff as error:
                    # After progress, the count of resumes starts again.
                    resume = 1 if self.bytes - bytes_at_resume >= _PROGRESS_BYTES else resume + 1
                    bytes_at_resume = self.bytes
                    held = self._resume(error, resume)
        finally:
            self.close()

    def _resume(self, broken: _BrokenOff, resume: int) -> int:
        """Requests the same response again, and returns how many bytes at its start are known."""
        self.close()
        tag = self.headers.get("ETag") or "W/"
        is_coded = self.headers.get("Content-Encoding", "identity") != "identity"
        is_ranged = not is_coded and self.headers.get("Accept-Ranges") == "bytes" and self.bytes > 0
        self._unranged += 0 if is_ranged else 1
        if tag.startswith("W/") or resume > self._connection.resumes or self._unranged > _UNRANGED_MAX:
            raise self.incomplete(str(broken)) from broken
        self._cancelling.sleep(self._own_wait(resume) * (0.5 + random.random() / 2))
        more = {"Range": f"bytes={self.bytes}-", "If-Range": tag} if is_ranged else {}
        rows = self._given.next(self.target) if self._given is not None else None
        try:
            self._response = self._open(more, target=rows and rows[0])
            # Requested after the request for the rest: if the response is still the same, it was the same at that request.
            present = self._response.headers if rows is None else self._present_headers()
        except (ApiError, ConnectionError, TimeoutError):
            # If the server is unavailable, report how much of the response was read.
            raise self.incomplete(str(broken)) from broken
        headers = self._response.headers
        is_rest = self._response.status == 206
        begins = (headers.get("Content-Range") or "").startswith(f"bytes {self.bytes}-")
        if present.get("ETag") != tag or (is_rest and not begins):
            raise self.incomplete("the connection broke off, and the answer is another one since") from broken
        if rows is not None:
            self._known = rows[1]
            return len(self._known)
        return 0 if is_rest else self.bytes

    def _present_headers(self) -> Any:
        """The current headers of the whole response."""
        head = _Transfer(self._connection, self.target, self._cancelling, method="HEAD")
        head.close()
        self._cancelling.watch(self._http and self._http.sock)
        return head.headers

    def incomplete(self, why: str) -> IncompleteError:
        return IncompleteError(why, self.rows, self.bytes)

    def report(self) -> None:
        if self._connection.on_progress is not None:
            self._connection.on_progress(Progress(self.rows, self.bytes))

    def close(self) -> None:
        self._cancelling.watch(None)
        response = getattr(self, "_response", None)
        if response is not None:
            response.close()
        if self._http is not None:
            self._http.close()


def _may_pass(error: BookcastError) -> bool:
    """Whether a retry may succeed. Every request is idempotent (GET or HEAD), so that a retry is safe."""
    if isinstance(error, ApiError):
        # A retry does not repair a damaged file.
        return error.status == 429 or (error.status == 503 and error.code != "lake_file_invalid")
    lost = (ConnectionRefusedError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
    return isinstance(error.__cause__, lost)


def _http_connection(
    base: urllib.parse.SplitResult, timeout: float, target: str
) -> Tuple[http.client.HTTPConnection, str]:
    """A connection to the server, or to the environment's proxy for it, and the target to request on it."""
    host = base.hostname or ""
    proxy = urllib.request.getproxies().get(base.scheme)
    if proxy is None or urllib.request.proxy_bypass(host):
        if base.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, base.port, timeout=timeout, context=context), target
        return http.client.HTTPConnection(host, base.port, timeout=timeout), target
    through = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if base.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            through.hostname or "", through.port, timeout=timeout, context=context
        )
        connection.set_tunnel(host, base.port or 443)
        return connection, target
    plain = http.client.HTTPConnection(through.hostname or "", through.port, timeout=timeout)
    return plain, f"{base.scheme}://{base.netloc}{target}"


def _ndjson_batches(transfer: _Transfer) -> Iterator[List[Any]]:
    rest = b""
    for chunk in transfer.chunks():
        end = chunk.rfind(b"\n")
        if end == -1:
            rest += chunk
            if len(rest) > _LINE_BYTES_MAX:
                raise transfer.incomplete("there is a line without an end")
            transfer.report()
            continue
        lines = rest + chunk[:end]
        rest = chunk[end + 1 :]
        try:
            # Parses all lines at once: a row never contains a line feed.
            batch = json.loads(b"[" + lines.replace(b"\n", b",") + b"]")
        except ValueError as error:
            raise transfer.incomplete("a line is no row") from error
        transfer.rows += len(batch)
        transfer.report()
        yield batch
    if rest:
        raise transfer.incomplete("it ends within a row")


def _read_json(transfer: _Transfer) -> Any:
    pieces = []
    for chunk in transfer.chunks():
        pieces.append(chunk)
        transfer.report()
    try:
        value = json.loads(b"".join(pieces))
    except ValueError as error:
        raise transfer.incomplete("it is not the whole of a JSON value") from error
    transfer.rows = len(value) if isinstance(value, list) else 1
    transfer.report()
    return value


def _json_batch(transfer: _Transfer) -> Iterator[List[Any]]:
    rows = _read_json(transfer)
    if not isinstance(rows, list):
        raise transfer.incomplete("it is no list")
    yield rows


def _whole_bytes(transfer: _Transfer, format: str) -> Iterator[bytes]:
    """The bytes of a body as they arrive. Raises IncompleteError unless it ends as its format requires."""
    tail = b""
    for chunk in transfer.chunks():
        tail = (tail + chunk[-4:])[-4:]
        transfer.report()
        yield chunk
    is_whole = {
        "json": tail.rstrip()[-1:] in (b"]", b"}"),
        "ndjson": tail == b"" or tail.endswith(b"\n"),
        "csv": tail.endswith(b"\n"),
        "parquet": tail == b"PAR1",
    }
    if not is_whole.get(format, True):
        raise transfer.incomplete(f"it does not end as {format} does")


def _without_first_line(chunks: Iterable[bytes]) -> Iterator[bytes]:
    is_behind = False
    for chunk in chunks:
        if not is_behind:
            end = chunk.find(b"\n")
            if end == -1:
                continue
            is_behind = True
            chunk = chunk[end + 1 :]
        if chunk:
            yield chunk


class _Form(NamedTuple):
    """The facts about an endpoint that requests to it need."""

    path: str
    row: str
    formats: Tuple[str, ...]
    limit_max: Optional[int]
    has_fill: bool
    # The parameters that are dates, not instants.
    dates: Tuple[str, ...]


Row = TypeVar("Row")


class Answer(Generic[Row]):
    """A request for rows. It is sent when it is read, and again on every further read."""

    def __init__(self, connection: _Connection, form: _Form, parameters: Dict[str, Any]) -> None:
        self._connection = connection
        self._form = form
        self._parameters = {name: _text_of_time(value, name in form.dates) for name, value in parameters.items()}
        self._cancelling = _Cancelling()
        self.missing_dates: List[str] = []
        """Requested dates of an order-book range without a recording; known once reading has begun."""
        self._lake_versions: Set[Optional[str]] = set()

    @property
    def lake_version(self) -> Optional[str]:
        """The version of the lake that the rows come from, for `version` of a later request; known once reading has begun.

        None if the server states none, or if the requests of one read met different versions.
        """
        return next(iter(self._lake_versions)) if len(self._lake_versions) == 1 else None

    def url(self, format: Optional[str] = None) -> str:
        """The URL of the request, with the caller's format or with `format`."""
        base = self._connection.base
        return f"{base.scheme}://{base.netloc}{base.path}" + self._target({"format": format} if format else {})

    @property
    def target(self) -> str:
        """Path and query of the request, without the base URL."""
        return self._target({})

    def cancel(self) -> None:
        """Cancels the read, from any thread; the read raises CancelledError."""
        self._cancelling.cancel()

    def __iter__(self) -> Iterator[Row]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[List[Row]]:
        """The rows as they arrive, some hundred at a time."""
        return self._batches({})

    def _batches(self, more: Dict[str, Any]) -> Iterator[List[Row]]:
        row_format = self._row_format()
        page_rows = _JSON_PAGE_ROWS if row_format == "json" else _STREAMED_PAGE_ROWS
        left = self._limit()

        def following(transfer: _Transfer) -> Optional[str]:
            nonlocal left
            if left is not None:
                left -= transfer.rows
                if left <= 0:
                    return None
            target = _next_target(transfer)
            return target and _with_limit(target, page_rows if left is None else min(left, page_rows))

        page = self._page_of(row_format, page_rows if left is None else min(left, page_rows))
        for transfer in self._transfers({**page, **more}, following):
            yield from _json_batch(transfer) if row_format == "json" else _ndjson_batches(transfer)

    def _transfers(
        self,
        page: Dict[str, Any],
        following: Callable[[_Transfer], Optional[str]],
        *,
        has_parts: bool = True,
    ) -> Iterator[_Transfer]:
        """Opens one request after another: each next page, and the parts of a range that has too many rows for one."""
        self._forget()
        waiting = [(self._target(page), page)]
        for _ in range(_PAGES_MAX):
            if not waiting:
                return
            target, asked = waiting.pop()
            try:
                transfer = self._open(target)
            except ApiError as error:
                if error.code == "no_data" and "date" in asked:
                    # A part of a range without data is a date without a recording.
                    self.missing_dates.append(asked["date"])
                    continue
                is_too_long = has_parts and error.code == "too_many_rows"
                parts = _parts_of({**self._parameters, **asked}) if is_too_long else []
                if not parts:
                    raise
                waiting.extend((self._target({**asked, **part}), {**asked, **part}) for part in reversed(parts))
                continue
            try:
                yield transfer
            finally:
                transfer.close()
            next_target = following(transfer)
            if next_target is not None:
                waiting.append((next_target, asked))
        raise BookcastError(f"The answer has more than {_PAGES_MAX} pages.")

    def to_list(self) -> List[Row]:
        """All rows, in memory."""
        return list(self)

    def iter_bytes(self) -> Iterator[bytes]:
        """The response body of a single request, in the caller's format (default: json)."""
        self._forget()
        yield from _whole_bytes(self._open(self._target({})), self._parameters.get("format") or "json")

    def to_file(self, path: Union[str, "os.PathLike[str]"]) -> int:
        """Writes the rows to a file, which gets its name only when it is complete, and returns its size in bytes.

        Without `format`, the file extension decides: .json, .ndjson, .csv or .parquet. Pages of ndjson and csv are
        concatenated. json and parquet raise MoreRowsError if one page does not hold all rows, and an ApiError with the
        code too_many_rows for a range of order books that one response does not hold.
        """
        name = os.fspath(path)
        format = self._parameters.get("format") or _format_of_name(name)
        unfinished = f"{name}.{random.getrandbits(40):010x}.part"
        size = 0
        try:
            with open(unfinished, "xb") as file:
                for chunk in self._file_pages(format):
                    file.write(chunk)
                    size += len(chunk)
            os.replace(unfinished, name)
        except BaseException:
            try:
                os.remove(unfinished)
            except FileNotFoundError:
                pass
            raise
        return size

    def to_df(self, *, raw: bool = False) -> Any:
        """A pandas.DataFrame of all rows.

        Absent quotes of an order book are missing values; raw=True keeps the server's 0 and -1. Instants (also `ts`) are
        datetime64[ns, UTC], dates datetime64[ns], whole numbers int64 (Int64 if they may be missing), other numbers
        float64 with NaN for null, flags bool or boolean, texts objects with None for null.
        If pyarrow is installed, rows are requested as parquet, which is faster.
        """
        import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]

        nulls = self._nulls(raw)
        kinds = self._kinds(nulls)
        columns: Dict[str, Any] = {name: [] for name in self._columns()}
        if self._is_faster_by_arrow():
            table = self._arrow_table(nulls)
            columns = {name: _arrow_values(kinds[name], table[name]) for name in columns if name in table.column_names}
        else:
            for batch in filter(None, self._batches(nulls)):
                # An older server may lack some columns.
                columns = {name: values for name, values in columns.items() if name in batch[0]}
                for name, values in columns.items():
                    values.extend([row[name] for row in batch])  # type: ignore[index]
        series = {name: _pandas_series(pandas, kinds[name], values) for name, values in columns.items()}
        return pandas.DataFrame(series, columns=list(columns))

    def to_polars(self, *, raw: bool = False) -> Any:
        """A polars.DataFrame of all rows, read from parquet; `ts` is Datetime(ns, UTC). raw: as in to_df."""
        import io

        import polars  # type: ignore[import-not-found,unused-ignore]

        frames = [polars.read_parquet(io.BytesIO(page)) for page in self._parquet_pages(self._nulls(raw))]
        frame = polars.concat(frames)
        if not self._has_ts():
            return frame
        return frame.with_columns(polars.from_epoch("ts", time_unit="ns").dt.replace_time_zone("UTC"))

    def to_arrow(self, *, raw: bool = False) -> Any:
        """A pyarrow.Table of all rows, read from parquet; `ts` is timestamp(ns, UTC). raw: as in to_df."""
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

        table = self._arrow_table(self._nulls(raw))
        if not self._has_ts():
            return table
        instants = table["ts"].cast(pyarrow.timestamp("ns", "UTC"))
        return table.set_column(table.column_names.index("ts"), "ts", instants)

    def _arrow_table(self, more: Dict[str, Any]) -> Any:
        import pyarrow
        import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

        # Do not use a Python file object or Arrow's threads here: they can crash the process when the interpreter exits.
        pages = (pyarrow.BufferReader(page) for page in self._parquet_pages(more))
        return pyarrow.concat_tables([pyarrow.parquet.ParquetFile(page).read(use_threads=False) for page in pages])

    def _is_faster_by_arrow(self) -> bool:
        """Whether pyarrow is installed and parquet can hold the requested rows."""
        is_limited = (self._limit() or 0) > (self._form.limit_max or 0)
        if self._parameters.get("format") is not None or is_limited or not self._has_parquet():
            return False
        return importlib.util.find_spec("pyarrow") is not None

    def _has_parquet(self) -> bool:
        is_filled = self._form.has_fill and self._parameters.get("fill") not in (False, "false")
        return "parquet" in self._form.formats and not is_filled

    def _has_ts(self) -> bool:
        return _KINDS[self._form.row].get("ts") == "nanoseconds" and "ts" in self._columns()

    def _nulls(self, raw: bool) -> Dict[str, Any]:
        """The parameters that a frame adds to the caller's: null instead of the placeholders of order books."""
        is_open = "nulls" in self._parameters and self._parameters["nulls"] is None
        return {"nulls": True} if is_open and not raw else {}

    def _kinds(self, more: Dict[str, Any]) -> Dict[str, str]:
        """The kinds of the columns; with `nulls`, all numbers may be missing."""
        kinds = _KINDS[self._form.row]
        if {**self._parameters, **more}.get("nulls") not in (True, "true"):
            return kinds
        return {name: f"{kind}?" if kind in ("integer", "number") else kind for name, kind in kinds.items()}

    def _parquet_pages(self, more: Dict[str, Any]) -> Iterator[bytes]:
        if "parquet" not in self._form.formats:
            raise BookcastError(f"{self._form.path} has no parquet: use to_df or to_list.")
        if not self._has_parquet():
            raise BookcastError("Filled candles come as rows alone: use to_df, or pass fill=False.")
        limit = self._limit()
        page = self._page_of("parquet", self._page_limit("parquet", limit))
        # One page holds as many rows as the server allows, so that a limit never needs a second page.
        following = _next_target if limit is None else _no_target
        for transfer in self._transfers({**page, **more}, following):
            yield b"".join(_whole_bytes(transfer, "parquet"))

    def _file_pages(self, format: str) -> Iterator[bytes]:
        limit = self._limit()
        is_joined = format in ("ndjson", "csv")
        most = self._page_limit(format, limit)
        following = _next_target if limit is None else _no_target
        is_first = True
        for transfer in self._transfers(self._page_of(format, most), following, has_parts=is_joined):
            if not is_joined and following(transfer) is not None:
                raise MoreRowsError(
                    f"There are more than {most} rows, the most of one {format} answer: "
                    "narrow the range, or take ndjson or csv."
                )
            chunks = _whole_bytes(transfer, format)
            yield from chunks if is_first or format != "csv" else _without_first_line(chunks)
            is_first = False

    def _limit(self) -> Optional[int]:
        """The caller's limit of rows; None for all rows, or if it is no such number, which the server refuses."""
        limit = self._parameters.get("limit")
        if isinstance(limit, str):
            return int(limit) if re.fullmatch("[0-9]+", limit) else None
        try:
            # Accepts integers of numpy, too. The server does not accept a flag as a number.
            return None if isinstance(limit, bool) else operator.index(limit)  # type: ignore[arg-type]
        except TypeError:
            return None

    def _page_limit(self, format: str, limit: Optional[int]) -> int:
        if limit is not None:
            return limit
        most = self._form.limit_max or _JSON_FILE_ROWS
        return min(most, _JSON_FILE_ROWS) if format == "json" else most

    def _columns(self) -> Sequence[str]:
        columns = self._parameters.get("columns")
        if columns is None:
            # The server only returns these columns on request.
            is_hourly = self._parameters.get("by") == "hour"
            absent = ("book_state", "date", "condition") if is_hourly else ("book_state", "hour")
            return [name for name in _KINDS[self._form.row] if name not in absent]
        return columns.split(",") if isinstance(columns, str) else list(columns)

    def _row_format(self) -> str:
        format = self._parameters.get("format")
        if format in ("csv", "parquet"):
            raise BookcastError(
                f"Rows are not read from {format}: use to_file or iter_bytes, or leave out format to read rows."
            )
        if format is not None:
            return str(format)
        # Filled candles are only available as json.
        is_filled = self._form.has_fill and self._parameters.get("fill") not in (False, "false")
        return "ndjson" if "ndjson" in self._form.formats and not is_filled else "json"

    def _page_of(self, format: str, limit: int) -> Dict[str, Any]:
        page: Dict[str, Any] = {}
        if len(self._form.formats) > 1:
            page["format"] = format
        is_refused = self._parameters.get("limit") is not None and self._limit() is None
        if self._form.limit_max is not None and not is_refused:
            page["limit"] = limit
        return page

    def _target(self, more: Dict[str, Any]) -> str:
        return _target_of(self._form.path, {**self._parameters, **more})

    def _forget(self) -> None:
        self.missing_dates = []
        self._lake_versions = set()

    def _open(self, target: str) -> _Transfer:
        transfer = _Transfer(self._connection, target, self._cancelling)
        missing = transfer.headers.get("Missing-Dates")
        self.missing_dates += missing.split(",") if missing else []
        self._lake_versions.add(transfer.headers.get("Lake-Version"))
        return transfer


def _arrow_values(kind: str, column: Any) -> Any:
    """The values of an Arrow column: a numpy array or, for the levels of books, lists of dicts as in rows."""
    if kind == "integer?" and column.null_count > 0 and column.type.bit_width == 64:
        # to_numpy would convert to doubles, which cannot represent nanoseconds exactly.
        return column.to_pylist()
    if kind != "other":
        return column.to_numpy()
    books: List[Any] = []
    for chunk in column.chunks:
        values = chunk.flatten()
        levels = [
            {"price": price, "qty": qty}
            for price, qty in zip(values.field("price").to_pylist(), values.field("qty").to_pylist())
        ]
        at = 0
        for count in chunk.value_lengths().to_pylist():
            books.append(levels[at : at + count])
            at += count
    return books


def _pandas_series(pandas: Any, kind: str, values: Any) -> Any:
    if kind == "nanoseconds":
        return pandas.to_datetime(pandas.Series(values, dtype="int64"), unit="ns", utc=True)
    if kind.startswith("instant"):
        # Strings (in any zone) or None.
        if not isinstance(values, list):
            return pandas.to_datetime(pandas.Series(values), utc=True).astype("datetime64[ns, UTC]")
        texts = pandas.Series(values, dtype="object")
        # Only some have fractions of a second. pandas 2 and later need the format for that.
        options = {"format": "ISO8601"} if int(pandas.__version__.partition(".")[0]) >= 2 else {}
        return pandas.to_datetime(texts, utc=True, **options).astype("datetime64[ns, UTC]")
    if kind.startswith("date"):
        dates = pandas.Series(values, dtype="object" if isinstance(values, list) else None)
        return pandas.to_datetime(dates).astype("datetime64[ns]")
    dtypes = {
        "integer": "int64",
        "integer?": "Int64",
        "number": "float64",
        "number?": "float64",
        "boolean": "bool",
        "boolean?": "boolean",
    }
    return pandas.Series(values, dtype=dtypes.get(kind, "object"))


def _text_of_time(value: Any, is_date: bool) -> Any:
    """A time as text for the server: the UTC date for a date parameter, otherwise the instant. Other values are unchanged."""
    if isinstance(value, datetime.datetime):
        if value.utcoffset() is None:
            text = value.isoformat()
            raise BookcastError(f"The datetime {text} has no time zone: give it one, such as datetime.timezone.utc.")
        utc = value.astimezone(datetime.timezone.utc)
        return utc.date().isoformat() if is_date else utc.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, datetime.date) else value


def _quoted(text: str, safe: str = "") -> str:
    try:
        return urllib.parse.quote(text, safe=safe)
    except UnicodeEncodeError as error:
        # An unpaired surrogate.
        raise BookcastError(f"There is a character in {json.dumps(text)} that is none.") from error


def _target_of(path: str, parameters: Dict[str, Any]) -> str:
    """Path and query of a request, without parameters that are None."""
    pairs = []
    for name, value in parameters.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, (list, tuple)):
            value = ",".join(str(item) for item in value)
        pairs.append(f"{_quoted(name)}={_quoted(str(value), ',:')}")
    return f"{path}?{'&'.join(pairs)}" if pairs else path


def _next_target(transfer: _Transfer) -> Optional[str]:
    """The target of the next page in the Link header. Only the query is taken from it, because only the query differs."""
    match = re.search(r'<([^>]*)>\s*;[^,]*\brel="?next"?', transfer.headers.get("Link") or "")
    if match is None:
        return None
    query = match.group(1).partition("?")[2]
    following = f"{transfer.target.partition('?')[0]}?{query}"
    if following == transfer.target:
        raise BookcastError("The server names a page as its own next page.")
    return following


def _no_target(transfer: _Transfer) -> Optional[str]:
    return None


def _parts_of(parameters: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The parts of a range of order books: its dates, or the hours of a single date. An hour is not divided further."""
    day = parameters.get("date")
    try:
        first = datetime.date.fromisoformat(day or parameters["from"])
        last = datetime.date.fromisoformat(day or parameters["to"])
    except (KeyError, TypeError, ValueError):
        return []
    if last > first:
        dates = [first + datetime.timedelta(days) for days in range((last - first).days + 1)]
        return [{"date": date.isoformat(), "from": None, "to": None} for date in dates]
    return [{"hour": hour} for hour in range(24)] if parameters.get("hour") is None else []


def _with_limit(target: str, limit: int) -> str:
    path, _, query = target.partition("?")
    pairs = [(name, value) for name, value in urllib.parse.parse_qsl(query) if name != "limit"]
    return f"{path}?{urllib.parse.urlencode([*pairs, ('limit', limit)])}"


def _format_of_name(name: str) -> str:
    match = re.search(r"\.(json|ndjson|csv|parquet)$", name)
    if match is None:
        raise BookcastError("The format is not known: give format, or a name that ends in it.")
    return match.group(1)


class _Requests:
    """Sends the requests of a client's methods."""

    def __init__(self, connection: _Connection) -> None:
        self._base_connection = connection

    def _connection(
        self, timeout: Optional[float], on_progress: Optional[Callable[[Progress], None]]
    ) -> _Connection:
        connection = self._base_connection
        if timeout is not None:
            connection = connection._replace(timeout=timeout)
        return connection if on_progress is None else connection._replace(on_progress=on_progress)

    def _one(
        self, target: str, timeout: Optional[float], on_progress: Optional[Callable[[Progress], None]]
    ) -> Any:
        return _read_json(_Transfer(self._connection(timeout, on_progress), target, _Cancelling()))


# --- written by the build from the server’s declarations: npm run clients:write

class Snapshot(TypedDict, total=False):
    ts: int  # Nanoseconds since the Unix epoch.
    market_id: str  # Market identifier.
    best_bid: int  # Highest bid, cents; 0 without a bid, null with nulls=true.
    best_ask: int  # Lowest ask, cents; 0 without an ask, null with nulls=true.
    spread: int  # Ask minus bid; -1 when there is no two-sided book, null with nulls=true.
    mid: float  # (bid + ask) / 2; 0 when there is no two-sided book, null with nulls=true.
    bids: List[Dict[str, Any]]  # Bid levels, high to low.
    asks: List[Dict[str, Any]]  # Ask levels, low to high.
    book_state: Literal["known", "gap", "held", "carried", "crossed"]  # Only if `columns` names it. gap: lost, and empty here; held: lost, with the levels of the last book (on_gap=hold); carried: from the file of an earlier date; crossed: best_bid is not below best_ask.


SnapshotColumn = Literal[
    "ts",
    "market_id",
    "best_bid",
    "best_ask",
    "spread",
    "mid",
    "bids",
    "asks",
    "book_state",
]


class LobReceipt(TypedDict, total=False):
    version: Optional[str]  # Version of the lake; null if a file of the answer is still open, or while the server has not read all of its files.
    etag: str  # ETag of the answer without compression.
    parameters: str  # The query of the request in canonical form.
    format: str  # Format of the answer.
    rows: int  # Rows of the answer.
    bytes: int  # Bytes of the body.
    sha256: str  # SHA-256, 64 hex digits.
    first_ts: Optional[int]  # ts of the first row; null without rows.
    last_ts: Optional[int]  # ts of the last row; null without rows.
    markets: int  # Markets that have rows.
    blocks: List[Dict[str, Any]]  # Parts that make up the body: hours, or dates whose files have no keyframes. Empty for parquet.
    known_s: float  # Seconds in which the books are known, summed over all markets; with after or limit, only in the time of the rows.
    gap_s: float  # Seconds in which the books are lost, summed likewise.
    missing_dates: List[str]  # Requested dates without a file.


class LobDate(TypedDict, total=False):
    date: str  # UTC date.
    state: Literal["closed", "open", "invalid"]  # open: today or the day before, to which recordings may be added; invalid: the footer of the file cannot be read.
    bytes: int  # Bytes of the file of the date, with all its markets.
    rows: Optional[int]  # Book events and keyframes in the file; for an event, those of its markets, or null if the footer does not list markets.


class BookAt(TypedDict, total=False):
    ts: int  # The instant asked for, ns since the Unix epoch.
    market_id: str  # Market identifier.
    best_bid: int  # Highest bid, cents; 0 without a bid.
    best_ask: int  # Lowest ask, cents; 0 without an ask.
    spread: int  # Ask minus bid; -1 when there is no two-sided book.
    mid: float  # (bid + ask) / 2; 0 when there is no two-sided book.
    bids: List[Dict[str, Any]]  # Bid levels, high to low.
    asks: List[Dict[str, Any]]  # Ask levels, low to high.
    provenance: Dict[str, Any]


class LobEstimate(TypedDict, total=False):
    format: Literal["json", "csv", "parquet", "ndjson"]
    rows: int  # Rows of the answer.
    bytes: int  # Bytes of the answer, estimated.
    files: List[str]  # Files below the root of the lake.
    row_groups: int  # Row groups of these files that may have to be decoded.
    missing_dates: List[str]  # Dates without a file.
    allowed: bool  # Whether the rows are within the limit of the format.
    rows_max: int  # The limit of the format.
    detail: Optional[str]  # The error of /lob for this request; null if it is allowed.
    cut: Dict[str, Any]  # Changes that each make the request allowed on their own; null for a change that cannot.


class Candle(TypedDict, total=False):
    market_ticker: str  # Market ticker.
    period_interval: int  # Candle length, minutes.
    end_period_ts: str  # End of the candle.
    open: int  # Open price, cents.
    high: int  # High price, cents.
    low: int  # Low price, cents.
    close: int  # Close price, cents.
    volume: int  # Traded volume, contracts.
    open_interest: int  # Open interest, contracts.
    filled: bool  # True for a forward fill, false for real trades.


CandleColumn = Literal[
    "market_ticker",
    "period_interval",
    "end_period_ts",
    "open",
    "high",
    "low",
    "close",
    "volume",
    "open_interest",
    "filled",
]


class Observation(TypedDict, total=False):
    station_code: str  # Station code.
    observed_at: str  # Observation time.
    observation_type: str  # `METAR` (routine) or `SPECI` (special).
    source: str  # Origin: `awc` (live feed), `iem` or `ncei` (archives).
    temp_f: Optional[float]  # Temperature.
    dewpoint_f: Optional[float]  # Dewpoint.
    wind_speed_kt: Optional[float]  # Wind speed; 0 is calm, null is not reported.
    altimeter_inhg: Optional[float]  # Altimeter setting.
    visibility_miles: Optional[float]  # Visibility; the bound itself where a report says more or less than it.
    sky_cover_1: Optional[str]  # First sky-cover layer: CLR, SKC, FEW, SCT, BKN, OVC, VV.
    raw_metar: Optional[str]  # Raw report text.
    relative_humidity: Optional[float]  # Relative humidity, percent, from temperature and dewpoint.
    wind_dir_degrees: Optional[int]  # Direction the wind blows from; 0 is calm, null is variable or not reported.
    wind_gust_kt: Optional[float]  # Gust speed; null is no gust.
    sea_level_pressure_mb: Optional[float]  # Sea-level pressure, millibars (hPa).
    weather_codes: Optional[str]  # Present weather as reported, separated by spaces.
    sky_base_1_ft: Optional[int]  # Base of the first layer above ground, feet.
    sky_cover_2: Optional[str]  # Second sky-cover layer.
    sky_base_2_ft: Optional[int]  # Base of the second layer, feet.
    sky_cover_3: Optional[str]  # Third sky-cover layer.
    sky_base_3_ft: Optional[int]  # Base of the third layer, feet.
    sky_cover_4: Optional[str]  # Fourth sky-cover layer.
    sky_base_4_ft: Optional[int]  # Base of the fourth layer, feet.
    precip_1hr_inches: Optional[float]  # Precipitation since the last routine report; 0.0001 is a trace.
    snow_depth_inches: Optional[float]  # Snow on the ground.
    peak_wind_speed_kt: Optional[float]  # Peak wind since the last routine report.
    peak_wind_dir_degrees: Optional[int]  # Direction of the peak wind.
    peak_wind_time: Optional[str]  # Time of the peak wind.
    feels_like_f: Optional[float]  # Wind chill, heat index or temperature, by the NWS formulas.
    max_temp_6hr_f: Optional[float]  # Maximum of the last 6 hours.
    min_temp_6hr_f: Optional[float]  # Minimum of the last 6 hours.
    max_temp_24hr_f: Optional[float]  # Maximum of the 24 hours to midnight local standard time.
    min_temp_24hr_f: Optional[float]  # Minimum of the 24 hours to midnight local standard time.


ObservationColumn = Literal[
    "station_code",
    "observed_at",
    "observation_type",
    "source",
    "temp_f",
    "dewpoint_f",
    "wind_speed_kt",
    "altimeter_inhg",
    "visibility_miles",
    "sky_cover_1",
    "raw_metar",
    "relative_humidity",
    "wind_dir_degrees",
    "wind_gust_kt",
    "sea_level_pressure_mb",
    "weather_codes",
    "sky_base_1_ft",
    "sky_cover_2",
    "sky_base_2_ft",
    "sky_cover_3",
    "sky_base_3_ft",
    "sky_cover_4",
    "sky_base_4_ft",
    "precip_1hr_inches",
    "snow_depth_inches",
    "peak_wind_speed_kt",
    "peak_wind_dir_degrees",
    "peak_wind_time",
    "feels_like_f",
    "max_temp_6hr_f",
    "min_temp_6hr_f",
    "max_temp_24hr_f",
    "min_temp_24hr_f",
]


class ClimateRecord(TypedDict, total=False):
    station_code: str  # Station code.
    observation_date: str  # Climate date: midnight to midnight local standard time.
    high_temp_f: Optional[float]  # Daily high; null where the report does not have it.
    low_temp_f: Optional[float]  # Daily low; null where the report does not have it.
    report_type: str  # `final`, `correction`, `preliminary` or `estimated`.
    source: str  # Origin: `nws` or `iem` for official products, `acis` for estimates.
    product_id: Optional[str]  # Identifier of the issued product; null for an estimate.
    issued_at: Optional[str]  # Issue time of the product; null for an estimate.


ClimateRecordColumn = Literal[
    "station_code",
    "observation_date",
    "high_temp_f",
    "low_temp_f",
    "report_type",
    "source",
    "product_id",
    "issued_at",
]


class ClimateGap(TypedDict, total=False):
    station_code: str  # Station code.
    gap_start: str  # First missing date.
    gap_end: str  # Last missing date.
    missing_days: int  # Number of missing days.


class Trade(TypedDict, total=False):
    ts: int  # Time of the trade by the exchange, nanoseconds since 1970-01-01 UTC.
    recv_ts: Optional[int]  # When it was first received, nanoseconds; null where it was only fetched later.
    market_id: str  # Market.
    trade_id: Optional[str]  # Trade; null in old recordings that do not name it.
    price: float  # Price of the YES side or of the token, in cents.
    qty: float  # Contracts.
    aggressor: str  # What the taker did: bid (bought), ask (sold) or unknown.
    block: Optional[bool]  # Whether it was a block trade; null where the exchange does not say it.
    origin: str  # The best origin that has it: ws (recorded), import or rest (fetched later).


TradeColumn = Literal[
    "ts",
    "recv_ts",
    "market_id",
    "trade_id",
    "price",
    "qty",
    "aggressor",
    "block",
    "origin",
]


class Coverage(TypedDict, total=False):
    market_id: Optional[str]  # Market; null for all markets of a series on a date without a file.
    date: str  # UTC date.
    hour: str  # Start of the UTC hour; only with by=hour.
    state: str  # complete, partial, gap, not_listed, not_recorded or closed.
    condition: str  # available, degraded, missing or pending; only with by=day.
    known_s: float  # Seconds in which the book is known.
    gap_s: float  # Recorded seconds in which the book is unknown.
    gaps: int  # Gaps that begin here.
    events: int  # Book events, without those of keyframes.
    first_book_ts: Optional[int]  # First instant at which the book is known, nanoseconds since the epoch.
    snapshots: int  # How often the exchange stated the whole book.
    recv_lag_p50_ms: Optional[float]  # Median of the receive lag (receive time minus event time) in milliseconds, accurate to a tenth of its value; null without receive times, or if they are not after the event times.
    recv_lag_p99_ms: Optional[float]  # 99th percentile of the receive lag, likewise.
    file: Optional[str]  # Path of the file below the lake; null without one.


CoverageColumn = Literal[
    "market_id",
    "date",
    "hour",
    "state",
    "condition",
    "known_s",
    "gap_s",
    "gaps",
    "events",
    "first_book_ts",
    "snapshots",
    "recv_lag_p50_ms",
    "recv_lag_p99_ms",
    "file",
]


class Gap(TypedDict, total=False):
    market_id: Optional[str]  # Market; null for all markets of a series on dates without a file.
    from_ts: int  # Start, nanoseconds since the epoch.
    to_ts: int  # End, exclusive.
    cause: str  # interrupted, no_snapshot or not_recorded.


GapColumn = Literal[
    "market_id",
    "from_ts",
    "to_ts",
    "cause",
]


class Series(TypedDict, total=False):
    ticker: str  # Series ticker.
    measure_type: Literal["high", "low", "hourly"]  # What the markets settle on: the day's high or low, or the temperature of an hour.
    title: str  # Title.
    station_code: Optional[str]  # Station that settles it; null if Bookcast does not have the station.
    category: str  # Category, as the exchange has it; Climate and Weather for temperatures.
    frequency: str  # How often there is an event, as the exchange has it, such as daily or hourly.
    tags: List[str]  # Tags.
    active: bool  # Whether the exchange still lists it.
    last_seen_at: str  # When it was last listed, with milliseconds.


class Market(TypedDict, total=False):
    ticker: str  # Market ticker.
    event_ticker: str  # Ticker of the event that the strike belongs to.
    series_ticker: str  # Ticker of the series that the event belongs to.
    status: str  # Status, as the exchange has it: initialized, inactive, active, closed, determined, disputed, amended or finalized. The exchange may add others.
    result: str  # Result: yes, no or scalar; empty while there is none.
    close_time: str  # Close time, UTC.


class LakeVersion(TypedDict, total=False):
    id: str  # Value of the parameter version and of the header Lake-Version.
    created_at: str  # When this server first saw it.
    changed: int  # Files added, replaced or removed since the version before.
    partitions: List[str]  # Paths of these files, at most 1000. In the oldest version, all files are added ones.


class LakeFile(TypedDict, total=False):
    path: str  # Path below the lake.
    url: Optional[str]  # Address in object storage; null if the lake is not a copy of a bucket.
    bytes: int  # Size.
    rows: Optional[int]  # Rows; null where the footer cannot be read.
    sha256: str  # SHA-256 of the bytes, in hexadecimal.
    min_ts: Optional[str]  # First time of a row, with nanoseconds; null if the file does not state it.
    max_ts: Optional[str]  # Last time of a row, likewise.


class Health(TypedDict, total=False):
    status: Literal["ok", "degraded"]  # ok if everything below is ok.
    embedded_db: Literal["ok", "error"]  # The embedded analytical database.
    hosted_db: Literal["ok", "error", "off"]  # The relational database; off where the server runs without one.
    sync: Dict[str, Any]  # The last synchronization of the lake; without object storage, the last look at its directory.
    trades: Dict[str, Any]  # How many of the trades are proven complete; only after `bookcast verify --trades`.
    samples: Dict[str, Any]  # Present only if the server serves sample data, which is invented.


class Ready(TypedDict, total=False):
    status: Literal["ready"]


class Live(TypedDict, total=False):
    status: Literal["ok"]


_KINDS: Dict[str, Dict[str, str]] = {
    "Snapshot": {
        "ts": "nanoseconds",
        "market_id": "string",
        "best_bid": "integer",
        "best_ask": "integer",
        "spread": "integer",
        "mid": "number",
        "bids": "other",
        "asks": "other",
        "book_state": "string",
    },
    "LobDate": {
        "date": "date",
        "state": "string",
        "bytes": "integer",
        "rows": "integer?",
    },
    "BookAt": {
        "ts": "nanoseconds",
        "market_id": "string",
        "best_bid": "integer",
        "best_ask": "integer",
        "spread": "integer",
        "mid": "number",
        "bids": "other",
        "asks": "other",
        "provenance": "other",
    },
    "Candle": {
        "market_ticker": "string",
        "period_interval": "integer",
        "end_period_ts": "instant",
        "open": "integer",
        "high": "integer",
        "low": "integer",
        "close": "integer",
        "volume": "integer",
        "open_interest": "integer",
        "filled": "boolean",
    },
    "Observation": {
        "station_code": "string",
        "observed_at": "instant",
        "observation_type": "string",
        "source": "string",
        "temp_f": "number?",
        "dewpoint_f": "number?",
        "wind_speed_kt": "number?",
        "altimeter_inhg": "number?",
        "visibility_miles": "number?",
        "sky_cover_1": "string?",
        "raw_metar": "string?",
        "relative_humidity": "number?",
        "wind_dir_degrees": "integer?",
        "wind_gust_kt": "number?",
        "sea_level_pressure_mb": "number?",
        "weather_codes": "string?",
        "sky_base_1_ft": "integer?",
        "sky_cover_2": "string?",
        "sky_base_2_ft": "integer?",
        "sky_cover_3": "string?",
        "sky_base_3_ft": "integer?",
        "sky_cover_4": "string?",
        "sky_base_4_ft": "integer?",
        "precip_1hr_inches": "number?",
        "snow_depth_inches": "number?",
        "peak_wind_speed_kt": "number?",
        "peak_wind_dir_degrees": "integer?",
        "peak_wind_time": "instant?",
        "feels_like_f": "number?",
        "max_temp_6hr_f": "number?",
        "min_temp_6hr_f": "number?",
        "max_temp_24hr_f": "number?",
        "min_temp_24hr_f": "number?",
    },
    "ClimateRecord": {
        "station_code": "string",
        "observation_date": "date",
        "high_temp_f": "number?",
        "low_temp_f": "number?",
        "report_type": "string",
        "source": "string",
        "product_id": "string?",
        "issued_at": "instant?",
    },
    "ClimateGap": {
        "station_code": "string",
        "gap_start": "date",
        "gap_end": "date",
        "missing_days": "integer",
    },
    "Trade": {
        "ts": "nanoseconds",
        "recv_ts": "integer?",
        "market_id": "string",
        "trade_id": "string?",
        "price": "number",
        "qty": "number",
        "aggressor": "string",
        "block": "boolean?",
        "origin": "string",
    },
    "Coverage": {
        "market_id": "string?",
        "date": "date",
        "hour": "instant",
        "state": "string",
        "condition": "string",
        "known_s": "number",
        "gap_s": "number",
        "gaps": "integer",
        "events": "integer",
        "first_book_ts": "integer?",
        "snapshots": "integer",
        "recv_lag_p50_ms": "number?",
        "recv_lag_p99_ms": "number?",
        "file": "string?",
    },
    "Gap": {
        "market_id": "string?",
        "from_ts": "integer",
        "to_ts": "integer",
        "cause": "string",
    },
    "Series": {
        "ticker": "string",
        "measure_type": "string",
        "title": "string",
        "station_code": "string?",
        "category": "string",
        "frequency": "string",
        "tags": "other",
        "active": "boolean",
        "last_seen_at": "instant",
    },
    "Market": {
        "ticker": "string",
        "event_ticker": "string",
        "series_ticker": "string",
        "status": "string",
        "result": "string",
        "close_time": "instant",
    },
    "LakeVersion": {
        "id": "string",
        "created_at": "instant",
        "changed": "integer",
        "partitions": "other",
    },
    "LakeFile": {
        "path": "string",
        "url": "string?",
        "bytes": "integer",
        "rows": "integer?",
        "sha256": "string",
        "min_ts": "instant?",
        "max_ts": "instant?",
    },
}


class _Endpoints(_Requests):
    def lob(
        self,
        *,
        market: Optional[str] = None,
        series: Optional[str] = None,
        source: Optional[Literal["kalshi", "polymarket"]] = None,
        date: Optional[Union[str, datetime.date]] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        interval: Optional[int] = None,
        levels: Optional[int] = None,
        hour: Optional[int] = None,
        format: Optional[Literal["json", "csv", "parquet", "ndjson"]] = None,
        columns: Optional[Sequence[SnapshotColumn]] = None,
        nulls: Optional[bool] = None,
        on_gap: Optional[Literal["empty", "skip", "hold", "fail"]] = None,
        after: Optional[str] = None,
        limit: Optional[int] = None,
        version: Optional[str] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[Snapshot]":
        """Order-book snapshots at a regular interval, rebuilt from recorded deltas.

        market: Market ticker; for polymarket <condition_id>:<token_id>, or <condition_id> for
            both its tokens. Give exactly one of market and series.
        series: Series ticker, or the ticker of one event of a series: all its markets.
        source: Data source. Default: kalshi.
        date: One UTC date. Give either date, or from and to.
        start: First UTC date of a range.
        end: Last UTC date of a range, of at most 31 days.
        interval: Seconds from one snapshot to the next. A whole number from 1 to 3600. Default:
            60.
        levels: Book levels per side. A whole number from 1 to 50. Default: 10.
        hour: Only the snapshots of this UTC hour. A whole number from 0 to 23.
        format: Of bytes and files; rows are read in the form that suits them.
        columns: Comma-separated columns, in the order wanted. Default: all but book_state.
        nulls: true: best_bid and best_ask are null without a level on that side, spread and mid
            unless both sides have one. Default: false.
        on_gap: Rows whose book is lost: empty gives them without levels, hold with those of the
            last book, skip leaves them out, fail refuses the request with 409. Default: empty.
        after: Only the rows after <ts>, nanoseconds in 19 digits or 0, or after the row
            <ts>,<market_id>. Rows are ordered by ts, then market_id.
        limit: Rows at most, of all pages together. Default: all there are.
        version: A version of the lake, as Lake-Version or /api/v1/versions name it: the server
            reads only its files, or refuses the request.
        """
        form = _Form("/api/v1/lob", "Snapshot", ("json", "csv", "parquet", "ndjson",), None, False, ("date", "from", "to",))
        parameters: Dict[str, Any] = {
            "market": market,
            "series": series,
            "source": source,
            "date": date,
            "from": start,
            "to": end,
            "interval": interval,
            "levels": levels,
            "hour": hour,
            "format": format,
            "columns": columns,
            "nulls": nulls,
            "on_gap": on_gap,
            "after": after,
            "limit": limit,
            "version": version,
        }
        answer: Answer[Snapshot] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def lob_receipt(
        self,
        *,
        market: Optional[str] = None,
        series: Optional[str] = None,
        source: Optional[Literal["kalshi", "polymarket"]] = None,
        date: Optional[Union[str, datetime.date]] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        interval: Optional[int] = None,
        levels: Optional[int] = None,
        hour: Optional[int] = None,
        format: Optional[Literal["json", "csv", "parquet", "ndjson"]] = None,
        columns: Optional[Sequence[SnapshotColumn]] = None,
        nulls: Optional[bool] = None,
        on_gap: Optional[Literal["empty", "skip", "hold", "fail"]] = None,
        after: Optional[str] = None,
        limit: Optional[int] = None,
        version: Optional[str] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> LobReceipt:
        """Rows, bytes and digest of an order-book answer.

        market: Market ticker; for polymarket <condition_id>:<token_id>, or <condition_id> for
            both its tokens. Give exactly one of market and series.
        series: Series ticker, or the ticker of one event of a series: all its markets.
        source: Data source. Default: kalshi.
        date: One UTC date. Give either date, or from and to.
        start: First UTC date of a range.
        end: Last UTC date of a range, of at most 31 days.
        interval: Seconds from one snapshot to the next. A whole number from 1 to 3600. Default:
            60.
        levels: Book levels per side. A whole number from 1 to 50. Default: 10.
        hour: Only the snapshots of this UTC hour. A whole number from 0 to 23.
        format: Of bytes and files; rows are read in the form that suits them.
        columns: Comma-separated columns, in the order wanted. Default: all but book_state.
        nulls: true: best_bid and best_ask are null without a level on that side, spread and mid
            unless both sides have one. Default: false.
        on_gap: Rows whose book is lost: empty gives them without levels, hold with those of the
            last book, skip leaves them out, fail refuses the request with 409. Default: empty.
        after: Only the rows after <ts>, nanoseconds in 19 digits or 0, or after the row
            <ts>,<market_id>. Rows are ordered by ts, then market_id.
        limit: Rows at most, of all pages together. Default: all there are.
        version: A version of the lake, as Lake-Version or /api/v1/versions name it: the server
            reads only its files, or refuses the request.
        """
        form = _Form("/api/v1/lob/receipt", "LobReceipt", ("json",), None, False, ("date", "from", "to",))
        parameters: Dict[str, Any] = {
            "market": market,
            "series": series,
            "source": source,
            "date": date,
            "from": start,
            "to": end,
            "interval": interval,
            "levels": levels,
            "hour": hour,
            "format": format,
            "columns": columns,
            "nulls": nulls,
            "on_gap": on_gap,
            "after": after,
            "limit": limit,
            "version": version,
        }
        answer: Answer[LobReceipt] = Answer(self._connection(timeout, on_progress), form, parameters)
        return self._one(answer.target, timeout, on_progress)

    def lob_dates(
        self,
        *,
        series: str,
        source: Optional[Literal["kalshi", "polymarket"]] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[LobDate]":
        """UTC dates of a series or event that have order books.

        series: Series ticker, or the ticker of one event of a series.
        source: Data source. Default: kalshi.
        start: First UTC date. Default: the first date with data.
        end: Last UTC date. Default: the last date with data.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Records to skip. A whole number from 0 to 1000000000. Default: 0.
        """
        form = _Form("/api/v1/lob/dates", "LobDate", ("json",), 10000, False, ("from", "to",))
        parameters: Dict[str, Any] = {
            "series": series,
            "source": source,
            "from": start,
            "to": end,
            "limit": limit,
            "offset": offset,
        }
        answer: Answer[LobDate] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def lob_at(
        self,
        *,
        market: Optional[str] = None,
        series: Optional[str] = None,
        event: Optional[str] = None,
        source: Optional[Literal["kalshi", "polymarket"]] = None,
        ts: str,
        levels: Optional[int] = None,
        by: Optional[Literal["exchange", "received"]] = None,
        version: Optional[str] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[BookAt]":
        """Order books at one instant, exact to the nanosecond, with the provenance of each.

        market: One market, named as in /lob. Give exactly one of market, series and event.
        series: Series ticker: all its markets.
        event: Ticker of one event of a series: all its markets.
        source: Data source. Default: kalshi.
        ts: The instant: RFC 3339 with a zone and up to nine places of a second (a + in it is
            written %2B), or nanoseconds since the Unix epoch in 19 digits.
        levels: Book levels per side. A whole number from 1 to 50. Default: 10.
        by: exchange: the events that happened by the instant. received: those that the recorder
            had received by then; the books of midnight count as received. Default: exchange.
        version: A version of the lake, as Lake-Version or /api/v1/versions name it: the server
            reads only its files, or refuses the request.
        """
        form = _Form("/api/v1/lob/at", "BookAt", ("json",), None, False, ())
        parameters: Dict[str, Any] = {
            "market": market,
            "series": series,
            "event": event,
            "source": source,
            "ts": ts,
            "levels": levels,
            "by": by,
            "version": version,
        }
        answer: Answer[BookAt] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def lob_estimate(
        self,
        *,
        market: Optional[str] = None,
        series: Optional[str] = None,
        source: Optional[Literal["kalshi", "polymarket"]] = None,
        date: Optional[Union[str, datetime.date]] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        interval: Optional[int] = None,
        levels: Optional[int] = None,
        hour: Optional[int] = None,
        format: Optional[Literal["json", "csv", "parquet", "ndjson"]] = None,
        columns: Optional[Sequence[SnapshotColumn]] = None,
        nulls: Optional[bool] = None,
        on_gap: Optional[Literal["empty", "skip", "hold", "fail"]] = None,
        after: Optional[str] = None,
        limit: Optional[int] = None,
        version: Optional[str] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> LobEstimate:
        """Rows, bytes and files of an order-book answer, and how to cut one that is too large.

        market: Market ticker; for polymarket <condition_id>:<token_id>, or <condition_id> for
            both its tokens. Give exactly one of market and series.
        series: Series ticker, or the ticker of one event of a series: all its markets.
        source: Data source. Default: kalshi.
        date: One UTC date. Give either date, or from and to.
        start: First UTC date of a range.
        end: Last UTC date of a range, of at most 31 days.
        interval: Seconds from one snapshot to the next. A whole number from 1 to 3600. Default:
            60.
        levels: Book levels per side. A whole number from 1 to 50. Default: 10.
        hour: Only the snapshots of this UTC hour. A whole number from 0 to 23.
        format: Of bytes and files; rows are read in the form that suits them.
        columns: Comma-separated columns, in the order wanted. Default: all but book_state.
        nulls: true: best_bid and best_ask are null without a level on that side, spread and mid
            unless both sides have one. Default: false.
        on_gap: Rows whose book is lost: empty gives them without levels, hold with those of the
            last book, skip leaves them out, fail refuses the request with 409. Default: empty.
        after: Only the rows after <ts>, nanoseconds in 19 digits or 0, or after the row
            <ts>,<market_id>. Rows are ordered by ts, then market_id.
        limit: Rows at most, of all pages together. Default: all there are.
        version: A version of the lake, as Lake-Version or /api/v1/versions name it: the server
            reads only its files, or refuses the request.
        """
        form = _Form("/api/v1/lob/estimate", "LobEstimate", ("json",), None, False, ("date", "from", "to",))
        parameters: Dict[str, Any] = {
            "market": market,
            "series": series,
            "source": source,
            "date": date,
            "from": start,
            "to": end,
            "interval": interval,
            "levels": levels,
            "hour": hour,
            "format": format,
            "columns": columns,
            "nulls": nulls,
            "on_gap": on_gap,
            "after": after,
            "limit": limit,
            "version": version,
        }
        answer: Answer[LobEstimate] = Answer(self._connection(timeout, on_progress), form, parameters)
        return self._one(answer.target, timeout, on_progress)

    def candles(
        self,
        *,
        market: Optional[str] = None,
        event: Optional[str] = None,
        station: Optional[str] = None,
        series: Optional[str] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        interval: Optional[Literal[1, 5, 15, 30, 60, 1440]] = None,
        fill: Optional[bool] = None,
        aggregate: Optional[int] = None,
        tz: Optional[str] = None,
        format: Optional[Literal["json", "csv", "parquet", "ndjson"]] = None,
        columns: Optional[Sequence[CandleColumn]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        version: Optional[str] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[Candle]":
        """Candles of temperature markets.

        market: Market ticker.
        event: Event ticker.
        station: Station code, three letters or ICAO.
        series: Series ticker, or the ticker of one event of a series. A candle must match all
            given selectors.
        start: Start: candles whose period ends after it. RFC 3339 or a UTC date. Default: 24
            hours ago.
        end: End: candles whose period ends at or before it. RFC 3339, or a UTC date, which
            means its end. Default: now.
        interval: Length of a candle in minutes. One of 1, 5, 15, 30, 60, 1440. Default: 1.
        fill: Fill gaps between traded candles. Only for json; the other formats ignore it.
            Default: true.
        aggregate: Aggregate to this many minutes, a multiple of interval. Buckets are aligned
            to local midnight of tz; a candle is returned if its own end lies in the range. A
            whole number from 1 to 1440.
        tz: Zone of the time labels: UTC, station (each row's station) or an IANA name. Filters
            stay UTC. Default: UTC.
        format: Of bytes and files; rows are read in the form that suits them.
        columns: Comma-separated columns, in the order wanted. Default: all.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Rows to skip. If limit cuts an answer short, its Link header has the address of
            the next page. A whole number from 0 to 10000000. Default: 0.
        version: A version of the lake, as Lake-Version or /api/v1/versions name it: the server
            reads only its files, or refuses the request.
        """
        form = _Form("/api/v1/candles", "Candle", ("json", "csv", "parquet", "ndjson",), 500000, True, ())
        parameters: Dict[str, Any] = {
            "market": market,
            "event": event,
            "station": station,
            "series": series,
            "from": start,
            "to": end,
            "interval": interval,
            "fill": fill,
            "aggregate": aggregate,
            "tz": tz,
            "format": format,
            "columns": columns,
            "limit": limit,
            "offset": offset,
            "version": version,
        }
        answer: Answer[Candle] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def observations(
        self,
        *,
        station: Optional[str] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        type: Optional[Literal["METAR", "SPECI"]] = None,
        units: Optional[Literal["raw", "metric", "imperial"]] = None,
        tz: Optional[str] = None,
        format: Optional[Literal["json", "csv", "parquet", "ndjson"]] = None,
        columns: Optional[Sequence[ObservationColumn]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        version: Optional[str] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[Observation]":
        """Weather observations (METAR and SPECI).

        station: Station code, three letters or ICAO.
        start: Start, inclusive: RFC 3339 or a UTC date. Default: 24 hours ago.
        end: End, exclusive: RFC 3339, or a UTC date, which means its end. Default: now.
        type: Only routine (METAR) or special (SPECI) reports.
        units: Units of the values. Field names keep their raw suffix. Default: raw.
        tz: Zone of the time labels: UTC, station (each row's station) or an IANA name. Filters
            stay UTC. Default: UTC.
        format: Of bytes and files; rows are read in the form that suits them.
        columns: Comma-separated columns, in the order wanted. Default: all.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Rows to skip. If limit cuts an answer short, its Link header has the address of
            the next page. A whole number from 0 to 10000000. Default: 0.
        version: A version of the lake, as Lake-Version or /api/v1/versions name it: the server
            reads only its files, or refuses the request.
        """
        form = _Form("/api/v1/observations", "Observation", ("json", "csv", "parquet", "ndjson",), 500000, False, ())
        parameters: Dict[str, Any] = {
            "station": station,
            "from": start,
            "to": end,
            "type": type,
            "units": units,
            "tz": tz,
            "format": format,
            "columns": columns,
            "limit": limit,
            "offset": offset,
            "version": version,
        }
        answer: Answer[Observation] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def climate(
        self,
        *,
        station: Optional[str] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        units: Optional[Literal["raw", "metric"]] = None,
        revisions: Optional[bool] = None,
        format: Optional[Literal["json", "csv", "parquet", "ndjson"]] = None,
        columns: Optional[Sequence[ClimateRecordColumn]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[ClimateRecord]":
        """Official daily climate reports, with estimates for dates without a report.

        station: Station code, three letters or ICAO.
        start: First climate date.
        end: Last climate date.
        units: raw: degrees F; metric: degrees C. Field names keep their raw suffix. Default:
            raw.
        revisions: true: every product of a date instead of the one that settles. Default:
            false.
        format: Of bytes and files; rows are read in the form that suits them.
        columns: Comma-separated columns, in the order wanted. Default: all.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Rows to skip. If limit cuts an answer short, its Link header has the address of
            the next page. A whole number from 0 to 10000000. Default: 0.
        """
        form = _Form("/api/v1/climate", "ClimateRecord", ("json", "csv", "parquet", "ndjson",), 500000, False, ("from", "to",))
        parameters: Dict[str, Any] = {
            "station": station,
            "from": start,
            "to": end,
            "units": units,
            "revisions": revisions,
            "format": format,
            "columns": columns,
            "limit": limit,
            "offset": offset,
        }
        answer: Answer[ClimateRecord] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def climate_gaps(
        self,
        *,
        station: str,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        official: Optional[bool] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[ClimateGap]":
        """Missing dates in a station's daily climate reports.

        station: Station code, three letters or ICAO.
        start: First date. Default: 5 years ago.
        end: Last date. Default: today. The range is at most 10 years.
        official: true: a date that has only an estimate is missing too. Default: false.
        """
        form = _Form("/api/v1/analysis/climate-gaps", "ClimateGap", ("json",), None, False, ("from", "to",))
        parameters: Dict[str, Any] = {
            "station": station,
            "from": start,
            "to": end,
            "official": official,
        }
        answer: Answer[ClimateGap] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def trades(
        self,
        *,
        market: Optional[str] = None,
        event: Optional[str] = None,
        series: Optional[str] = None,
        source: Optional[Literal["kalshi", "polymarket"]] = None,
        date: Optional[Union[str, datetime.date]] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        format: Optional[Literal["json", "csv", "parquet", "ndjson"]] = None,
        columns: Optional[Sequence[TradeColumn]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        version: Optional[str] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[Trade]":
        """Trades of markets.

        market: kalshi: Market ticker; polymarket: <condition_id>:<token_id>, or <condition_id>
            for both its tokens. Give at least one of market, event and series; a trade must
            match all that are given.
        event: Event ticker: the tickers of its markets begin with it.
        series: Series ticker, or the ticker of one event of a series.
        source: Data source. Default: kalshi.
        date: One UTC date, instead of from and to.
        start: Start, inclusive: RFC 3339 or a UTC date. Default: 24 hours ago.
        end: End, exclusive: RFC 3339, or a UTC date, which means its end. Default: now.
        format: Of bytes and files; rows are read in the form that suits them.
        columns: Comma-separated columns, in the order wanted. Default: all.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Rows to skip. If limit cuts an answer short, its Link header has the address of
            the next page. A whole number from 0 to 10000000. Default: 0.
        version: A version of the lake, as Lake-Version or /api/v1/versions name it: the server
            reads only its files, or refuses the request.
        """
        form = _Form("/api/v1/trades", "Trade", ("json", "csv", "parquet", "ndjson",), 500000, False, ("date",))
        parameters: Dict[str, Any] = {
            "market": market,
            "event": event,
            "series": series,
            "source": source,
            "date": date,
            "from": start,
            "to": end,
            "format": format,
            "columns": columns,
            "limit": limit,
            "offset": offset,
            "version": version,
        }
        answer: Answer[Trade] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def coverage(
        self,
        *,
        market: Optional[str] = None,
        series: Optional[str] = None,
        source: Optional[Literal["kalshi", "polymarket"]] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        by: Optional[Literal["hour", "day"]] = None,
        format: Optional[Literal["json", "csv", "parquet", "ndjson"]] = None,
        columns: Optional[Sequence[CoverageColumn]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[Coverage]":
        """How much of each hour or date of a market is known.

        market: Market ticker; for polymarket <condition_id>:<token_id>, or <condition_id> for
            both its tokens. Give exactly one of market and series.
        series: Series ticker, or the ticker of one event of a series: all its markets.
        source: Data source. Default: kalshi.
        start: First UTC date. Default: the first date with data.
        end: Last UTC date. Default: the last date with data. With from and to, dates without a
            file are listed too.
        by: One row for each hour or for each date of a market. Default: day.
        format: Of bytes and files; rows are read in the form that suits them.
        columns: Comma-separated columns, in the order wanted. Default: all.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Rows to skip. If limit cuts an answer short, its Link header has the address of
            the next page. A whole number from 0 to 10000000. Default: 0.
        """
        form = _Form("/api/v1/coverage", "Coverage", ("json", "csv", "parquet", "ndjson",), 500000, False, ("from", "to",))
        parameters: Dict[str, Any] = {
            "market": market,
            "series": series,
            "source": source,
            "from": start,
            "to": end,
            "by": by,
            "format": format,
            "columns": columns,
            "limit": limit,
            "offset": offset,
        }
        answer: Answer[Coverage] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def gaps(
        self,
        *,
        market: Optional[str] = None,
        series: Optional[str] = None,
        source: Optional[Literal["kalshi", "polymarket"]] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        format: Optional[Literal["json", "csv", "parquet", "ndjson"]] = None,
        columns: Optional[Sequence[GapColumn]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[Gap]":
        """When the book of a market is unknown.

        market: Market ticker; for polymarket <condition_id>:<token_id>, or <condition_id> for
            both its tokens. Give exactly one of market and series.
        series: Series ticker, or the ticker of one event of a series: all its markets.
        source: Data source. Default: kalshi.
        start: First UTC date. Default: the first date with data.
        end: Last UTC date. Default: the last date with data. With from and to, dates without a
            file are listed too.
        format: Of bytes and files; rows are read in the form that suits them.
        columns: Comma-separated columns, in the order wanted. Default: all.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Rows to skip. If limit cuts an answer short, its Link header has the address of
            the next page. A whole number from 0 to 10000000. Default: 0.
        """
        form = _Form("/api/v1/gaps", "Gap", ("json", "csv", "parquet", "ndjson",), 500000, False, ("from", "to",))
        parameters: Dict[str, Any] = {
            "market": market,
            "series": series,
            "source": source,
            "from": start,
            "to": end,
            "format": format,
            "columns": columns,
            "limit": limit,
            "offset": offset,
        }
        answer: Answer[Gap] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def series(
        self,
        *,
        active: Optional[bool] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[Series]":
        """The series of the catalogue, by ticker.

        active: true: only active series; false: only inactive series.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Records to skip. A whole number from 0 to 1000000000. Default: 0.
        """
        form = _Form("/api/v1/series", "Series", ("json",), 10000, False, ())
        parameters: Dict[str, Any] = {
            "active": active,
            "limit": limit,
            "offset": offset,
        }
        answer: Answer[Series] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def series_named(
        self,
        ticker: str,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> Series:
        """One series.
        """
        return self._one("/api/v1/series/" + _quoted(ticker), timeout, on_progress)

    def markets(
        self,
        *,
        series: Optional[str] = None,
        station: Optional[str] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[Market]":
        """The markets of the catalogue, by ticker. Conditions combine with AND.

        series: Series ticker, or the ticker of one event.
        station: Station code, NYC or KNYC.
        start: Earliest close time: RFC 3339, or a date, which means its start.
        end: Latest close time, inclusive: RFC 3339, or a date, which means its end.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Records to skip. A whole number from 0 to 1000000000. Default: 0.
        """
        form = _Form("/api/v1/markets", "Market", ("json",), 10000, False, ())
        parameters: Dict[str, Any] = {
            "series": series,
            "station": station,
            "from": start,
            "to": end,
            "limit": limit,
            "offset": offset,
        }
        answer: Answer[Market] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def market_named(
        self,
        ticker: str,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> Market:
        """One market.
        """
        return self._one("/api/v1/markets/" + _quoted(ticker), timeout, on_progress)

    def versions(
        self,
        *,
        dataset: Literal["lob", "trades", "candles", "observations"],
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[LakeVersion]":
        """The versions of a dataset of the lake, the newest first.

        dataset: Order books (lob), trades, candles or observations.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Records to skip. A whole number from 0 to 1000000000. Default: 0.
        """
        form = _Form("/api/v1/versions", "LakeVersion", ("json",), 10000, False, ())
        parameters: Dict[str, Any] = {
            "dataset": dataset,
            "limit": limit,
            "offset": offset,
        }
        answer: Answer[LakeVersion] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def files(
        self,
        *,
        dataset: Literal["lob", "trades", "candles", "observations"],
        source: Optional[Literal["kalshi", "polymarket"]] = None,
        series: Optional[str] = None,
        station: Optional[str] = None,
        start: Optional[Union[str, datetime.date]] = None,
        end: Optional[Union[str, datetime.date]] = None,
        limit: Optional[int] = None,
        offset: Optional[int] = None,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> "Answer[LakeFile]":
        """The files of the lake with size, rows, checksum and times, by path.

        dataset: Order books (lob), trades, candles or observations.
        source: Only this exchange; for lob and trades.
        series: Only this series, as its directory names it; for lob, trades and candles.
        station: Only this station, three letters or ICAO; for observations.
        start: First UTC date: files whose date, month or year ends before it are left out.
        end: Last UTC date: files whose date, month or year begins after it are left out.
        limit: Rows at most, of all pages together. Default: all there are.
        offset: Records to skip. A whole number from 0 to 1000000000. Default: 0.
        """
        form = _Form("/api/v1/files", "LakeFile", ("json",), 10000, False, ("from", "to",))
        parameters: Dict[str, Any] = {
            "dataset": dataset,
            "source": source,
            "series": series,
            "station": station,
            "from": start,
            "to": end,
            "limit": limit,
            "offset": offset,
        }
        answer: Answer[LakeFile] = Answer(self._connection(timeout, on_progress), form, parameters)
        return answer

    def health(
        self,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> Health:
        """State of the stores and the lake. Always 200 while the process answers.
        """
        return self._one("/health", timeout, on_progress)

    def ready(
        self,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> Ready:
        """Whether the server is ready for requests: 200 once the catalogue has been read, 503
        before and while stopping.
        """
        return self._one("/readyz", timeout, on_progress)

    def live(
        self,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[Callable[["Progress"], None]] = None,
    ) -> Live:
        """Whether the process answers at all.
        """
        return self._one("/livez", timeout, on_progress)


# --- end of what the build writes


class Client(_Endpoints):
    """A Bookcast server.

    url: such as http://localhost:8080; a path in it precedes the path of every request. api_key: sent as `Authorization:
    Bearer …`. timeout: the longest time without data from the server, in seconds. attempts: the maximum number of attempts
    if the server responds with 429 or 503, or the connection is refused or reset before a response. first_wait: seconds
    before the second attempt, doubled with each attempt up to longest_wait; if the server asks for longer, the request fails.
    resumes: how often a response that breaks off is requested again without gaining 64 KiB. compress: whether to request
    gzip. on_progress: called after every chunk of a response.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: Optional[str] = None,
        timeout: float = 60.0,
        attempts: int = 8,
        first_wait: float = 0.25,
        longest_wait: float = 30.0,
        resumes: int = 3,
        compress: bool = True,
        on_progress: Optional[Callable[[Progress], None]] = None,
    ) -> None:
        try:
            base = urllib.parse.urlsplit(url.rstrip("/"))
            is_address = base.scheme in ("http", "https") and bool(base.hostname) and base.port != 0
        except ValueError:
            # An invalid port or unbalanced brackets.
            is_address = False
        if not is_address:
            raise BookcastError(f"The server's address must be one of http or https, not {url}.")
        if api_key is not None and not re.fullmatch("[ -~]*", api_key):
            raise BookcastError("An API key has only characters of ASCII, and no line break.")
        headers = {"Accept-Encoding": "gzip" if compress else "identity", "User-Agent": f"bookcast/{__version__}"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        super().__init__(_Connection(base, headers, timeout, attempts, first_wait, longest_wait, resumes, on_progress))

    def open_api(self, *, timeout: Optional[float] = None) -> Any:
        """The server's OpenAPI 3.1 document."""
        return self._one("/openapi.json", timeout, None)

    def metrics(self, *, timeout: Optional[float] = None) -> str:
        """The server's metrics in the Prometheus text format."""
        transfer = _Transfer(self._connection(timeout, None), "/metrics", _Cancelling())
        return b"".join(transfer.chunks()).decode()


def _export_chunks(place: str, key: str) -> Iterator[bytes]:
    """The bytes of an object of an export. Raises FileNotFoundError if there is none."""
    if re.match("https?://", place) is None:
        source: Any = open(os.path.join(place, *key.split("/")), "rb")
    else:
        try:
            source = urllib.request.urlopen(f"{place}/{urllib.parse.quote(key)}", timeout=60)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise FileNotFoundError(key) from None
            raise BookcastError(f"{place}/{key} answers {error.code}.") from error
    with source:
        while True:
            chunk = source.read(1024 * 1024)
            if not chunk:
                return
            yield chunk


def _export_text(place: str, key: str) -> Optional[bytes]:
    try:
        return b"".join(_export_chunks(place, key))
    except FileNotFoundError:
        return None


def verify_export(directory_or_address: str) -> List[str]:
    """Reads every byte of an export of `bookcast export` and returns one sentence for each object that is missing or wrong.
    In a directory it also names files that are not part of the export.

    directory_or_address: the directory, or the http or https address, that has manifest.json. Raises BookcastError if there
    is no manifest.
    """
    place = str(directory_or_address).rstrip("/")
    text = _export_text(place, "manifest.json")
    manifest = None if text is None else json.loads(text)
    if text is None or manifest.get("bookcast_export") != 1:
        raise BookcastError(f"{place} is not a finished export: it has no manifest.json.")
    parts = manifest["parts"]
    problems = []
    sums = [(part["sha256"], part["key"]) for part in parts] + [(hashlib.sha256(text).hexdigest(), "manifest.json")]
    found = _export_text(place, "SHA256SUMS")
    if found is None:
        problems.append("SHA256SUMS is missing")
    elif found.decode() != "".join(f"{sha256}  {key}\n" for sha256, key in sums):
        problems.append("SHA256SUMS does not fit manifest.json")
    for part in parts:
        key, digest, count = part["key"], hashlib.sha256(), 0
        try:
            for chunk in _export_chunks(place, key):
                digest.update(chunk)
                count += len(chunk)
        except FileNotFoundError:
            problems.append(f"{key} is missing")
            continue
        if count != part["bytes"]:
            problems.append(f"{key} has {count} bytes, not {part['bytes']}")
        elif digest.hexdigest() != part["sha256"]:
            problems.append(f"{key} has SHA-256 {digest.hexdigest()}, not {part['sha256']}")
    if re.match("https?://", place) is None:
        known = {key for _, key in sums} | {"SHA256SUMS"}
        for folder, _, names in os.walk(place):
            for name in sorted(names):
                key = os.path.relpath(os.path.join(folder, name), place).replace(os.sep, "/")
                if key not in known and not key.startswith("_parts/"):
                    problems.append(f"{key} is not part of this export")
    return problems

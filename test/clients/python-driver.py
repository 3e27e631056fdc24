"""Runs one call of the Python client and prints what came of it as JSON, for the tests that both clients go through.

Reads {"url", "options", "method", "positional", "parameters", "action", "path", "raw"} from its first argument. Actions:
rows, file, bytes, frame, table, one, cancel (from another thread, once a batch has come), leave (the loop, after ten rows), count
(rows alone, with the memory they took). The error of a client is part of the result; any other error ends the program.
"""

import json
import resource
import sys
import threading
import time

import bookcast


def frame_columns(frame):
    """Columns as lists with None for what is missing, and the names of their types."""
    import pandas

    values = {}
    for name in frame.columns:
        column = frame[name]
        if str(column.dtype).startswith("datetime64"):
            texts = [None if pandas.isna(value) else value.isoformat() for value in column]
            values[name] = texts
        else:
            values[name] = [
                None if not isinstance(value, list) and pandas.isna(value) else value for value in column.tolist()
            ]
    return {"dtypes": {name: str(frame[name].dtype) for name in frame.columns}, "values": values}


def table_rows(table):
    """Rows and names of types of a pyarrow.Table or a polars.DataFrame."""
    if hasattr(table, "to_pylist"):
        types = {field.name: str(field.type) for field in table.schema}
        return {"types": types, "rows": table.to_pylist()}
    types = {name: str(kind) for name, kind in table.schema.items()}
    return {"types": types, "rows": table.to_dicts()}


def plain(value):
    """Times as text; what pandas gives are numbers of its own."""
    return value.isoformat() if hasattr(value, "isoformat") else value.item()


def cancelled_answer(answer):
    began = threading.Event()

    def cancel_when_begun():
        began.wait()
        answer.cancel()

    thread = threading.Thread(target=cancel_when_begun)
    thread.start()
    rows = 0
    try:
        for batch in answer.batches():
            rows += len(batch)
            began.set()
    finally:
        began.set()
        thread.join()
    return rows


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def counted(answer):
    before = peak_mb()
    rows = 0
    for _ in answer:
        rows += 1
    return {"count": rows, "peakMb": peak_mb() - before}


def timed(answer):
    """Seconds of processor and clock for all rows, here and with urllib and json.loads a line."""
    import urllib.request

    began = time.perf_counter()
    rows = sum(1 for _ in answer)
    ours = time.perf_counter() - began
    began = time.perf_counter()
    bare = 0
    with urllib.request.urlopen(answer.url("ndjson")) as response:
        for line in response:
            json.loads(line)
            bare += 1
    return {"rows": rows, "bareRows": bare, "ours": ours, "bare": time.perf_counter() - began}


def run(call):
    progress = []
    options = dict(call.get("options") or {})
    if call.get("progress"):
        options["on_progress"] = lambda reached: progress.append([reached.rows, reached.bytes])
    client = bookcast.Client(call["url"], **options)
    answer = getattr(client, call["method"])(*call.get("positional", []), **call.get("parameters", {}))
    action = call["action"]
    if action == "one":
        result = {"value": answer}
    elif action == "rows":
        rows = answer.to_list()
        result = {"rows": rows, "missingDates": answer.missing_dates}
    elif action == "file":
        result = {"bytes": answer.to_file(call["path"])}
    elif action == "bytes":
        result = {"bytes": sum(len(chunk) for chunk in answer.iter_bytes())}
    elif action == "frame":
        result = frame_columns(answer.to_df(raw=bool(call.get("raw"))))
    elif action == "library":
        result = {"value": getattr(answer, call["library"])()}
    elif action == "table":
        result = table_rows(getattr(answer, call["library"])(raw=bool(call.get("raw"))))
    elif action == "cancel":
        result = {"rows": cancelled_answer(answer)}
    elif action == "leave":
        rows = []
        for row in answer:
            rows.append(row)
            if len(rows) == 10:
                break
        result = {"rows": rows}
    elif action == "count":
        result = counted(answer)
    elif action == "timed":
        result = timed(answer)
    else:
        raise ValueError(action)
    return {**result, "progress": progress}


def error_of(error):
    described = {"type": type(error).__name__, "message": str(error)}
    for name in ("status", "code", "errors", "rows", "bytes"):
        if hasattr(error, name):
            described[name] = getattr(error, name)
    return {"error": described}


def main():
    for line in sys.stdin:
        call = json.loads(line)
        try:
            result = run(call)
        except bookcast.BookcastError as error:
            result = error_of(error)
        print(json.dumps(result, default=plain), flush=True)


main()

"""What client-child.ts is for TypeScript, for Python: the client, or urllib and json.loads a line."""

import json
import sys
import time
import urllib.request

import bookcast


def memory_mb(field):
    # Not ru_maxrss, which begins with what the process held that started this one.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1000 for line in status if line.startswith(field))


def read_with_client(answer):
    rows = 0
    for row in answer:
        if row["ts"] > 0:
            rows += 1
    return rows


def read_bare(answer):
    rows = 0
    with urllib.request.urlopen(answer.url("ndjson")) as response:
        for line in response:
            if json.loads(line)["ts"] > 0:
                rows += 1
    return rows


request = json.loads(sys.argv[1])
read = read_with_client if request["way"] == "client" else read_bare
client = bookcast.Client(request["url"], compress=False)
read(client.lob(**request["warmUp"]))
is_linux = sys.platform == "linux"
before = memory_mb("VmRSS") if is_linux else None
began = time.perf_counter()
rows = read(client.lob(**request["parameters"]))
total = time.perf_counter() - began
print(json.dumps({"rows": rows, "totalMs": total * 1000, "grownMb": memory_mb("VmHWM") - before if is_linux else None}))

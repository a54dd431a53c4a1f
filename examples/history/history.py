"""Writes a history that oversell judges: with History("h.jsonl", stock=100) as h: h.call(…)"""
import json
import threading
import time


class Refused(Exception):
    """Raise it with the reason of an answer that declines: held, lost, sold-out, stale, empty."""


class History:
    def __init__(self, path, **header):
        self.file, self.mutex, self.count = open(path, "w", encoding="utf-8"), threading.Lock(), 0
        self.write({"schema": "oversell-history/1", **header})

    def write(self, line):
        self.file.write(json.dumps(line) + "\n")

    def call(self, client, kind, arg, do, **more):
        """Calls do and records what its client is told. A client does one thing at a time."""
        op = {"client": client, "kind": kind, "arg": arg, "outcome": "unknown", "call_ns": time.monotonic_ns(), **more}
        try:
            result = do()
            op.update(outcome="ok", result=result, return_ns=time.monotonic_ns())
        except Refused as e:
            op.update(outcome="refused", reason=str(e), return_ns=time.monotonic_ns())
        except Exception as e:  # no answer, or none that is sure: it may have had its effect
            op.update(gave_up_ns=time.monotonic_ns())
            print(f"client {client}: {kind} {arg}: {e}")
        with self.mutex:
            self.write(op)
            self.count += 1

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        if not failed:  # a history without its last line was cut off
            self.write({"trailer": {"operations": self.count}})
        self.file.close()

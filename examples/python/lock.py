"""A lock on Redis in Python, for oversell: see docs/systems.md.

FLAWED=1 makes release delete the key whoever holds it.
"""
import json, os, sys, threading, time, uuid
from concurrent.futures import ThreadPoolExecutor

import redis

server = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=2)
COMPARE_AND_DELETE = server.register_script(
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0")
printing = threading.Lock()


def acquire(r):
    token, give_up = uuid.uuid4().hex, None
    while True:
        now = time.time()
        give_up = give_up or now + r.get("wait_ms", 0) / 1000
        if server.set("Lock:" + r["key"], token, nx=True, px=r["ttl_ms"]):
            return {"ok": True, "lock": token, "until_ms": now * 1000 + r["ttl_ms"]}
        if time.time() >= give_up:
            return {"refused": "held"}
        time.sleep(0.01)


def release(r):
    key = "Lock:" + r["key"]
    freed = server.delete(key) if os.environ.get("FLAWED") else COMPARE_AND_DELETE(keys=[key], args=[r["lock"]])
    return {"ok": True} if freed else {"refused": "lost"}


def serve(line):
    r = json.loads(line)
    try:
        answer = {"init": lambda r: {"ok": True}, "acquire": acquire, "release": release}[r["op"]](r)
    except redis.RedisError as e:
        answer = {"unknown": str(e)}
    except KeyError:
        answer = {"unknown": r["op"] + " is not implemented"}
    with printing:
        print(json.dumps({"id": r["id"], **answer}), flush=True)


with ThreadPoolExecutor(64) as clients:
    for line in sys.stdin:
        clients.submit(serve, line)

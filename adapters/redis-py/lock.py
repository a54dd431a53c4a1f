"""redis-py's own Lock for oversell: see docs/systems.md. CRASH=n: the process dies at its n-th grant.
SABOTAGE breaks it on purpose: any-release (a release deletes whatever is there), no-release (it does nothing), no-expiry (the lock
has none), long-lease (the lease is told to be twice as long as it is)."""
import itertools, json, os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

import redis
from redis.exceptions import LockError, RedisError

server = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=2)
sabotage = os.environ.get("SABOTAGE", "")
assert sabotage in ["", "any-release", "no-release", "no-expiry", "long-lease"], sabotage
crash, grants, printing, held = int(os.environ.get("CRASH", 0)), itertools.count(1), threading.Lock(), {}


def acquire(r):
    # A shared object is used by one client at a time, so its token need not be of a thread.
    lock = server.lock("Lock:" + r["key"], timeout=None if sabotage == "no-expiry" else r["ttl_ms"] / 1000, sleep=r.get("retry_ms", 10) / 1000, thread_local=False)
    give_up = time.time() + r.get("wait_ms", 0) / 1000
    while True:
        until = time.time() * 1000 + r["ttl_ms"] * (2 if sabotage == "long-lease" else 1)  # the library does not tell; before the command is the earliest end
        if lock.acquire(blocking=False):
            if next(grants) == crash:
                os._exit(1)
            token = lock.local.token.decode()
            held[token] = lock
            return {"ok": True, "lock": token, "until_ms": until}
        if time.time() > give_up:
            return {"refused": "held"}
        time.sleep(lock.sleep)


def extend(r):
    until = time.time() * 1000 + r["ttl_ms"]
    held[r["lock"]].extend(r["ttl_ms"] / 1000, replace_ttl=True)
    return {"ok": True, "until_ms": until}


def release(r):
    if sabotage == "any-release":
        server.delete(held[r["lock"]].name)
    elif sabotage != "no-release":
        held[r["lock"]].release()
    return {"ok": True}


def serve(line):
    r = json.loads(line)
    try:
        answer = {"init": lambda r: {"ok": True}, "acquire": acquire, "extend": extend, "release": release}[r["op"]](r)
    except LockError:
        answer = {"refused": "lost"}
    except RedisError as e:
        answer = {"unknown": str(e) or type(e).__name__}
    except KeyError as e:
        answer = {"unknown": "not known: %s" % e}
    with printing:
        print(json.dumps({"id": r["id"], **answer}), flush=True)


with ThreadPoolExecutor(64) as clients:
    for line in sys.stdin:
        clients.submit(serve, line)

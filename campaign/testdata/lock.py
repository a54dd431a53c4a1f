"""A lock for tests, with nothing but the standard library. The arguments are the mechanism and, maybe, a
misbehaviour and the number of the request from which on it shows."""
import encodings.idna  # by which create_connection looks up hosts: imported once, not in every process of a search
import json, os, random, signal, socket, sys, threading, time, uuid

kind, wrong, at = sys.argv[1:] + ["", "0"][len(sys.argv) - 2:]
address = tuple(os.environ["REDIS_URL"].removeprefix("redis://").split("/")[0].split(":"))
line = None


def reply():
    head = line.readline()
    if not head:
        raise ConnectionError("no answer")
    mark, rest = head[:1], head[1:-2]
    if mark == b"$":
        return None if rest == b"-1" else line.read(int(rest) + 2)[:-2].decode()
    if mark == b"-":
        raise RuntimeError(rest.decode())
    return int(rest) if mark == b":" else rest.decode()


def redis(*words):
    global line
    if line is None:
        connection = socket.create_connection(address)
        line = connection.makefile("rwb")
        connection.close()  # line keeps it
    words = [str(w).encode() for w in words]
    line.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    line.flush()
    return reply()


COMPARED = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call(%s) end return 0"
memory = 0  # how often it was refused the lock


def acquire(r):
    key, now, token = "Lock:" + r["key"], time.time(), uuid.uuid4().hex
    until = now * 1000 + r["ttl_ms"]
    if kind == "few-tokens":
        import hashlib
        token = hashlib.md5(b"%d" % random.randrange(1000)).hexdigest()
    if kind == "setnx-expire":
        got = redis("setnx", key, token) and redis("pexpire", key, r["ttl_ms"])
    elif kind == "client-clock":
        got = redis("setnx", key, "%d" % until)
        if not got and float(redis("get", key) or 0) < now * 1000:
            got = redis("set", key, "%d" % until)  # whoever sees that it is over takes it
        token = "%d" % until
    else:
        got = redis("set", key, token, "nx", "px", r["ttl_ms"])
    global memory
    memory += not got
    if got and kind == "valid":
        return {"ok": True, "lock": token, "valid_ms": r["ttl_ms"]}
    if got and kind == "valid-late":
        time.time()
        return {"ok": True, "lock": token, "valid_ms": r["ttl_ms"]}
    if got and kind == "valid-left":
        left = until - time.time() * 1000
        return {"ok": True, "lock": token, "valid_ms": left} if left > 0 else {"unknown": "the lease is over"}
    return {"ok": True, "lock": token, "until_ms": until} if got else {"refused": "held"}


def extend(r):
    key, until = "Lock:" + r["key"], time.time() * 1000 + r["ttl_ms"]
    if kind == "blind-extend":
        done = redis("pexpire", key, r["ttl_ms"])
    elif kind == "client-clock":
        done = 0
    else:
        done = redis("eval", COMPARED % "'pexpire', KEYS[1], ARGV[2]", 1, key, r["lock"], r["ttl_ms"])
    return {"ok": True, "until_ms": until} if done else {"refused": "lost"}


def release(r):
    key = "Lock:" + r["key"]
    if kind in ("blind-release", "setnx-expire"):
        return {"ok": True} if redis("del", key) else {"refused": "lost"}
    if kind == "coin" and random.random() < 0.5:
        redis("get", key)
    if kind == "counts" and memory:
        redis("get", key)
    return {"ok": True} if redis("eval", COMPARED % "'del', KEYS[1]", 1, key, r["lock"]) else {"refused": "lost"}


def say(text, end="\n"):
    os.write(1, (text + end).encode("utf-8", "surrogateescape"))


def misbehave(r, answer):
    if wrong == "garbage":
        say("<html>oh no")
    elif wrong == "half":
        say(answer[: len(answer) // 2], "")
        os._exit(0)
    elif wrong == "dies":
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(3)
    elif wrong == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif wrong == "closes":
        os.close(1)
        signal.pause()
    elif wrong == "hangs":
        signal.pause()
    elif wrong == "twice":
        say(answer + "\n" + answer)
    elif wrong == "two":
        say(answer + " " + answer)
    elif wrong == "stranger":
        say(json.dumps({"id": r["id"] + 100, "ok": True}))
    elif wrong == "huge":
        say("x" * (3 << 20))
    elif wrong == "no-newline":
        say(answer, "")
    elif wrong == "bytes":
        say("\udcff\udcfe\0")
    elif wrong == "empty":
        say("")
    elif wrong == "types":
        say(json.dumps({"id": r["id"], "ok": "yes"}))
    elif wrong == "says-nothing":
        say(json.dumps({"id": r["id"]}))
    elif wrong == "elsewhere":
        socket.create_connection(("127.0.0.1", 1))
    elif wrong == "no-redis":
        s = socket.create_connection(address)
        s.sendall(b"GET / HTTP/1.1\r\n\r\n")
        s.recv(10)
        say(answer)
    elif wrong == "unknown-command":
        redis("geoadd", "places", "1", "1", "x")
        say(answer)
    elif wrong == "another-clock":
        say(json.dumps({"id": r["id"], "ok": True, "lock": "x", "until_ms": 1780272000000}))
    elif wrong == "beside":
        say(answer)
        threading.Thread(target=lambda: redis("get", "beside"), daemon=True).start()
        time.sleep(0)
    elif wrong == "sleeps":
        time.sleep(7200)
        say(answer)
    elif wrong == "spins":
        while time.time():
            pass
    elif wrong == "spams":
        while True:
            say(answer)
    elif wrong == "second-connection":
        global line
        line = None
        say(answer)


asked = 0
while True:
    text = sys.stdin.readline()
    if not text:
        break
    r = json.loads(text)
    try:
        answer = {"init": lambda r: {"ok": True}, "acquire": acquire, "extend": extend, "release": release}[r["op"]](r)
    except (OSError, RuntimeError) as e:
        line, answer = None, {"unknown": str(e) or "no answer"}
    if wrong and asked >= int(at):
        misbehave(r, json.dumps({"id": r["id"], **answer}))
    else:
        say(json.dumps({"id": r["id"], **answer}))
    asked += 1

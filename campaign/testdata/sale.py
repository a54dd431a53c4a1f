"""A sale for tests: python3 sale.py flawed|sound."""
import encodings.idna  # as in lock.py
import json, os, socket, sys

address = tuple(os.environ["REDIS_URL"].removeprefix("redis://").split("/")[0].split(":"))
wire = None


def redis(*words):
    global wire
    wire = wire or socket.create_connection(address).makefile("rwb")
    words = [str(w).encode() for w in words]
    wire.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    wire.flush()
    head = wire.readline()
    if not head:
        raise OSError("no answer")
    if head[:1] == b"$" and head != b"$-1\r\n":
        return wire.read(int(head[1:]) + 2)[:-2].decode()
    return head[1:-2].decode()


SELL = """local left = tonumber(redis.call('get', KEYS[1]))
if redis.call('sismember', KEYS[2], ARGV[1]) == 1 then return -2 end
if left < tonumber(ARGV[2]) then return -1 end
redis.call('sadd', KEYS[2], ARGV[1])
return redis.call('decrby', KEYS[1], ARGV[2])"""


def buy(r):
    key = "Stock:" + r["product"]
    if sys.argv[1] == "flawed":
        left = int(redis("GET", key))
        if left < r["quantity"]:
            return {"refused": "sold-out"}
        redis("SET", key, left - r["quantity"])
        return {"ok": True, "left": left - r["quantity"]}
    left = int(redis("EVAL", SELL, 2, key, "Orders:" + r["product"], r["order"], r["quantity"]))
    return {"ok": True, "repeated": True} if left == -2 else {"refused": "sold-out"} if left == -1 else {"ok": True, "left": left}


operations = {
    "init": lambda r: {"ok": True},
    "open": lambda r: redis("SET", "Stock:" + r["product"], r["stock"]) and {"ok": True},
    "buy": buy,
    "state": lambda r: {"ok": True, "left": int(redis("GET", "Stock:" + r["product"]))},
}
for line in sys.stdin:
    r = json.loads(line)
    try:
        answer = operations[r["op"]](r)
    except OSError as e:
        wire, answer = None, {"unknown": str(e)}
    print(json.dumps({"id": r["id"], **answer}), flush=True)

// A lock on Redis in Node.js, with nothing but its standard library, for oversell: see docs/systems.md.
//
// FLAWED=1 makes release delete the key whoever holds it.
const net = require('net');
const crypto = require('crypto');
const lines = require('readline').createInterface({ input: process.stdin });

const COMPARE_AND_DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
const server = new URL(process.env.REDIS_URL);
let socket = null, waiting = [], received = '';

function connect() {
  socket = net.connect(Number(server.port), server.hostname).setNoDelay().setEncoding('utf8');
  socket.on('data', (text) => {
    received += text;
    // All replies to this program are one line, except a bulk string, which it asks for nowhere.
    for (let end; (end = received.indexOf('\r\n')) >= 0; received = received.slice(end + 2)) {
      const { resolve, reject } = waiting.shift();
      received[0] === '-' ? reject(new Error(received.slice(1, end))) : resolve(received.slice(1, end));
    }
  });
  const lost = (e) => {
    const failed = waiting;
    [socket, waiting, received] = [null, [], ''];
    failed.forEach(({ reject }) => reject(e instanceof Error ? e : new Error('the connection ended')));
  };
  socket.on('error', lost).on('end', lost);
}

function redis(...words) {
  if (!socket) connect();
  return new Promise((resolve, reject) => {
    waiting.push({ resolve, reject });
    socket.write(`*${words.length}\r\n` + words.map((w) => `$${Buffer.byteLength(String(w))}\r\n${w}\r\n`).join(''));
  });
}

async function acquire(r) {
  const token = crypto.randomUUID();
  for (let giveUp = null; ;) {
    const now = Date.now();
    giveUp ??= now + (r.wait_ms ?? 0);
    if (await redis('SET', 'Lock:' + r.key, token, 'NX', 'PX', r.ttl_ms) === 'OK') return { ok: true, lock: token, until_ms: now + r.ttl_ms };
    if (Date.now() >= giveUp) return { refused: 'held' };
    await new Promise((wake) => setTimeout(wake, r.retry_ms ?? 10));
  }
}

async function release(r) {
  const freed = process.env.FLAWED ? await redis('DEL', 'Lock:' + r.key) : await redis('EVAL', COMPARE_AND_DELETE, 1, 'Lock:' + r.key, r.lock);
  return freed === '1' ? { ok: true } : { refused: 'lost' };
}

const operations = { init: async () => ({ ok: true }), acquire, release };
lines.on('line', async (line) => {
  const r = JSON.parse(line);
  const operation = operations[r.op] ?? (async () => ({ unknown: r.op + ' is not implemented' }));
  const answer = await operation(r).catch((e) => ({ unknown: e.message }));
  console.log(JSON.stringify({ id: r.id, ...answer }));
});
lines.on('close', () => process.exit(0));

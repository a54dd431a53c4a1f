<?php
/**
 * Two locks on Redis in PHP (phpredis), for oversell: see docs/systems.md.
 *
 *   php lock.php printed    the lock of the articles: SETNX, EXPIRE, and a takeover where TTL is negative
 *   php lock.php corrected  one SET NX PX with a random token, and a release that compares in a script
 */

/** The lock of the articles, with its three slips. */
final class PrintedLock
{
    private array $own = [];

    public function __construct(private Redis $redis)
    {
    }

    public function acquire(array $r): array
    {
        $key = 'Lock:' . $r['key'];
        $now = time();
        $timeoutAt = $now + $r['wait_ms'] / 1000;
        $expireAt = $now + intdiv($r['ttl_ms'], 1000);
        while (true) {
            if ($this->redis->setnx($key, $expireAt)) {
                $this->redis->expire($key, $expireAt); // a time, where a number of seconds is meant
                return $this->granted($r, $expireAt);
            }
            if ($this->redis->ttl($key) < 0) { // also between the two commands above
                $this->redis->set($key, $expireAt); // without an expiry
                return $this->granted($r, $expireAt);
            }
            if (microtime(true) > $timeoutAt) {
                return ['refused' => 'held'];
            }
            usleep(1000 * max(1, $r['retry_ms']));
        }
    }

    public function release(array $r): array
    {
        // The articles write = where == is meant: whoever holds it, it is ours.
        if ($this->own[$r['key']] = $this->redis->get('Lock:' . $r['key'])) {
            $this->redis->del('Lock:' . $r['key']);
            return ['ok' => true];
        }
        return ['refused' => 'lost'];
    }

    private function granted(array $r, int $expireAt): array
    {
        $this->own[$r['key']] = $expireAt;
        return ['ok' => true, 'lock' => $expireAt];
    }
}

/** The lock as it should be. */
final class CorrectedLock
{
    private const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
    private const EXTEND = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

    public function __construct(private Redis $redis)
    {
    }

    public function acquire(array $r): array
    {
        $token = bin2hex(random_bytes(16));
        $timeoutAt = null;
        while (true) {
            $now = microtime(true); // before the command, or the lease ends later here than there
            $timeoutAt ??= $now + $r['wait_ms'] / 1000;
            if ($this->redis->set('Lock:' . $r['key'], $token, ['nx', 'px' => $r['ttl_ms']])) {
                return ['ok' => true, 'lock' => $token, 'until_ms' => $now * 1000 + $r['ttl_ms']];
            }
            if (microtime(true) >= $timeoutAt) {
                return ['refused' => 'held'];
            }
            usleep(1000 * max(1, $r['retry_ms']));
        }
    }

    public function extend(array $r): array
    {
        $now = microtime(true);
        $extended = $this->redis->eval(self::EXTEND, ['Lock:' . $r['key'], $r['lock'], $r['ttl_ms']], 1);
        return $extended ? ['ok' => true, 'until_ms' => $now * 1000 + $r['ttl_ms']] : ['refused' => 'lost'];
    }

    public function release(array $r): array
    {
        return $this->redis->eval(self::RELEASE, ['Lock:' . $r['key'], $r['lock']], 1) ? ['ok' => true] : ['refused' => 'lost'];
    }
}

$redis = new Redis();
['host' => $host, 'port' => $port] = parse_url(getenv('REDIS_URL'));
$lock = null;
while (($line = fgets(STDIN)) !== false) {
    $r = json_decode($line, true) + ['wait_ms' => 0, 'retry_ms' => 10];
    try {
        if (!$redis->isConnected()) {
            $redis->connect($host, $port, 2, null, 0, 2);
            $lock = ($argv[1] ?? '') === 'printed' ? new PrintedLock($redis) : new CorrectedLock($redis);
        }
        $answer = match ($r['op']) {
            'init' => ['ok' => true],
            'acquire' => $lock->acquire($r),
            'release' => $lock->release($r),
            'extend' => $lock instanceof CorrectedLock ? $lock->extend($r) : ['unknown' => 'extend is not implemented'],
            default => ['unknown' => $r['op'] . ' is not implemented'],
        };
    } catch (RedisException $e) {
        $redis->close();
        $answer = ['unknown' => $e->getMessage() ?: get_class($e)];
    }
    echo json_encode(['id' => $r['id']] + $answer), "\n";
}

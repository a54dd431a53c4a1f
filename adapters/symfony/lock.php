<?php
/** symfony/lock on Redis for oversell: see docs/systems.md. CRASH=n: the process dies at its n-th grant. */
require 'Symfony/Component/Lock/autoload.php';

use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\Exception\LockReleasingException;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore;

$redis = new Redis();
['host' => $host, 'port' => $port] = parse_url(getenv('REDIS_URL'));
$factory = new LockFactory(new RedisStore($redis));
[$held, $grants] = [[], 0];

$acquire = function (array $r) use ($factory, &$held, &$grants): array {
    $lock = $factory->createLock('Lock:' . $r['key'], $r['ttl_ms'] / 1000, false);
    $giveUp = microtime(true) + $r['wait_ms'] / 1000;
    while (!$lock->acquire()) {
        if (microtime(true) > $giveUp) {
            return ['refused' => 'held'];
        }
        usleep(1000 * max(1, $r['retry_ms']));
    }
    if (++$grants === (int) getenv('CRASH')) {
        exit(1);
    }
    $token = bin2hex(random_bytes(8));
    $held[$token] = $lock;
    return ['ok' => true, 'lock' => $token, 'until_ms' => floor((microtime(true) + $lock->getRemainingLifetime()) * 1000)]; // keys expire at whole milliseconds;
};
$extend = function (array $r) use (&$held): array {
    $held[$r['lock']]->refresh($r['ttl_ms'] / 1000);
    return ['ok' => true, 'until_ms' => floor((microtime(true) + $held[$r['lock']]->getRemainingLifetime()) * 1000)];
};
$release = function (array $r) use (&$held): array {
    $acquired = $held[$r['lock']]->isAcquired();
    $held[$r['lock']]->release(); // which says nothing when there was nothing to release
    if (!$acquired) {
        return ['refused' => 'lost'];
    }
    // The lease may have ended between the two.
    return $held[$r['lock']]->isExpired() ? ['unknown' => 'the lease ended during the release'] : ['ok' => true];
};

while (($line = fgets(STDIN)) !== false) {
    $r = json_decode($line, true) + ['wait_ms' => 0, 'retry_ms' => 10];
    try {
        if (!$redis->isConnected()) {
            $redis->connect($host, $port, 2, null, 0, 2);
        }
        $answer = match ($r['op']) {
            'init' => ['ok' => true],
            'acquire' => $acquire($r),
            'extend' => $extend($r),
            'release' => $release($r),
            default => ['unknown' => $r['op'] . ' is not implemented'],
        };
    } catch (LockConflictedException) {
        $answer = ['refused' => 'lost'];
    } catch (LockReleasingException $e) {
        $answer = ['unknown' => $e->getMessage() ?: get_class($e)];
    } catch (Throwable $e) {
        $redis->close();
        $answer = ['unknown' => $e->getMessage() ?: get_class($e)];
    }
    echo json_encode(['id' => $r['id']] + $answer), "\n";
}

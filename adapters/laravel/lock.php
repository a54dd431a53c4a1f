<?php
/** The atomic lock of Laravel's cache for oversell: see docs/systems.md. CRASH=n: the process dies at its n-th grant. */
require 'Illuminate/Cache/autoload.php';
require 'Illuminate/Redis/autoload.php';

use Illuminate\Cache\PhpRedisLock;
use Illuminate\Redis\Connections\PhpRedisConnection;

$redis = new Redis();
['host' => $host, 'port' => $port] = parse_url(getenv('REDIS_URL'));
$connection = new PhpRedisConnection($redis);
[$held, $grants] = [[], 0];

$acquire = function (array $r) use ($connection, &$held, &$grants): array {
    $lock = new PhpRedisLock($connection, 'Lock:' . $r['key'], intdiv($r['ttl_ms'] + 999, 1000)); // whole seconds
    $giveUp = microtime(true) + $r['wait_ms'] / 1000;
    while (true) {
        $until = microtime(true) * 1000 + 1000 * intdiv($r['ttl_ms'] + 999, 1000); // the library does not tell
        if ($lock->get()) {
            break;
        }
        if (microtime(true) > $giveUp) {
            return ['refused' => 'held'];
        }
        usleep(1000 * max(1, $r['retry_ms']));
    }
    if (++$grants === (int) getenv('CRASH')) {
        exit(1);
    }
    $held[$lock->owner()] = $lock;
    return ['ok' => true, 'lock' => $lock->owner(), 'until_ms' => $until];
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
            'release' => $held[$r['lock']]->release() ? ['ok' => true] : ['refused' => 'lost'],
            default => ['unknown' => $r['op'] . ' is not implemented'],
        };
    } catch (Throwable $e) {
        $redis->close();
        $answer = ['unknown' => $e->getMessage() ?: get_class($e)];
    }
    echo json_encode(['id' => $r['id']] + $answer), "\n";
}

<?php
// Tells, as JSON, whether phpredis gives the next user of a persistent connection the
// same one: after close(), after the object is gone, and of a plain connection.
if (!class_exists('Redis')) {
    echo json_encode(['error' => 'this PHP has no redis extension']);
    exit;
}
[$host, $port] = [$argv[1], (int)$argv[2]];

$redis = new Redis();
$redis->pconnect($host, $port);
$first = $redis->client('id');
$redis->close();
$redis->pconnect($host, $port);
$closed = $redis->client('id');

$redis->select(3);
$redis = null; // without close()
$redis = new Redis();
$redis->pconnect($host, $port);
$dropped = $redis->client('id');
$database = strpos($redis->rawCommand('CLIENT', 'INFO'), ' db=3 ') !== false;

$plain = new Redis();
$plain->connect($host, $port);
$before = $plain->client('id');
$plain->close();
$plain->connect($host, $port);

echo json_encode([
    'version' => phpversion('redis'),
    'closed' => $closed === $first,
    'dropped' => $dropped === $closed,
    'database' => $database,
    'plain' => $plain->client('id') === $before,
]);

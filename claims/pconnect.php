<?php
// Answers requests to PHP's own web server, each with the number of the connection that
// phpredis used for it, and of the database that it found selected.
//
//   /persistent/close   pconnect(), then close()
//   /persistent/leave   pconnect(), select a database, no close()
//   /plain/close        connect(), then close()
header('Content-Type: application/json');
if (!class_exists('Redis')) {
    echo json_encode(['error' => 'this PHP has no redis extension']);
    return;
}
[, $how, $end] = explode('/', $_SERVER['REQUEST_URI']);
$redis = new Redis();
if ($how === 'persistent') {
    $redis->pconnect(getenv('REDIS_HOST'), (int)getenv('REDIS_PORT'));
} else {
    $redis->connect(getenv('REDIS_HOST'), (int)getenv('REDIS_PORT'));
}
$said = [
    'version' => phpversion('redis'),
    'id' => $redis->client('id'),
    'selected' => strpos($redis->rawCommand('CLIENT', 'INFO'), ' db=3 ') !== false,
];
if ($end === 'close') {
    $redis->close();
} else {
    $redis->select(3);
}
echo json_encode($said);

-- A waiter gives up: it leaves the line, and releases the lock if the lock was
-- granted to it and the reply was lost.
-- KEYS[1] the lock   KEYS[2] the line   KEYS[3] signs of life   ARGV[1] the caller's token
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1

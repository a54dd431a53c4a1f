-- The counting lock in one step: the client that counts first holds it. The owner
-- is stored with the count, and the expiry is set with the first count, so a lock
-- without an expiry cannot exist, and nobody needs to force one open.
-- KEYS[1] the lock, a hash   ARGV[1] the caller's token   ARGV[2] the lease in ms
-- Returns 1 granted, otherwise the count of the refused attempt.
local n = redis.call('HINCRBY', KEYS[1], 'count', 1)
if n == 1 then
  redis.call('HSET', KEYS[1], 'owner', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return n

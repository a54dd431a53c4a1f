-- Grants the lock together with a number that is higher than all numbers before.
-- The counter has no expiry: it must outlive every lease.
-- KEYS[1] the lock   KEYS[2] the counter   ARGV[1] the caller's token   ARGV[2] the lease in ms
-- Returns the fencing token, or 0 if the lock is held.
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return 0

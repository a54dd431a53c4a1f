-- Moves the end of the lease only if the lock is still the caller's.
-- KEYS[1] the lock, a hash   ARGV[1] the caller's token   ARGV[2] the new lease in ms
-- Returns 1 if the lease was set, 0 if the lock was not the caller's.
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0

-- Deletes the lock only if it is still the caller's.
-- KEYS[1] the lock, a hash   ARGV[1] the caller's token
-- Returns 1 if the lock was deleted, 0 if it was not the caller's.
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0

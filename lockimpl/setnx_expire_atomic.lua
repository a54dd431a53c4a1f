-- SETNX and EXPIRE in one step, so that no crash can come in between.
-- KEYS[1] the lock   ARGV[1] the caller's token   ARGV[2] the lease in ms
-- Returns 1 granted, 0 held.
if redis.call('SETNX', KEYS[1], ARGV[1]) == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
return 0

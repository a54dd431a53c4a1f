-- Compare and delete, for values of the form token:expireAt.
-- KEYS[1] the lock   ARGV[1] the caller's token
-- Returns 1 if the lock was deleted, 0 if it was not the caller's.
local value = redis.call('GET', KEYS[1])
local mine = ARGV[1] .. ':'
if value and string.sub(value, 1, #mine) == mine then
  return redis.call('DEL', KEYS[1])
end
return 0

-- Gives a request a number, and the same number if the request is sent again. The
-- request is stored together with its number, so that a lost reply or a dead
-- client leaves no gap.
-- KEYS[1] the counter   KEYS[2] the numbers by request, a hash   ARGV[1] the request
-- Returns the number.
local known = redis.call('HGET', KEYS[2], ARGV[1])
if known then
  return tonumber(known)
end
local n = redis.call('INCR', KEYS[1])
redis.call('HSET', KEYS[2], ARGV[1], n)
return n

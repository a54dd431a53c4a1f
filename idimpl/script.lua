-- Gives a request its number, and the same number when it asks again: what was
-- numbered is written down together with the number, so that a reply that got
-- lost, or a client that died, leaves no gap.
-- KEYS[1] the counter   KEYS[2] the numbers by request, a hash   ARGV[1] the request
-- Returns the number.
local known = redis.call('HGET', KEYS[2], ARGV[1])
if known then
  return tonumber(known)
end
local n = redis.call('INCR', KEYS[1])
redis.call('HSET', KEYS[2], ARGV[1], n)
return n

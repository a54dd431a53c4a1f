-- Writes the stock, unless a newer fencing token has been seen.
--
-- KEYS[1]  pieces left
-- KEYS[2]  the newest token seen
-- ARGV[1]  the caller's token
-- ARGV[2]  pieces left, as the caller computed it
-- Returns {answer, pieces left}, with -1 if the write is refused.

-- Tokens are compared as texts, because numbers of more than 53 bits are not exact in Lua.
local newest = redis.call('GET', KEYS[2]) or '0'
if #ARGV[1] < #newest or #ARGV[1] == #newest and ARGV[1] < newest then
  return {'stale', -1}
end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2])
return {'ok', ARGV[2]}

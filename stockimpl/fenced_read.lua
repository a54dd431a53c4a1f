-- Reads the stock for the holder of a fencing token, and refuses all older tokens
-- from now on.
--
-- KEYS[1]  pieces left
-- KEYS[2]  the newest token seen
-- ARGV[1]  the caller's token
-- Returns {answer, pieces left}. The number is a text, because a number of more
-- than 53 bits is not exact in Lua.

local left = redis.call('GET', KEYS[1])
if not left then
  return {'absent', -1}
end
-- Tokens are compared as texts for the same reason.
local newest = redis.call('GET', KEYS[2]) or '0'
if #ARGV[1] < #newest or #ARGV[1] == #newest and ARGV[1] < newest then
  return {'stale', -1}
end
redis.call('SET', KEYS[2], ARGV[1])
return {'ok', left}

-- Writes the stock if the caller's number is higher than the one on display.
--
-- KEYS[1]  pieces left
-- KEYS[2]  the number on display
-- ARGV[1]  the caller's number
-- ARGV[2]  pieces left, as the caller computed it
-- Returns {answer, pieces left}, with -1 if the write is refused.

local display = tonumber(redis.call('GET', KEYS[2]) or '0')
if tonumber(ARGV[1]) <= display then
  return {'stale', -1}
end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2])
return {'ok', ARGV[2]}

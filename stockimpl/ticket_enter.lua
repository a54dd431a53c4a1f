-- Enters the machine if it is free and the caller's number is higher than the one on display.
--
-- KEYS[1]  the number on display
-- KEYS[2]  the machine: the number of the client that uses it
-- ARGV[1]  the caller's number
-- Returns 'in', 'stale' or 'occupied'.

if redis.call('EXISTS', KEYS[2]) == 1 then
  return 'occupied'
end
local display = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) <= display then
  return 'stale'
end
redis.call('SET', KEYS[2], ARGV[1])
return 'in'

-- Moves the end of the lease, both in the value and as the expiry, if the lock is
-- still the caller's.
-- KEYS[1] the lock   ARGV[1] the caller's token   ARGV[2] the new lease in ms
-- Returns 1 if the lease was set, 0 if the lock was not the caller's.
local value = redis.call('GET', KEYS[1])
local mine = ARGV[1] .. ':'
if not value or string.sub(value, 1, #mine) ~= mine then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('SET', KEYS[1], mine .. string.format('%.0f', now + ARGV[2]), 'PX', ARGV[2])
return 1

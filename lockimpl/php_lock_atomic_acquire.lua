-- The lock of the documents in one step: SETNX with an expiry, and the takeover of
-- a lock whose owner died before it could set an expiry. A lock without an expiry
-- is taken over only after the time in its value. Both that time and "now" are by
-- the server's clock.
-- KEYS[1] the lock   ARGV[1] the caller's token   ARGV[2] the lease in ms
-- Returns 1 granted, 2 granted by takeover, 0 held.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local value = ARGV[1] .. ':' .. string.format('%.0f', now + ARGV[2])
if redis.call('SETNX', KEYS[1], value) == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
if redis.call('PTTL', KEYS[1]) == -1 then
  local expireAt = tonumber(string.match(redis.call('GET', KEYS[1]), ':(%d+)$'))
  if expireAt and expireAt <= now then
    redis.call('SET', KEYS[1], value, 'PX', ARGV[2])
    return 2
  end
end
return 0

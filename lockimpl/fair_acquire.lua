-- First come, first served. Waiters stand in a line and give a sign of life with
-- every attempt. A head of the line that has given none for too long is taken for
-- dead and removed.
-- KEYS[1] the lock   KEYS[2] the line, a sorted set by place   KEYS[3] signs of life, a hash
-- ARGV[1] the caller's token, the same in all attempts of one acquire
-- ARGV[2] the lease in ms
-- ARGV[3] patience in ms: how long a waiter may give no sign of life; 0: for ever
-- ARGV[4] 1 if the caller will not ask again: then it is not put in line. (Clients that join,
-- ask once and leave would take turns at the head of a line that is never served.)
-- Returns 1 if granted, 2 if the caller was put in line, 0 if it waits as before or is refused.
local token, lease, patience = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
while patience > 0 and head and head ~= token do
  local deadline = redis.call('HGET', KEYS[3], head)
  if deadline and tonumber(deadline) > now then break end
  redis.call('ZREM', KEYS[2], head)
  redis.call('HDEL', KEYS[3], head)
  head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
end

local holder = redis.call('GET', KEYS[1])
-- A holder asks again if the reply to its grant was lost.
if holder == token or (not holder and (not head or head == token)) then
  redis.call('SET', KEYS[1], token, 'PX', lease)
  redis.call('ZREM', KEYS[2], token)
  redis.call('HDEL', KEYS[3], token)
  return 1
end

if ARGV[4] == '1' then return 0 end

local joined = 0
if not redis.call('ZSCORE', KEYS[2], token) then
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
  redis.call('ZADD', KEYS[2], (last[2] or 0) + 1, token)
  joined = 2
end
if patience > 0 then
  redis.call('HSET', KEYS[3], token, string.format('%.0f', now + patience))
  -- The line lasts as long as its most patient waiter.
  if redis.call('PTTL', KEYS[2]) < patience then
    redis.call('PEXPIRE', KEYS[2], patience)
    redis.call('PEXPIRE', KEYS[3], patience)
  end
end
return joined

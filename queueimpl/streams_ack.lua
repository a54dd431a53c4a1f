-- Removes an entry whose task is done, unless it was delivered to somebody else
-- since. XACK alone does not check whose entry it is.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group
-- ARGV[2]  the entry
-- ARGV[3]  the caller
-- ARGV[4]  the number of the delivery that the caller got
-- Returns 1 if the entry was removed, 0 if it is not the caller's.

local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
if not pending or pending[2] ~= ARGV[3] or pending[4] ~= tonumber(ARGV[4]) then
  return 0
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return 1

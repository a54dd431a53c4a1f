-- Removes an entry that is done, unless somebody else was given it since. XACK
-- alone asks nobody whose the entry is.
--
-- KEYS[1]  the stream
-- ARGV[1]  the group
-- ARGV[2]  the entry
-- ARGV[3]  the caller
-- ARGV[4]  the delivery that the caller has
-- Returns 1 if it was removed, 0 if it is not the caller's.

local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
if not pending or pending[2] ~= ARGV[3] or pending[4] ~= tonumber(ARGV[4]) then
  return 0
end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return 1

-- Moves an entry that the caller has claimed, and that has had all its attempts,
-- to the dead letters. This is one script, so that a crash neither loses the
-- entry nor moves it twice.
--
-- KEYS[1]  the stream
-- KEYS[2]  the stream of dead letters
-- ARGV[1]  the group
-- ARGV[2]  the entry
-- ARGV[3]  the caller
-- ARGV[4]  the task's id
-- ARGV[5]  how often it was delivered
-- Returns 1 if the entry was moved, 0 if it is no longer the caller's.

local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
if not pending or pending[2] ~= ARGV[3] then
  return 0
end
redis.call('XADD', KEYS[2], '*', 'id', ARGV[4], 'entry', ARGV[2], 'attempts', ARGV[5])
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return 1

-- Removes a task if it waits with exactly the given score. A claimed task does not wait.
--
-- KEYS     as in reliable_common.lua, KEYS[1] the waiting tasks
-- ARGV[1]  the id
-- ARGV[2]  the score
-- Returns 1 if the task was removed, 0 if not.

local current = redis.call('ZSCORE', KEYS[1], ARGV[1])
-- Scores are compared as numbers, because the same score can be written in several ways.
if current and tonumber(current) == tonumber(ARGV[2]) then
  forget(ARGV[1])
  return 1
end
return 0

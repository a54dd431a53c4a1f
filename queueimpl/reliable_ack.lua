-- Removes a task that is done, unless it was delivered to somebody else or
-- enqueued again since.
--
-- KEYS     as in reliable_common.lua, KEYS[1] the waiting tasks
-- ARGV[1]  the id
-- ARGV[2]  the caller's receipt
-- Returns 1 if the task was removed, 0 if it is not the caller's.

local _, receipt = claim_of(ARGV[1])
if receipt ~= ARGV[2] then
  return 0
end
forget(ARGV[1])
return 1

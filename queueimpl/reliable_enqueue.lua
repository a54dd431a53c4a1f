-- Enqueues tasks. An id that waits or is claimed keeps its entry, unless ARGV[2]
-- says to overwrite it, which also ends its claim. A dead letter is enqueued like
-- a new task.
--
-- KEYS     as in reliable_common.lua, KEYS[1] the waiting tasks
-- ARGV[1]  delay in microseconds
-- ARGV[2]  1 to overwrite
-- ARGV[3…] the ids
-- Returns the score, then the ids that were entered.

local due = score(now + tonumber(ARGV[1]))
local entered = {due}
for i = 3, #ARGV do
  local id = ARGV[i]
  local there = redis.call('ZSCORE', KEYS[1], id) or redis.call('ZSCORE', KEYS[2], id)
  if ARGV[2] == '1' or not there then
    forget(id)
    redis.call('ZADD', KEYS[1], due, id)
    entered[#entered + 1] = id
  end
end
return entered

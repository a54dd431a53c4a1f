-- Enqueues tasks. An id that is already in the queue keeps its entry, unless
-- ARGV[2] says to overwrite it.
--
-- KEYS[1]  tasks by due time
-- ARGV[1]  delay in microseconds
-- ARGV[2]  1 to overwrite
-- ARGV[3…] the ids
-- Returns the score, then the ids that were entered.

local due = score(now + tonumber(ARGV[1]))
local entered = {due}
for i = 3, #ARGV do
  if ARGV[2] == '1' or not redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('ZADD', KEYS[1], due, ARGV[i])
    entered[#entered + 1] = ARGV[i]
  end
end
return entered

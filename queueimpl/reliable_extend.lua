-- Starts the visibility timeout of a claim anew.
--
-- KEYS     as in reliable_common.lua, KEYS[1] the waiting tasks
-- ARGV[1]  the id
-- ARGV[2]  the caller's receipt
-- ARGV[3]  the visibility timeout in microseconds
-- Returns 1 if the claim was extended, 0 if it is not the caller's or has run out.

local _, receipt = claim_of(ARGV[1])
local deadline = redis.call('ZSCORE', KEYS[2], ARGV[1])
-- A claim is void after its end, even if no client has reclaimed the task yet.
if receipt ~= ARGV[2] or not deadline or tonumber(deadline) <= tonumber(score(now)) then
  return 0
end
redis.call('ZADD', KEYS[2], score(now + tonumber(ARGV[3])), ARGV[1])
return 1

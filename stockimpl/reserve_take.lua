-- Reserves pieces for one order.
--
-- ARGV[1]  the order's id
-- ARGV[2]  pieces wanted
-- ARGV[3]  how long to reserve them, in ms
-- ARGV[4]  how many late reservations to end before that, at most

if redis.call('EXISTS', KEYS[1]) == 0 then
  return {'absent', -1}
end
reconcile(ARGV[4])
local state = known(ARGV[1])
if state == 'sold' or state == 'refunded' then
  return {'repeated', -1}
end
if not state then
  -- Numbers are compared as texts, because more than 53 bits are not exact in Lua.
  local free = redis.call('GET', KEYS[1])
  if #free < #ARGV[2] or #free == #ARGV[2] and free < ARGV[2] then
    if tonumber(ARGV[2]) > unsold() then
      return {'sold-out', -1}
    end
    -- The missing pieces are only reserved and may come back, so this is not "sold
    -- out".
    return {'stale', -1}
  end
  redis.call('HSET', KEYS[2], ARGV[1], 'reserved:' .. ARGV[2])
  redis.call('INCRBY', KEYS[4], ARGV[2])
  redis.call('DECRBY', KEYS[1], ARGV[2])
end
-- An order that is sent again keeps its pieces and gets a new deadline.
redis.call('ZADD', KEYS[3], now + tonumber(ARGV[3]), ARGV[1])
return {'ok', told()}

-- Sells the pieces that are reserved for one order.
--
-- ARGV[1]  the order's id

if redis.call('EXISTS', KEYS[1]) == 0 then
  return {'absent', -1}
end
local state, pieces = known(ARGV[1])
if state == 'sold' or state == 'refunded' then
  return {'repeated', -1}
end
-- A reservation is void after its deadline, even if no script has ended it yet.
if not state or tonumber(redis.call('ZSCORE', KEYS[3], ARGV[1])) <= now then
  return {'stale', -1}
end
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], 'sold:' .. pieces)
redis.call('DECRBY', KEYS[4], pieces)
redis.call('INCRBY', KEYS[5], pieces)
return {'ok', told()}

-- Returns the pieces of one confirmed order to the stock, once.
--
-- ARGV[1]  the order's id

if redis.call('EXISTS', KEYS[1]) == 0 then
  return {'absent', -1}
end
local state, pieces = known(ARGV[1])
if state == 'refunded' then
  return {'repeated', -1}
end
if state ~= 'sold' then
  return {'never-bought', -1}
end
-- The entry stays, because the id is used up: neither a second refund nor a late
-- copy of the purchase may find it free.
redis.call('HSET', KEYS[2], ARGV[1], 'refunded:' .. pieces)
redis.call('DECRBY', KEYS[5], pieces)
redis.call('INCRBY', KEYS[1], pieces)
return {'ok', told()}

-- Returns the pieces of one order to the stock, once.
--
-- KEYS[1]  pieces left
-- KEYS[2]  orders: id -> "sold:pieces" or "refunded:pieces"
-- KEYS[3]  pieces sold and not refunded
-- ARGV[1]  the order's id
-- Returns {answer, pieces left}, with -1 if the answer says nothing about what is left.

if redis.call('EXISTS', KEYS[1]) == 0 then
  return {'absent', -1}
end
local order = redis.call('HGET', KEYS[2], ARGV[1])
if not order then
  return {'never-bought', -1}
end
local state, pieces = string.match(order, '^(%a+):(%d+)$')
if state ~= 'sold' then
  return {'repeated', -1}
end
-- The entry stays, because the id is used up: neither a second refund nor a late
-- copy of the purchase may find it free.
redis.call('HSET', KEYS[2], ARGV[1], 'refunded:' .. pieces)
redis.call('DECRBY', KEYS[3], pieces)
redis.call('INCRBY', KEYS[1], pieces)
return {'ok', redis.call('GET', KEYS[1])} -- a text, as in lua_buy.lua

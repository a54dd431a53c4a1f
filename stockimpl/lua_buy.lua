-- Sells the pieces of one order, or refuses it. An order is counted only once.
--
-- KEYS[1]  pieces left
-- KEYS[2]  orders: id -> "sold:pieces" or "refunded:pieces"
-- KEYS[3]  pieces sold and not refunded
-- ARGV[1]  the order's id
-- ARGV[2]  pieces wanted
-- Returns {answer, pieces left}, with -1 if the answer says nothing about what is left.

local left = redis.call('GET', KEYS[1])
if not left then
  return {'absent', -1}
end
-- This comes first: an order that was counted and is sent again after the last
-- piece was sold must not be answered "sold out".
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
  return {'repeated', -1}
end
-- Numbers are compared as texts, because more than 53 bits are not exact in Lua.
if #left < #ARGV[2] or #left == #ARGV[2] and left < ARGV[2] then
  return {'sold-out', -1}
end
redis.call('HSET', KEYS[2], ARGV[1], 'sold:' .. ARGV[2])
redis.call('INCRBY', KEYS[3], ARGV[2])
redis.call('DECRBY', KEYS[1], ARGV[2])
return {'ok', redis.call('GET', KEYS[1])}

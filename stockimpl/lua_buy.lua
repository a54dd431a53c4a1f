-- Decides one order, once.
--
-- KEYS[1]  pieces left
-- KEYS[2]  orders: id -> "sold:pieces" or "refunded:pieces"
-- KEYS[3]  pieces in the hands of buyers
-- ARGV[1]  the order's id
-- ARGV[2]  pieces wanted
-- Replies {answer, pieces left}; -1 where nothing is said about what is left.

local left = redis.call('GET', KEYS[1])
if not left then
  return {'absent', -1}
end
-- First of all: an order that had its effect must not be told "sold out" when
-- it is sent again after the last piece has gone.
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
  return {'repeated', -1}
end
-- Compared as texts: numbers of more than 53 bits are not exact in Lua.
if #left < #ARGV[2] or #left == #ARGV[2] and left < ARGV[2] then
  return {'sold-out', -1}
end
redis.call('HSET', KEYS[2], ARGV[1], 'sold:' .. ARGV[2])
redis.call('INCRBY', KEYS[3], ARGV[2])
redis.call('DECRBY', KEYS[1], ARGV[2])
return {'ok', redis.call('GET', KEYS[1])}

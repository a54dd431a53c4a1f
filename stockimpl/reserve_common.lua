-- What the scripts of the sale "reserve" share; put in front of each of them.
--
-- KEYS[1]  free pieces
-- KEYS[2]  orders: id -> "reserved:pieces", "sold:pieces" or "refunded:pieces"
-- KEYS[3]  order ids by the end of their reservation, in ms of the server's time
-- KEYS[4]  pieces reserved
-- KEYS[5]  pieces in the hands of buyers
-- Most reply {answer, pieces}; -1 where nothing is said about pieces.

-- The server's clock, because it is the only one that all buyers share.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- known returns an order's state and its pieces; nil for an unknown id.
local function known(id)
  local order = redis.call('HGET', KEYS[2], id)
  if not order then
    return nil
  end
  return string.match(order, '^(%a+):(%d+)$')
end

-- unsold counts what nobody has bought: free and reserved. Above 2^53 it is rounded.
local function unsold()
  return tonumber(redis.call('GET', KEYS[1])) + tonumber(redis.call('GET', KEYS[4]) or '0')
end

-- told is what an answer says is left: nothing is said about a number that may be rounded.
local function told()
  local left = unsold()
  if left >= 9007199254740992 then
    return -1
  end
  return left
end

-- reconcile ends up to limit reservations that are past their deadline: the
-- pieces go back to the stock, and the ids are free again.
local function reconcile(limit)
  local late = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, limit)
  for _, id in ipairs(late) do
    local _, pieces = known(id)
    redis.call('ZREM', KEYS[3], id)
    redis.call('HDEL', KEYS[2], id)
    redis.call('DECRBY', KEYS[4], pieces)
    redis.call('INCRBY', KEYS[1], pieces)
  end
  return #late
end


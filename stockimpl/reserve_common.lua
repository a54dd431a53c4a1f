-- The code that the scripts of the sale "reserve" share. It is put in front of each of them.
--
-- KEYS[1]  free pieces
-- KEYS[2]  orders: id -> "reserved:pieces", "sold:pieces" or "refunded:pieces"
-- KEYS[3]  order ids by the end of their reservation, in ms of the server's time
-- KEYS[4]  pieces reserved
-- KEYS[5]  pieces sold and not refunded
-- Most scripts return {answer, pieces left}, with -1 if the number is not known.

-- now is the time by the server's clock, the only one that all buyers share.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- known returns an order's state and its number of pieces, or nil for an unknown id.
local function known(id)
  local order = redis.call('HGET', KEYS[2], id)
  if not order then
    return nil
  end
  return string.match(order, '^(%a+):(%d+)$')
end

-- unsold returns the number of pieces that nobody has bought, free and reserved.
-- Above 2^53 it is rounded.
local function unsold()
  return tonumber(redis.call('GET', KEYS[1])) + tonumber(redis.call('GET', KEYS[4]) or '0')
end

-- told returns the number of pieces left for an answer: -1 if it may be rounded.
local function told()
  local left = unsold()
  if left >= 9007199254740992 then
    return -1
  end
  return left
end

-- reconcile ends up to limit reservations that are past their deadline, and returns
-- their number. The pieces go back to the stock, and the ids are free again.
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


-- What the scripts of this package share; put in front of each of them. The
-- queue is KEYS[1] in all of them.

-- The server's clock, because it is the only one that all clients share. In
-- microseconds, which a Lua number holds exactly.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- score writes a time as seconds since the epoch. Lua's own way from a number to
-- a text would round it.
local function score(us)
  return string.format('%d.%06d', math.floor(us / 1000000), us % 1000000)
end

-- taken returns what a request took when it came before, nil if it is new. The
-- empty request is always new. A note is each field behind its length and a colon:
-- an id may be any bytes, which JSON cannot hold.
local function taken(journal, request)
  local note = request ~= '' and redis.call('HGET', journal, request)
  if not note then
    return nil
  end
  local tasks, at = {}, 1
  while at <= #note do
    local colon = string.find(note, ':', at, true)
    local length = tonumber(string.sub(note, at, colon - 1))
    tasks[#tasks + 1] = string.sub(note, colon + 1, colon + length)
    at = colon + length + 1
  end
  return tasks
end

-- remember notes what a request took. A request that took nothing needs no note.
local function remember(journal, request, tasks)
  if request ~= '' and #tasks > 0 then
    local note = {}
    for i, field in ipairs(tasks) do
      note[i] = #field .. ':' .. field
    end
    redis.call('HSET', journal, request, table.concat(note))
  end
end

-- The code that the scripts of this package share. It is put in front of each of
-- them. KEYS[1] is the queue in all of them.

-- now is the time by the server's clock, the only one that all clients share. It
-- is in microseconds, which a Lua number holds exactly.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- score returns a time in microseconds as a text in seconds. Lua's own conversion
-- of a number to a text would round it.
local function score(us)
  return string.format('%d.%06d', math.floor(us / 1000000), us % 1000000)
end

-- taken returns what a request took if it was executed before, or nil if it is
-- new. A request with an empty id is always new. A note holds each field after its
-- length and a colon, because an id may contain any bytes, which JSON cannot hold.
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

-- remember notes in the journal what a request took. A request that took nothing
-- needs no note.
local function remember(journal, request, tasks)
  if request ~= '' and #tasks > 0 then
    local note = {}
    for i, field in ipairs(tasks) do
      note[i] = #field .. ':' .. field
    end
    redis.call('HSET', journal, request, table.concat(note))
  end
end

-- Append events to a thread's stream, each once and in order, in one step.
--
-- KEYS: the stream, and a hash with its metadata.
-- ARGV: the origin of the events; 1 to accept a hole before them; the seconds to keep both keys;
-- the maximum bytes of the stream; the maximum runs in the metadata; then number, run, attempt,
-- header, data and rank of each event.
--
-- Returns the number of the origin's last event in the stream, and the ranks of the call's events
-- up to that number. A rank is an event's place among all events that were ever sent on the thread,
-- in order of arrival. An event that Redis has lost is sent again with its rank, and keeps it.
-- An event of a superseded attempt keeps its number, so that followers see no hole. Its rank is `-`
--
-- The metadata has the time of the last event (`at:`) of each origin and run, negative for ended
-- runs. Beyond the maximum, the runs that ended first are deleted first, and runs in flight last:
-- their attempts keep superseded ones out. An origin is deleted when its process has discarded its
-- events.
local log, meta, origin = KEYS[1], KEYS[2], ARGV[1]
local force, ttl = ARGV[2] == '1', tonumber(ARGV[3])
local max_bytes, max_runs = tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1])

local function pair(text, pattern)
  local first, second = string.match(text or '', pattern)
  return tonumber(first or '0'), tonumber(second or '0')
end

local ms, seq
local last = redis.call('HGET', meta, 'last')
local last_ms, last_seq = pair(last, '^(%d+)-(%d+)$')

local function rank_of(header, given_rank)
  if given_rank ~= '' then
    ms, seq = pair(given_rank, '^(%d+)-(%d+)$')
  else
    ms, seq = pair(header, '^%[(%d+),(%d+)')
  end
  if ms > last_ms or (ms == last_ms and seq > last_seq) then
    last_ms, last_seq = ms, seq
  elseif given_rank == '' then
    last_seq = last_seq + 1
    ms, seq = last_ms, last_seq
  end
  return string.format('%.0f-%.0f', ms, seq)
end

local ranks_before
local function rank_before(n)
  if not ranks_before then
    ranks_before = {}
    for _, entry in ipairs(redis.call('XREVRANGE', log, '+', '-', 'COUNT', 2000)) do
      local fields = entry[2]
      if fields[2] == origin then
        ranks_before[fields[4]] = fields[9] == 'r' and fields[10] or '-'
      end
    end
  end
  return ranks_before[n] or ''
end

local reserved = {size = true, last = true, born = true, [origin] = true}

local function delete_old()
  local fields, values = redis.call('HGETALL', meta), {}
  for j = 1, #fields, 2 do values[fields[j]] = fields[j + 1] end
  local found, deleted = {}, {}
  for name in pairs(values) do
    local at = tonumber(values['at:' .. name] or '0') or 0
    if name:sub(1, 3) == 'at:' then
      if not values[name:sub(4)] then deleted[#deleted + 1] = name end
    elseif name:sub(1, 4) == 'run:' then
      found[#found + 1] = {name, at < 0 and 0 or 1, math.abs(at)}
    elseif not reserved[name] and now - at > 2 * ttl + 60 then
      deleted[#deleted + 1] = name
    end
  end
  if #found >= max_runs then
    table.sort(found, function(a, b)
      if a[2] ~= b[2] then return a[2] < b[2] end
      return a[3] < b[3]
    end)
    for j = 1, #found - math.floor(max_runs * 0.9) do deleted[#deleted + 1] = found[j][1] end
  end
  for _, name in ipairs(deleted) do redis.call('HDEL', meta, name, 'at:' .. name) end
end

local held = redis.call('HGET', meta, origin)
if not held and redis.call('HLEN', meta) >= 2 * max_runs then delete_old() end
held = tonumber(held or '0')
local last_times = {}
local ranks = {}
local size = 0
local i = 6
while ARGV[i] do
  local n, run, attempt = tonumber(ARGV[i]), 'run:' .. ARGV[i + 1], tonumber(ARGV[i + 2])
  local given_rank = ARGV[i + 5]
  if n > held then
    if n > held + 1 and not force then break end
    force = false
    local newest = tonumber(redis.call('HGET', meta, run) or '0')
    if given_rank == '-' or (given_rank == '' and attempt > 0 and attempt < newest) then
      redis.call('XADD', log, '*', 'o', origin, 'n', n)
      ranks[#ranks + 1] = '-'
    else
      if attempt > newest then
        if newest == 0 and redis.call('HLEN', meta) >= 2 * max_runs then delete_old() end
        redis.call('HSET', meta, run, attempt, 'at:' .. run, now)
      end
      if attempt > 0 or newest > 0 then last_times[run] = ARGV[i + 4] == 'done' and -now or now end
      local rank = rank_of(ARGV[i + 3], given_rank)
      local entry = {'o', origin, 'n', n, 'h', ARGV[i + 3], 'd', ARGV[i + 4], 'r', rank}
      if not last or given_rank ~= '' then
        -- This time tells clients that continue after an earlier event that a refill may go on.
        local born = given_rank == '' and ms or now * 1000 + math.floor(tonumber(time[2]) / 1000)
        redis.call('HSET', meta, 'born', string.format('%.0f', born))
        entry[#entry + 1] = 'b'
        entry[#entry + 1] = last and 'again' or 'first'
        last = rank
      end
      redis.call('XADD', log, '*', unpack(entry))
      ranks[#ranks + 1] = rank
      size = size + #ARGV[i + 3] + #ARGV[i + 4]
    end
    held = n
  else
    ranks[#ranks + 1] = given_rank ~= '' and given_rank or rank_before(ARGV[i])
  end
  i = i + 6
end
for run, at in pairs(last_times) do
  if redis.call('HEXISTS', meta, run) == 1 then redis.call('HSET', meta, 'at:' .. run, at) end
end
if ARGV[6] then
  redis.call('HSET', meta, origin, held, 'at:' .. origin, now)
  if last then redis.call('HSET', meta, 'last', string.format('%.0f-%.0f', last_ms, last_seq)) end
  size = redis.call('HINCRBY', meta, 'size', size)
  while size > max_bytes do
    local oldest = redis.call('XRANGE', log, '-', '+', 'COUNT', 100)
    if #oldest < 2 then break end
    for j = 1, #oldest - 1 do
      if size <= max_bytes then break end
      local fields = oldest[j][2]
      if fields[5] then
        local freed = #fields[6] + #fields[8]
        size = redis.call('HINCRBY', meta, 'size', -freed)
      end
      redis.call('XDEL', log, oldest[j][1])
    end
  end
elseif held > 0 then
  redis.call('HSET', meta, 'at:' .. origin, now)
end
redis.call('EXPIRE', log, ttl)
redis.call('EXPIRE', meta, ttl)
return {held, unpack(ranks)}

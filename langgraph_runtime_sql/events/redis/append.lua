-- Append events to the stream of a thread, each once and in order, in one step.
--
-- KEYS: the stream, and a hash of what is known of it.
-- ARGV: the origin of the events; 1 if a hole before them is to be accepted; the seconds to keep
-- both keys; the bytes that the stream may hold; of how many runs the owners are remembered; then
-- six for each event: number, run, attempt, header, data and rank.
--
-- Answers the number of the last event of this origin that the stream has, and the ranks of those
-- events up to it that came with the call: their order among all that was ever sent on the thread,
-- whoever has sent it. It is the order in which they came here first. An event that was ranked
-- before, by a Redis that has forgotten it, keeps its rank.
-- What an attempt sends that was superseded keeps its number, so that no follower sees a hole, and
-- has no rank (`-`).
-- Beside each origin and each run stands when it was last heard of (`at:`), for a run that has ended
-- below zero. Where there are too many, runs that ended longest ago go first, and those in flight
-- last: what is known of them keeps superseded attempts out. Origins go that were silent for longer
-- than their process keeps what it would tell again.
local log, meta, origin = KEYS[1], KEYS[2], ARGV[1]
local force, ttl = ARGV[2] == '1', tonumber(ARGV[3])
local most, runs = tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1])

local function pair(text, pattern)
  local first, second = string.match(text or '', pattern)
  return tonumber(first or '0'), tonumber(second or '0')
end

local ms, seq
local known = redis.call('HGET', meta, 'last')
local last_ms, last_seq = pair(known, '^(%d+)-(%d+)$')

local function rank_of(header, told)
  if told ~= '' then
    ms, seq = pair(told, '^(%d+)-(%d+)$')
  else
    ms, seq = pair(header, '^%[(%d+),(%d+)')
  end
  if ms > last_ms or (ms == last_ms and seq > last_seq) then
    last_ms, last_seq = ms, seq
  elseif told == '' then
    last_seq = last_seq + 1
    ms, seq = last_ms, last_seq
  end
  return string.format('%.0f-%.0f', ms, seq)
end

local noted
local function rank_before(n)
  if not noted then
    noted = {}
    for _, entry in ipairs(redis.call('XREVRANGE', log, '+', '-', 'COUNT', 2000)) do
      local fields = entry[2]
      if fields[2] == origin then noted[fields[4]] = fields[9] == 'r' and fields[10] or '-' end
    end
  end
  return noted[n] or ''
end

local kept = {size = true, last = true, born = true, [origin] = true}

local function make_room()
  local fields, known = redis.call('HGETALL', meta), {}
  for j = 1, #fields, 2 do known[fields[j]] = fields[j + 1] end
  local found, gone = {}, {}
  for name in pairs(known) do
    local heard = tonumber(known['at:' .. name] or '0') or 0
    if name:sub(1, 3) == 'at:' then
      if not known[name:sub(4)] then gone[#gone + 1] = name end
    elseif name:sub(1, 4) == 'run:' then
      found[#found + 1] = {name, heard < 0 and 0 or 1, math.abs(heard)}
    elseif not kept[name] and now - heard > 2 * ttl + 60 then
      gone[#gone + 1] = name
    end
  end
  if #found >= runs then
    table.sort(found, function(a, b)
      if a[2] ~= b[2] then return a[2] < b[2] end
      return a[3] < b[3]
    end)
    for j = 1, #found - math.floor(runs * 0.9) do gone[#gone + 1] = found[j][1] end
  end
  for _, name in ipairs(gone) do redis.call('HDEL', meta, name, 'at:' .. name) end
end

local held = redis.call('HGET', meta, origin)
if not held and redis.call('HLEN', meta) >= 2 * runs then make_room() end
held = tonumber(held or '0')
local heard = {}
local ranks = {}
local size = 0
local i = 6
while ARGV[i] do
  local n, run, attempt = tonumber(ARGV[i]), 'run:' .. ARGV[i + 1], tonumber(ARGV[i + 2])
  local told = ARGV[i + 5]
  if n > held then
    if n > held + 1 and not force then break end
    force = false
    local owner = tonumber(redis.call('HGET', meta, run) or '0')
    if told == '-' or (told == '' and attempt > 0 and attempt < owner) then
      redis.call('XADD', log, '*', 'o', origin, 'n', n)
      ranks[#ranks + 1] = '-'
    else
      if attempt > owner then
        if owner == 0 and redis.call('HLEN', meta) >= 2 * runs then make_room() end
        redis.call('HSET', meta, run, attempt, 'at:' .. run, now)
      end
      if attempt > 0 or owner > 0 then heard[run] = ARGV[i + 4] == 'done' and -now or now end
      local rank = rank_of(ARGV[i + 3], told)
      local entry = {'o', origin, 'n', n, 'h', ARGV[i + 3], 'd', ARGV[i + 4], 'r', rank}
      if not known or told ~= '' then
        -- Whoever has seen an event before knows by this that others are still to come.
        local born = told == '' and ms or now * 1000 + math.floor(tonumber(time[2]) / 1000)
        redis.call('HSET', meta, 'born', string.format('%.0f', born))
        entry[#entry + 1] = 'b'
        entry[#entry + 1] = known and 'again' or 'first'
        known = rank
      end
      redis.call('XADD', log, '*', unpack(entry))
      ranks[#ranks + 1] = rank
      size = size + #ARGV[i + 3] + #ARGV[i + 4]
    end
    held = n
  else
    ranks[#ranks + 1] = told ~= '' and told or rank_before(ARGV[i])
  end
  i = i + 6
end
for run, at in pairs(heard) do
  if redis.call('HEXISTS', meta, run) == 1 then redis.call('HSET', meta, 'at:' .. run, at) end
end
if ARGV[6] then
  redis.call('HSET', meta, origin, held, 'at:' .. origin, now)
  if known then redis.call('HSET', meta, 'last', string.format('%.0f-%.0f', last_ms, last_seq)) end
  size = redis.call('HINCRBY', meta, 'size', size)
  while size > most do
    local oldest = redis.call('XRANGE', log, '-', '+', 'COUNT', 100)
    if #oldest < 2 then break end
    for j = 1, #oldest - 1 do
      if size <= most then break end
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

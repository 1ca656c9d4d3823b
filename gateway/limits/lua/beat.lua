-- ARGV: ms after which an instance without a heartbeat counts as lost; the time up to which this instance has all changes;
-- calls in its journal that are not in the ledger.
-- Answers: 0, reaped leases, names of the live instances, the time up to which it has all changes now, and the changes:
-- { entity, leased, { window, total, version, spend }, ... }.
local MOVED_AT_ONCE, MOVED_FOR = 200, 600000
-- An instance that vanished with a drained journal is removed from the list after this time.
local GONE_AFTER = 3600000
if not current() then return { STALE } end
local now = time()
call('ZADD', BEATS, num(now), instance)
noteUndrained(ARGV[FIRST + 2])
local reaped = reap(now, 200)
store(now)

-- Entities unused for a day are removed; their totals can be read from the ledger. One that still holds data is checked
-- again later.
local function isBusy(fields)
  for i = 1, #fields, 2 do
    local packed = cmsgpack.unpack(fields[i + 1])
    if fields[i] == 'account' then
      if packed[HOLDERS] ~= 0 or packed[SLOTS] ~= 0 then return true end
    elseif #packed >= PARTS then
      return true
    end
  end
  return false
end

for _, name in ipairs(call('ZRANGEBYSCORE', TOUCHED, '-inf', num(now - IDLE_AFTER), 'LIMIT', 0, 20)) do
  local key = prefix .. 'entity:' .. name
  if isBusy(call('HGETALL', key)) then
    call('ZADD', TOUCHED, num(now), name)
  else
    call('DEL', key)
    call('ZREM', TOUCHED, name)
  end
end

for _, name in ipairs(call('ZRANGEBYSCORE', BEATS, '-inf', num(now - GONE_AFTER))) do
  if call('HEXISTS', UNDRAINED, name) == 0 then removeInstance(name) end
end
-- If there are more changes than fit, the rest follows at the next heartbeat.
call('ZREMRANGEBYSCORE', MOVED, '-inf', num(now - MOVED_FOR))
local heardTo, moved = tonumber(ARGV[FIRST + 1]), {}
local names = call('ZRANGEBYSCORE', MOVED, num(heardTo), '+inf', 'WITHSCORES', 'LIMIT', 0, MOVED_AT_ONCE)
for i = 1, #names, 2 do
  local fields = call('HGETALL', prefix .. 'entity:' .. names[i])
  local entity = { names[i], 0 }
  for f = 1, #fields, 2 do
    local packed = cmsgpack.unpack(fields[f + 1])
    if fields[f] == 'account' then
      entity[2] = packed[LEASED]
    elseif packed[GOOD_FOR] == generation then
      entity[#entity + 1] = { string.sub(fields[f], 8), packed[TOTAL], packed[VERSION], packed[TOTAL] + packed[PENDING] }
    end
  end
  moved[#moved + 1] = entity
end
local knownTo = now
if #moved == MOVED_AT_ONCE then knownTo = math.max(heardTo + 1, tonumber(names[#names])) end

local since = now - tonumber(ARGV[FIRST])
local living = call('ZRANGEBYSCORE', BEATS, num(since), '+inf')
-- After a flush, those for which the generation still waits have sent no heartbeat yet.
local state = call('HMGET', prefix .. 'generation', 'since', 'waiting')
if state[2] ~= '0' and tonumber(state[1]) > since then
  for _, name in ipairs(awaited()) do
    if not call('ZSCORE', BEATS, name) then living[#living + 1] = name end
  end
end
return { 0, reaped, living, num(knownTo), moved }

-- ARGV: ms after which an instance without a beat counts as gone. Answers: reaped leases, names of the living.
if not current() then return { STALE } end
local now = time()
local BEATS = prefix .. 'beats'
call('ZADD', BEATS, num(now), instance)
local reaped = reap(now, 200)
store()

-- Entities unused for a day go; their totals come back from the ledger. One that still holds something is looked at later.
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

for _, name in ipairs(call('ZRANGEBYSCORE', BEATS, '-inf', num(now - IDLE_AFTER), 'LIMIT', 0, 20)) do
  call('ZREM', BEATS, name)
  call('HDEL', prefix .. 'generation', 'session:' .. name)
end
return { 0, reaped, unpack(call('ZRANGEBYSCORE', BEATS, num(now - tonumber(ARGV[FIRST])), '+inf')) }

-- ARGV: ms after which an instance without a beat counts as gone. Answers: reaped leases, names of the living.
if not current() then return { STALE } end
local now = time()
redis.call('ZADD', key('beats'), num(now), instance)
local reaped = reap(now, 200)

-- Entities unused for a day go; their totals come back from the ledger. One that still holds something is looked at later.
local idle = redis.call('ZRANGEBYSCORE', key('touched'), '-inf', num(now - IDLE_AFTER), 'LIMIT', 0, 20)
for _, name in ipairs(idle) do
  local entity = key('entity:' .. name)
  local fields, busy = redis.call('HGETALL', entity), false
  for i = 1, #fields, 2 do
    local field, value = fields[i], fields[i + 1]
    if string.sub(field, 1, 2) == 'b:' or ((field == 'l' or field == 's' or field == 'h') and value ~= '0') then busy = true end
  end
  if busy then
    redis.call('ZADD', key('touched'), num(now), name)
  else
    redis.call('DEL', entity)
    redis.call('ZREM', key('touched'), name)
  end
end

local gone = redis.call('ZRANGEBYSCORE', key('beats'), '-inf', num(now - IDLE_AFTER), 'LIMIT', 0, 20)
for _, name in ipairs(gone) do
  redis.call('ZREM', key('beats'), name)
  redis.call('HDEL', key('generation'), 'session:' .. name)
end
return { 0, reaped, unpack(redis.call('ZRANGEBYSCORE', key('beats'), num(now - tonumber(ARGV[FIRST])), '+inf')) }

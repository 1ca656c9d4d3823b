-- Sets what this instance knows of itself, whatever Redis holds of it.
-- ARGV: lease in ms; count, ids of calls that are over; count, (entity, window, pending) of counters;
-- then for each call in flight: id, estimate, count, (entity, takes).
if not current() then return { STALE } end
local now = time()
local expiry = num(now + tonumber(ARGV[FIRST]))
local a = FIRST + 1

local function drop(id)
  local packed = redis.call('HGET', key('calls'), id)
  if packed then
    release(packed, now, nil)
    redis.call('HDEL', key('calls'), id)
    redis.call('ZREM', key('leases'), id)
  end
end

local over = tonumber(ARGV[a])
for i = a + 1, a + over do drop(ARGV[i]) end
a = a + 1 + over

-- Nobody knows whether a total read meanwhile holds this pending spend already: unsure until the next assign.
local counters = tonumber(ARGV[a])
for i = a + 1, a + counters * 3, 3 do
  local pending = tonumber(ARGV[i + 2])
  assignPending(key('entity:' .. ARGV[i]), ARGV[i + 1], instance, pending, pending)
end
a = a + 1 + counters * 3

while a <= #ARGV do
  local id, estimate, count = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local standing = redis.call('HGET', key('calls'), id)
  if not standing or cmsgpack.unpack(standing)[1] ~= estimate then
    drop(id)
    local record = { estimate, 0 }
    for i = a + 3, a + 2 + count * 2, 2 do
      local entity, takes = key('entity:' .. ARGV[i]), tonumber(ARGV[i + 1])
      if has(takes, TAKES_BUDGET) and estimate > 0 then
        redis.call('HINCRBY', entity, 'l', num(estimate))
        redis.call('HINCRBY', entity, 'h', 1)
      end
      if has(takes, TAKES_SLOT) then redis.call('HINCRBY', entity, 's', 1) end
      record[#record + 1], record[#record + 2], record[#record + 3] = ARGV[i], takes, 0
      redis.call('ZADD', key('touched'), num(now), ARGV[i])
    end
    redis.call('HSET', key('calls'), id, cmsgpack.pack(record))
  end
  redis.call('ZADD', key('leases'), expiry, id)
  a = a + 3 + count * 2
end
return { 0 }

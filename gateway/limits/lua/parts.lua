-- Sets the parts of this instance, whatever Redis has of them.
-- ARGV: count, ids of calls that are over; count, (entity, window, pending) of counters;
-- then for each call in flight: id, estimate, ms until its lease expires, count, (entity, takes).
if not current() then return { STALE } end
local now = time()
local a = FIRST

local over = tonumber(ARGV[a])
for i = a + 1, a + over do drop(ARGV[i], now, nil) end
a = a + 1 + over

-- A total read meanwhile may already include this pending spend: unsure until the next assign.
local counters = tonumber(ARGV[a])
for i = a + 1, a + counters * 3, 3 do
  local _, window = load(ARGV[i], ARGV[i + 1])
  local pending = tonumber(ARGV[i + 2])
  assignPending(window, instance, pending, pending)
end
a = a + 1 + counters * 3

while a <= #ARGV do
  local id, estimate, left, count = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  local standing = call('HGET', CALLS, id)
  if not standing or cmsgpack.unpack(standing)[1] ~= estimate then
    drop(id, now, nil)
    local record = { estimate, 0 }
    for i = a + 4, a + 3 + count * 2, 2 do
      local entity, takes = load(ARGV[i]), tonumber(ARGV[i + 1])
      local account = entity.account
      entity.changed = true
      if has(takes, TAKES_BUDGET) and estimate > 0 then
        account[LEASED], account[HOLDERS] = account[LEASED] + estimate, account[HOLDERS] + 1
        entity.moved = true
      end
      if has(takes, TAKES_SLOT) then account[SLOTS] = account[SLOTS] + 1 end
      -- No start of a minute: tokens were not counted here, or were corrected long ago.
      record[#record + 1], record[#record + 2], record[#record + 3] = ARGV[i], takes, -1
      call('ZADD', TOUCHED, num(now), ARGV[i])
    end
    call('HSET', CALLS, id, cmsgpack.pack(record))
  end
  call('ZADD', LEASES, num(now + left), id)
  a = a + 4 + count * 2
end
store(now)
return { 0 }

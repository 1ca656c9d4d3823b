-- Begins every script. All limit data lies under one prefix in one Redis (no cluster: entity keys are derived here).
--
--   generation       hash: id, since, opens, deadline, fresh, waiting (count), wait:<instance>, session:<instance>
--   beats            zset: instance -> last heartbeat
--   leases           zset: call id -> expiry
--   calls            hash: call id -> packed {estimate, tokens, entity, takes, rate start, entity, takes, rate start, ...}
--   touched          zset: entity -> about when it was last used
--   entity:<name>    hash: l leased, h calls that hold a lease, s slots taken, r start of the rate window, q requests and
--                    k tokens in it; for each budget window W: t:W ledger total, v:W its version, g:W the generation that
--                    it is good for, b:W packed {instance, pending, unsure, ...}, p:W and u:W the sums of those two,
--                    d:W about when the window was last used
--
-- A sum is written only together with the map it sums up. Money is in whole nano-dollars and is written with num():
-- Lua's own tostring would turn 1e15 into "1e+15".

local STALE, REBUILDING = 7, 6
local TAKES_BUDGET, TAKES_SLOT, TAKES_TOKENS = 1, 2, 4
local RATE_WINDOW = 60000
local TOUCH_EVERY = 600000
local SUPERSEDED_AFTER = 600000
local IDLE_AFTER = 90000000

local prefix, instance, generation, session, clock = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local FIRST = 6

local function key(name)
  return prefix .. name
end

local function num(n)
  return string.format('%.0f', n)
end

local function has(takes, what)
  return takes % (what + what) >= what
end

-- Milliseconds: a test's clock when there is one, else the server's, so that instances need not agree on the time.
local function time()
  if clock ~= '' then return tonumber(clock) end
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- Refuses what an earlier connection of this instance sent, and everything when the generation is not the one it knows
-- (a flushed Redis has none).
local function current()
  local known = redis.call('HMGET', key('generation'), 'id', 'session:' .. instance)
  return known[1] == generation and known[2] == session
end

-- Gives back what a call has taken. `used` is nil when the lease expired: the estimate of tokens then stands.
local function release(packed, now, used)
  local call = cmsgpack.unpack(packed)
  local estimate, tokens = call[1], call[2]
  for i = 3, #call, 3 do
    local entity, takes, started = key('entity:' .. call[i]), call[i + 1], call[i + 2]
    local old = redis.call('HMGET', entity, 'l', 'h', 's', 'r', 'k')
    local new = {}
    if has(takes, TAKES_BUDGET) and estimate > 0 then
      new = { 'l', num((tonumber(old[1]) or 0) - estimate), 'h', num((tonumber(old[2]) or 0) - 1) }
    end
    if has(takes, TAKES_SLOT) then
      new[#new + 1] = 's'
      new[#new + 1] = num((tonumber(old[3]) or 0) - 1)
    end
    if used and used ~= tokens and has(takes, TAKES_TOKENS) and tonumber(old[4]) == started and now < started + RATE_WINDOW then
      new[#new + 1] = 'k'
      new[#new + 1] = num(math.max(0, (tonumber(old[5]) or 0) + used - tokens))
    end
    if #new > 0 then redis.call('HSET', entity, unpack(new)) end
  end
end

-- Drops leases whose instance has not renewed them, at most `limit` of them.
local function reap(now, limit)
  local expired = redis.call('ZRANGEBYSCORE', key('leases'), '-inf', num(now), 'LIMIT', 0, limit)
  for _, id in ipairs(expired) do
    local packed = redis.call('HGET', key('calls'), id)
    if packed then
      release(packed, now, nil)
      redis.call('HDEL', key('calls'), id)
    end
    redis.call('ZREM', key('leases'), id)
  end
  return #expired
end

-- Changes one instance's part of a packed list {instance, pending, unsure, ...}; answers the new list and both sums.
local function withPart(packed, who, pending, unsure)
  local list, result, sum, unsureSum = packed and cmsgpack.unpack(packed) or {}, {}, 0, 0
  local function keep(name, p, u)
    if p == 0 then return end
    result[#result + 1], result[#result + 2], result[#result + 3] = name, p, u
    sum, unsureSum = sum + p, unsureSum + u
  end
  local found = false
  for i = 1, #list, 3 do
    if list[i] == who then
      found = true
      keep(who, pending, unsure or math.min(list[i + 2], pending))
    else
      keep(list[i], list[i + 1], list[i + 2])
    end
  end
  if not found then keep(who, pending, unsure or 0) end
  return result, sum, unsureSum
end

-- Assigns one instance's pending sum. `unsure` is the part of it that the ledger's total may hold already: nil keeps what
-- it was.
local function assignPending(entity, window, who, pending, unsure)
  local old = redis.call('HMGET', entity, 'b:' .. window, 'p:' .. window, 'u:' .. window)
  local list, sum, unsureSum = withPart(old[1], who, pending, unsure)
  if #list == 0 then
    if old[1] then redis.call('HDEL', entity, 'b:' .. window, 'p:' .. window, 'u:' .. window) end
  else
    redis.call('HSET', entity, 'b:' .. window, cmsgpack.pack(list), 'p:' .. window, num(sum), 'u:' .. window, num(unsureSum))
  end
end

-- Drops windows that another one has replaced, and that hold no pending spend.
local function dropSuperseded(entity, window, now)
  local fields = redis.call('HGETALL', entity)
  local used, pending, windows = {}, {}, {}
  for i = 1, #fields, 2 do
    local kind, name = string.match(fields[i], '^(%l):(.*)$')
    if kind and name ~= window then
      windows[name] = true
      if kind == 'd' then used[name] = tonumber(fields[i + 1]) end
      if kind == 'b' then pending[name] = true end
    end
  end
  for name in pairs(windows) do
    if not pending[name] and now - (used[name] or 0) > SUPERSEDED_AFTER then
      redis.call('HDEL', entity, 't:' .. name, 'v:' .. name, 'g:' .. name, 'p:' .. name, 'u:' .. name, 'd:' .. name)
    end
  end
end

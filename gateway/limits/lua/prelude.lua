-- Starts every script. All limit data is under one prefix in one Redis (no cluster: entity keys are derived here).
--
--   generation       hash: id, since, opens, deadline, fresh, server, waiting (count), wait:<instance>, session:<instance>
--   beats            zset: instance -> last heartbeat
--   undrained        hash: instance -> calls in its journal that were not in the ledger at its last heartbeat; absent: none
--   leases           zset: call id -> expiry
--   calls            hash: call id -> packed {estimate, tokens, entity, takes, rate start, entity, takes, rate start, ...}
--   touched          zset: entity -> about when it was last used
--   moved            zset: entity with a budget -> when its spend or leases last changed
--   entity:<name>    hash: `account` -> packed account; `window:<name>` -> packed window, for each window of its budget
--
-- Packed (MessagePack), because one entity is then read in one command and written in one, and whole numbers stay exact:
-- Lua's own tostring would turn 1e15 into "1e+15". A sum is written only together with the map it sums up.

local STALE, REBUILDING = 7, 6
local TAKES_BUDGET, TAKES_SLOT, TAKES_TOKENS = 1, 2, 4
local RATE_WINDOW = 60000
local TOUCH_EVERY = 600000
local SUPERSEDED_AFTER = 600000
local IDLE_AFTER = 90000000

-- An account: the sum reserved by calls in flight, how many have a lease, parallel slots, start of the minute, requests and
-- tokens in it, about when it was last used.
local LEASED, HOLDERS, SLOTS, RATE, REQUESTS, TOKENS, USED = 1, 2, 3, 4, 5, 6, 7
-- A window: the generation that its total is valid for (or in which it was left behind), the ledger's total with its version,
-- about when it was last used, the sum of all pending, the sum of what is unsure of it; then for each instance: name, pending,
-- unsure.
local GOOD_FOR, TOTAL, VERSION, W_USED, PENDING, UNSURE, PARTS = 1, 2, 3, 4, 5, 6, 7

local prefix, instance, generation, session, clock = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local FIRST = 6
local CALLS, LEASES, TOUCHED = prefix .. 'calls', prefix .. 'leases', prefix .. 'touched'
local MOVED = prefix .. 'moved'
local BEATS, UNDRAINED = prefix .. 'beats', prefix .. 'undrained'
local call = redis.call

local function has(takes, what)
  return takes % (what + what) >= what
end

-- A whole number as Redis commands take it.
local function num(n)
  return string.format('%.0f', n)
end

-- Milliseconds: a test's clock when there is one, else the server's, so that instances need not agree on the time.
local function time()
  if clock ~= '' then return tonumber(clock) end
  local t = call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- Rejects what an earlier connection of this instance sent, and everything when the generation is not the one it knows
-- (a flushed Redis has none).
local function current()
  local known = call('HMGET', prefix .. 'generation', 'id', 'session:' .. instance)
  return known[1] == generation and known[2] == session
end

-- Removes an instance that has ended from the list.
local function removeInstance(name)
  call('ZREM', BEATS, name)
  call('HDEL', UNDRAINED, name)
  call('HDEL', prefix .. 'generation', 'session:' .. name)
end

-- The instances for which the generation waits.
local function awaited()
  local names = {}
  for _, field in ipairs(call('HKEYS', prefix .. 'generation')) do
    if string.sub(field, 1, 5) == 'wait:' then names[#names + 1] = string.sub(field, 6) end
  end
  return names
end

-- Notes how many calls of this instance are in its journal alone.
local function noteUndrained(calls)
  if calls == '0' then call('HDEL', UNDRAINED, instance) else call('HSET', UNDRAINED, instance, calls) end
end

local loaded = {}

-- The entity, with one of its windows where one is named: read once, changed in place, written by store().
local function load(name, window)
  local entity = loaded[name]
  if not entity then
    entity = { key = prefix .. 'entity:' .. name, windows = {} }
    loaded[name] = entity
  end
  local known = entity.windows
  if not entity.account or (window and not known[window]) then
    local packed = call('HMGET', entity.key, 'account', 'window:' .. (window or ''))
    if not entity.account then
      entity.account = packed[1] and cmsgpack.unpack(packed[1]) or { 0, 0, 0, 0, 0, 0, 0 }
    end
    if window then known[window] = packed[2] and cmsgpack.unpack(packed[2]) or { '', 0, -1, 0, 0, 0 } end
  end
  return entity, window and known[window]
end

local function store(now)
  local moved = {}
  for name, entity in pairs(loaded) do
    local fields, hasMoved = {}, entity.moved
    if entity.changed then
      fields = { 'account', cmsgpack.pack(entity.account) }
    end
    for windowName, window in pairs(entity.windows) do
      if window.changed then
        window.changed, hasMoved = nil, true
        fields[#fields + 1], fields[#fields + 2] = 'window:' .. windowName, cmsgpack.pack(window)
      end
    end
    entity.changed, entity.moved = nil, nil
    if #fields > 0 then call('HSET', entity.key, unpack(fields)) end
    if hasMoved then moved[#moved + 1], moved[#moved + 2] = num(now), name end
  end
  if #moved > 0 then call('ZADD', MOVED, unpack(moved)) end
end

-- Releases the reservation of a call; never more than there is, should Redis have lost the account. `used` is nil when the lease expired: the estimate of tokens then stands.
local function release(record, now, used)
  local estimate, tokens = record[1], record[2]
  for i = 3, #record, 3 do
    local takes, started = record[i + 1], record[i + 2]
    local entity = load(record[i])
    local account = entity.account
    entity.changed = true
    if has(takes, TAKES_BUDGET) and estimate > 0 then
      account[LEASED] = math.max(0, account[LEASED] - estimate)
      account[HOLDERS] = math.max(0, account[HOLDERS] - 1)
      entity.moved = true
    end
    if has(takes, TAKES_SLOT) then account[SLOTS] = math.max(0, account[SLOTS] - 1) end
    if used and has(takes, TAKES_TOKENS) and account[RATE] == started and now < started + RATE_WINDOW then
      account[TOKENS] = math.max(0, account[TOKENS] + used - tokens)
    end
  end
end

-- Ends a call that is in flight. Answers whether it was.
local function drop(callId, now, used)
  local packed = call('HGET', CALLS, callId)
  if not packed then return false end
  release(cmsgpack.unpack(packed), now, used)
  call('HDEL', CALLS, callId)
  call('ZREM', LEASES, callId)
  return true
end

-- Drops leases that were not renewed, at most `limit` of them.
local function reap(now, limit)
  local expired = call('ZRANGEBYSCORE', LEASES, '-inf', num(now), 'LIMIT', 0, limit)
  for _, callId in ipairs(expired) do
    if not drop(callId, now, nil) then call('ZREM', LEASES, callId) end
  end
  return #expired
end

-- Assigns one instance's pending sum. `unsure` is the part of it that the ledger's total may hold already; nil keeps what
-- it was.
local function assignPending(window, who, pending, unsure)
  local at = #window + 1
  for i = PARTS, #window, 3 do
    if window[i] == who then at = i end
  end
  local was, wasUnsure = window[at + 1] or 0, window[at + 2] or 0
  unsure = unsure or math.min(wasUnsure, pending)
  if pending ~= was or unsure ~= wasUnsure then window.changed = true end
  window[PENDING], window[UNSURE] = window[PENDING] + pending - was, window[UNSURE] + unsure - wasUnsure
  if pending ~= 0 then
    window[at], window[at + 1], window[at + 2] = who, pending, unsure
  elseif at < #window then
    for _ = 1, 3 do table.remove(window, at) end
  end
end

-- Drops replaced windows without pending spend.
local function dropSuperseded(entity, current, now)
  local fields = call('HGETALL', entity.key)
  for i = 1, #fields, 2 do
    local name = string.sub(fields[i], 8)
    if string.sub(fields[i], 1, 7) == 'window:' and name ~= current and not entity.windows[name] then
      local window = cmsgpack.unpack(fields[i + 1])
      if #window < PARTS and now - window[W_USED] > SUPERSEDED_AFTER then call('HDEL', entity.key, fields[i]) end
    end
  end
end

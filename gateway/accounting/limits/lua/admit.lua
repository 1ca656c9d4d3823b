-- ARGV: call id, estimate, tokens, strict (1 or 0), lease in ms, cache key ('' for none), then for each entity:
-- name, budget ('' for none), window, requests/min, tokens/min, parallel ('' for none).
local ADMITTED, MISSING, EXCEEDED, HELD, TOO_LARGE, RATE = 0, 1, 2, 3, 4, 5
local REQUESTS, TOKENS, PARALLEL = 1, 2, 3

local callId, estimate, tokens = ARGV[FIRST], tonumber(ARGV[FIRST + 1]), tonumber(ARGV[FIRST + 2])
local strict, leaseMs, cacheKey = ARGV[FIRST + 3] == '1', tonumber(ARGV[FIRST + 4]), ARGV[FIRST + 5]

local gate = redis.call('HMGET', key('generation'), 'id', 'session:' .. instance, 'waiting', 'opens', 'deadline')
if gate[1] ~= generation or gate[2] ~= session then return { STALE } end
local now = time()
if not ((gate[3] == '0' and now >= tonumber(gate[4])) or now >= tonumber(gate[5])) then return { REBUILDING } end

local reaped = reap(now, 32)

local cached = false
if cacheKey ~= '' then
  cached = redis.call('GET', cacheKey)
  if cached then estimate, tokens = 0, 0 end
end

-- A call that is in flight already only raises its lease: what it holds itself does not stand in its way.
local standing = redis.call('HGET', key('calls'), callId)
local own, recorded = {}, {}
if standing then
  standing = cmsgpack.unpack(standing)
  for i = 3, #standing, 3 do
    recorded[standing[i]] = i
    if has(standing[i + 1], TAKES_BUDGET) then own[standing[i]] = standing[1] end
  end
end

local entities, missing = {}, {}
for a = FIRST + 6, #ARGV, 6 do
  local w = ARGV[a + 2]
  local e = { name = ARGV[a], key = key('entity:' .. ARGV[a]), window = w }
  e.budget, e.rpm, e.tpm, e.parallel = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5])
  local f = redis.call('HMGET', e.key, 'l', 'h', 's', 'r', 'q', 'k', 'd:' .. w, 't:' .. w, 'g:' .. w, 'p:' .. w, 'u:' .. w)
  e.leased, e.holders, e.slots = tonumber(f[1]) or 0, tonumber(f[2]) or 0, tonumber(f[3]) or 0
  e.used = tonumber(f[7])
  entities[#entities + 1] = e
  if e.rpm or e.tpm then
    e.rate, e.requests, e.tokens = tonumber(f[4]), tonumber(f[5]) or 0, tonumber(f[6]) or 0
    if not e.rate or now >= e.rate + RATE_WINDOW or now < e.rate then e.rate, e.requests, e.tokens = now, 0, 0 end
  end
  if e.budget then
    if f[8] and f[9] == generation then
      e.spend = tonumber(f[8]) + (tonumber(f[10]) or 0)
      e.sure = e.spend - (tonumber(f[11]) or 0)
    else
      missing[#missing + 1] = #entities - 1
    end
  end
end
if #missing > 0 then return { MISSING, reaped, unpack(missing) } end

-- Whole nanos are compared exactly. A tolerance in favour of the call would admit a call on a budget of 0; none is needed,
-- because `sure` never counts spend twice and budgets are rounded up.
for i, e in ipairs(entities) do
  if e.budget and e.sure >= e.budget then return { EXCEEDED, reaped, i - 1, e.sure } end
end

if not standing then
  for i, e in ipairs(entities) do
    if e.rpm and e.requests + 1 > e.rpm then return { RATE, reaped, i - 1, REQUESTS, e.rate + RATE_WINDOW - now } end
    if e.tpm and e.tokens >= e.tpm then return { RATE, reaped, i - 1, TOKENS, e.rate + RATE_WINDOW - now } end
    if e.parallel and e.slots + 1 > e.parallel then return { RATE, reaped, i - 1, PARALLEL, 1000 } end
  end
end

local lease = estimate
if estimate > 0 then
  if strict then
    for i, e in ipairs(entities) do
      if e.budget and estimate > e.budget - e.sure then return { TOO_LARGE, reaped, i - 1, e.budget - e.sure } end
    end
  end
  for i, e in ipairs(entities) do
    if e.budget then
      local remaining = e.budget - e.spend - e.leased + (own[e.name] or 0)
      if remaining <= 0 or (strict and estimate > remaining) then
        return { HELD, reaped, i - 1, e.holders, e.spend, e.leased }
      end
      lease = math.min(lease, remaining)
    end
  end
end

local record = standing or { estimate, tokens }
local before = standing and standing[1] or 0
estimate = math.max(estimate, before)
record[1] = estimate
local reply = { ADMITTED, reaped, lease, cached }
for i, e in ipairs(entities) do
  local new, takes, started = {}, 0, 0
  if e.budget then
    takes = TAKES_BUDGET
    local held = own[e.name] or 0
    own[e.name] = nil
    if estimate > held then
      e.leased = e.leased + estimate - held
      if held == 0 then e.holders = e.holders + 1 end
      new = { 'l', num(e.leased), 'h', num(e.holders) }
    end
  end
  if not standing then
    if e.parallel then
      takes = takes + TAKES_SLOT
      new[#new + 1], new[#new + 2] = 's', num(e.slots + 1)
    end
    if e.rate then
      if e.tpm then takes = takes + TAKES_TOKENS end
      started = e.rate
      e.requests, e.tokens = e.requests + 1, e.tokens + tokens
      local n = #new
      new[n + 1], new[n + 2], new[n + 3], new[n + 4] = 'r', num(e.rate), 'q', num(e.requests)
      new[n + 5], new[n + 6] = 'k', num(e.tokens)
    end
  end
  local at = recorded[e.name]
  if not at then
    local n = #record
    record[n + 1], record[n + 2], record[n + 3] = e.name, takes, started
  elseif takes == TAKES_BUDGET and not has(record[at + 1], TAKES_BUDGET) then
    record[at + 1] = record[at + 1] + TAKES_BUDGET
  end
  local touch = not e.used or now - e.used > TOUCH_EVERY
  if touch then
    local n = #new
    new[n + 1], new[n + 2] = 'd:' .. e.window, num(now)
  end
  if #new > 0 then redis.call('HSET', e.key, unpack(new)) end
  if touch then
    redis.call('ZADD', key('touched'), num(now), e.name)
    dropSuperseded(e.key, e.window, now)
  end
  local n = 4 + (i - 1) * 5
  reply[n + 1], reply[n + 2] = e.rate and e.requests or -1, e.rate and e.tokens or -1
  reply[n + 3] = e.rate and e.rate + RATE_WINDOW - now or 0
  reply[n + 4], reply[n + 5] = e.spend or -1, e.leased
end
-- Payers of the call as it was, that the dearer one does not name: one record, one amount.
if estimate > before then
  for name, held in pairs(own) do
    redis.call('HINCRBY', key('entity:' .. name), 'l', num(estimate - held))
    if held == 0 then redis.call('HINCRBY', key('entity:' .. name), 'h', 1) end
  end
end
redis.call('HSET', key('calls'), callId, cmsgpack.pack(record))
redis.call('ZADD', key('leases'), num(now + leaseMs), callId)
return reply

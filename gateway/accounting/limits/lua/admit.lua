-- ARGV: call id, estimate, tokens, strict (1 or 0), lease in ms, cache key ('' for none), then for each entity:
-- name, budget ('' for none), window, requests/min, tokens/min, parallel ('' for none).
local ADMITTED, MISSING, EXCEEDED, HELD, TOO_LARGE, RATE_LIMITED = 0, 1, 2, 3, 4, 5
local BY_REQUESTS, BY_TOKENS, BY_PARALLEL = 1, 2, 3

local callId, estimate, tokens = ARGV[FIRST], tonumber(ARGV[FIRST + 1]), tonumber(ARGV[FIRST + 2])
local strict, leaseMs, cacheKey = ARGV[FIRST + 3] == '1', tonumber(ARGV[FIRST + 4]), ARGV[FIRST + 5]

local gate = call('HMGET', prefix .. 'generation', 'id', 'session:' .. instance, 'waiting', 'opens', 'deadline')
if gate[1] ~= generation or gate[2] ~= session then return { STALE } end
local now = time()
if not ((gate[3] == '0' and now >= tonumber(gate[4])) or now >= tonumber(gate[5])) then return { REBUILDING } end

local reaped = reap(now, 32)
if reaped > 0 then store() end

local cached = false
if cacheKey ~= '' then
  cached = call('GET', cacheKey)
  if cached then estimate, tokens = 0, 0 end
end

-- A call that is in flight already only raises its lease: what it holds itself does not stand in its way.
local standing = call('HGET', CALLS, callId)
local own, recorded = {}, {}
if standing then
  standing = cmsgpack.unpack(standing)
  for i = 3, #standing, 3 do
    recorded[standing[i]] = i
    if has(standing[i + 1], TAKES_BUDGET) then own[standing[i]] = standing[1] end
  end
end

local payers, missing = {}, {}
for a = FIRST + 6, #ARGV, 6 do
  local budget, rpm, tpm = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local entity, window = load(ARGV[a], ARGV[a + 2])
  local payer = { name = ARGV[a], entity = entity, account = entity.account, window = window, windowName = ARGV[a + 2] }
  payer.budget, payer.rpm, payer.tpm, payer.parallel = budget, rpm, tpm, tonumber(ARGV[a + 5])
  payers[#payers + 1] = payer
  if rpm or tpm then
    local account = payer.account
    payer.rate, payer.requests, payer.tokens = account[RATE], account[REQUESTS], account[TOKENS]
    if now >= account[RATE] + RATE_WINDOW or now < account[RATE] then
      payer.rate, payer.requests, payer.tokens = now, 0, 0
    end
  end
  if budget then
    if window[GOOD_FOR] ~= generation then
      missing[#missing + 1] = #payers - 1
    else
      payer.spend = window[TOTAL] + window[PENDING]
      payer.sure = payer.spend - window[UNSURE]
    end
  end
end
if #missing > 0 then return { MISSING, reaped, unpack(missing) } end

-- Whole nanos are compared exactly. A tolerance in favour of the call would admit a call on a budget of 0; none is needed,
-- because `sure` never counts spend twice and budgets are rounded up.
for i, payer in ipairs(payers) do
  if payer.budget and payer.sure >= payer.budget then return { EXCEEDED, reaped, i - 1, payer.sure } end
end

if not standing then
  for i, payer in ipairs(payers) do
    if payer.rate then
      local left = payer.rate + RATE_WINDOW - now
      if payer.rpm and payer.requests >= payer.rpm then return { RATE_LIMITED, reaped, i - 1, BY_REQUESTS, left } end
      if payer.tpm and payer.tokens >= payer.tpm then return { RATE_LIMITED, reaped, i - 1, BY_TOKENS, left } end
    end
    if payer.parallel and payer.account[SLOTS] >= payer.parallel then
      return { RATE_LIMITED, reaped, i - 1, BY_PARALLEL, 1000 }
    end
  end
end

local lease = estimate
if estimate > 0 then
  if strict then
    for i, payer in ipairs(payers) do
      if payer.budget and estimate > payer.budget - payer.sure then
        return { TOO_LARGE, reaped, i - 1, payer.budget - payer.sure }
      end
    end
  end
  for i, payer in ipairs(payers) do
    if payer.budget then
      local account = payer.account
      local remaining = payer.budget - payer.spend - account[LEASED] + (own[payer.name] or 0)
      if remaining <= 0 or (strict and estimate > remaining) then
        return { HELD, reaped, i - 1, account[HOLDERS], payer.spend, account[LEASED] }
      end
      lease = math.min(lease, remaining)
    end
  end
end

local record = standing or { estimate, tokens }
local before = standing and standing[1] or 0
estimate = math.max(estimate, before)
record[1] = estimate

local function hold(account, held)
  if estimate <= held then return false end
  account[LEASED] = account[LEASED] + estimate - held
  if held == 0 then account[HOLDERS] = account[HOLDERS] + 1 end
  return true
end

local reply = { ADMITTED, reaped, lease, cached }
for i, payer in ipairs(payers) do
  local entity, account, takes, started = payer.entity, payer.account, 0, 0
  if payer.budget then
    takes = TAKES_BUDGET
    if hold(account, own[payer.name] or 0) then entity.changed = true end
    own[payer.name] = nil
  end
  if not standing then
    if payer.parallel then
      takes = takes + TAKES_SLOT
      account[SLOTS] = account[SLOTS] + 1
      entity.changed = true
    end
    if payer.rate then
      if payer.tpm then takes = takes + TAKES_TOKENS end
      started = payer.rate
      payer.requests, payer.tokens = payer.requests + 1, payer.tokens + tokens
      account[RATE], account[REQUESTS], account[TOKENS] = payer.rate, payer.requests, payer.tokens
      entity.changed = true
    end
  end
  local at = recorded[payer.name]
  if not at then
    local n = #record
    record[n + 1], record[n + 2], record[n + 3] = payer.name, takes, started
  elseif takes == TAKES_BUDGET and not has(record[at + 1], TAKES_BUDGET) then
    record[at + 1] = record[at + 1] + TAKES_BUDGET
  end
  if now - account[USED] > TOUCH_EVERY then
    account[USED] = now
    entity.changed = true
    call('ZADD', TOUCHED, num(now), payer.name)
  end
  if now - payer.window[W_USED] > TOUCH_EVERY then
    payer.window[W_USED] = now
    payer.window.changed = true
    dropSuperseded(entity, payer.windowName, now)
  end
  local n = 4 + (i - 1) * 5
  reply[n + 1], reply[n + 2] = payer.requests or -1, payer.tokens or -1
  reply[n + 3] = payer.rate and payer.rate + RATE_WINDOW - now or 0
  reply[n + 4], reply[n + 5] = payer.spend or -1, account[LEASED]
end
-- Payers that the call had before and the dearer one does not name: one record, one amount.
for name, held in pairs(own) do
  local entity = load(name)
  if hold(entity.account, held) then entity.changed = true end
end
store()
call('HSET', CALLS, callId, cmsgpack.pack(record))
call('ZADD', LEASES, num(now + leaseMs), callId)
return reply

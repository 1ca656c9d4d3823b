-- Admits calls of one instance, one after the other. They mostly share payers: each payer is sent, read, written and
-- reported once.
-- ARGV: lease in ms; count of payers, of each: name, budget ('' for none), window, requests/min, tokens/min, parallel
-- ('' for none); count of lists of payers, of each: count, positions (from 1) of its payers; then for each call: id,
-- estimate, tokens, strict (1 or 0), whether it may lower its lease (1 or 0), position of its list.
-- Answers: 0, reaped leases, four numbers for each payer as they are after all calls (requests, tokens, ms left of the
-- minute, spend; -1 where there is none); then for each call its lease, or { code, ... }.
local MISSING, EXCEEDED, HELD, TOO_LARGE, RATE_LIMITED = 1, 2, 3, 4, 5
local BY_REQUESTS, BY_TOKENS, BY_PARALLEL = 1, 2, 3

local gate = call('HMGET', prefix .. 'generation', 'id', 'session:' .. instance, 'waiting', 'opens', 'deadline')
if gate[1] ~= generation or gate[2] ~= session then return { STALE } end
local now = time()
if not ((gate[3] == '0' and now >= tonumber(gate[4])) or now >= tonumber(gate[5])) then return { REBUILDING } end

local reaped = reap(now, 32)
local leaseMs = tonumber(ARGV[FIRST])
local a = FIRST + 1

local payers = {}
for i = 1, tonumber(ARGV[a]) do
  local at = a + i * 6 - 5
  local name, windowName = ARGV[at], ARGV[at + 2]
  local entity, window = load(name, windowName)
  payers[i] = {
    name = name, entity = entity, account = entity.account, window = window, windowName = windowName,
    budget = tonumber(ARGV[at + 1]), rpm = tonumber(ARGV[at + 3]), tpm = tonumber(ARGV[at + 4]),
    parallel = tonumber(ARGV[at + 5]),
  }
  local payer = payers[i]
  payer.rated = payer.rpm or payer.tpm
  if payer.budget and window[GOOD_FOR] == generation then
    payer.spend = window[TOTAL] + window[PENDING]
    payer.sure = payer.spend - window[UNSURE]
  end
end
a = a + 1 + #payers * 6

local lists = {}
for i = 1, tonumber(ARGV[a]) do
  local count, list = tonumber(ARGV[a + 1]), {}
  for at = 1, count do list[at] = payers[tonumber(ARGV[a + 1 + at])] end
  lists[i] = list
  a = a + 1 + count
end
a = a + 1

-- Start of the minute that is running, or of a new one, with what was used in it.
local function minute(account)
  local start = account[RATE]
  if now >= start + RATE_WINDOW or now < start then return now, 0, 0 end
  return start, account[REQUESTS], account[TOKENS]
end

local function hold(account, estimate, held)
  if estimate == held then return false end
  account[LEASED] = math.max(0, account[LEASED] + estimate - held)
  if held == 0 then account[HOLDERS] = account[HOLDERS] + 1 end
  if estimate == 0 then account[HOLDERS] = math.max(0, account[HOLDERS] - 1) end
  return true
end

local function touch(payer)
  local entity, account, window = payer.entity, payer.account, payer.window
  if now - account[USED] > TOUCH_EVERY then
    account[USED] = now
    entity.changed = true
    call('ZADD', TOUCHED, num(now), payer.name)
  end
  if now - window[W_USED] > TOUCH_EVERY then
    window[W_USED] = now
    window.changed = true
    dropSuperseded(entity, payer.windowName, now)
  end
end

local function missing(list)
  local answer
  for i, payer in ipairs(list) do
    if payer.budget and not payer.spend then
      answer = answer or { MISSING }
      answer[#answer + 1] = i - 1
    end
  end
  return answer
end

-- Whole nanos are compared exactly. A tolerance in favour of the call would admit a call on a budget of 0; none is needed,
-- because `sure` never counts spend twice and budgets are rounded up.
local function exceeded(list)
  for i, payer in ipairs(list) do
    if payer.budget and payer.sure >= payer.budget then return { EXCEEDED, i - 1, payer.sure } end
  end
end

local function rateLimited(list)
  for i, payer in ipairs(list) do
    if payer.rated then
      local start, requests, tokens = minute(payer.account)
      local left = start + RATE_WINDOW - now
      if payer.rpm and requests >= payer.rpm then return { RATE_LIMITED, i - 1, BY_REQUESTS, left } end
      if payer.tpm and tokens >= payer.tpm then return { RATE_LIMITED, i - 1, BY_TOKENS, left } end
    end
    if payer.parallel and payer.account[SLOTS] >= payer.parallel then
      return { RATE_LIMITED, i - 1, BY_PARALLEL, 1000 }
    end
  end
end

-- The lease, or nil and the rejection.
local function leaseOf(list, estimate, strict, own)
  local lease = estimate
  if estimate == 0 then return lease end
  if strict then
    for i, payer in ipairs(list) do
      if payer.budget and estimate > payer.budget - payer.sure then
        return nil, { TOO_LARGE, i - 1, payer.budget - payer.sure }
      end
    end
  end
  for i, payer in ipairs(list) do
    if payer.budget then
      local account = payer.account
      local remaining = payer.budget - payer.spend - account[LEASED] + (own[payer.name] or 0)
      if remaining <= 0 or (strict and estimate > remaining) then
        return nil, { HELD, i - 1, account[HOLDERS] }
      end
      lease = math.min(lease, remaining)
    end
  end
  return lease
end

-- A call that is in flight already (`standing`, its record) only changes its lease: its own reservation does not block
-- it. Answers the lease and the call's record, or nil and the rejection.
local function admit(estimate, tokens, strict, mayLower, list, standing)
  local own, recorded = {}, {}
  if standing then
    for i = 3, #standing, 3 do
      recorded[standing[i]] = i
      if has(standing[i + 1], TAKES_BUDGET) then own[standing[i]] = standing[1] end
    end
  end
  local refusal = missing(list) or exceeded(list)
  if not refusal and not standing then refusal = rateLimited(list) end
  if refusal then return nil, refusal end
  local lease, held = leaseOf(list, estimate, strict, own)
  if not lease then return nil, held end

  local record = standing or { estimate, tokens }
  if not mayLower then estimate = math.max(estimate, record[1]) end
  record[1] = estimate
  for _, payer in ipairs(list) do
    local name, entity, account, takes, started = payer.name, payer.entity, payer.account, 0, 0
    if payer.budget then
      takes = TAKES_BUDGET
      if hold(account, estimate, own[name] or 0) then entity.changed, entity.moved = true, true end
      own[name] = nil
    end
    if not standing then
      if payer.parallel then
        takes = takes + TAKES_SLOT
        account[SLOTS] = account[SLOTS] + 1
        entity.changed = true
      end
      if payer.rated then
        if payer.tpm then takes = takes + TAKES_TOKENS end
        local start, requests, used = minute(account)
        started = start
        account[RATE], account[REQUESTS], account[TOKENS] = start, requests + 1, used + tokens
        entity.changed = true
      end
    end
    local at = recorded[name]
    if not at then
      local n = #record
      record[n + 1], record[n + 2], record[n + 3] = name, takes, started
    elseif takes == TAKES_BUDGET and not has(record[at + 1], TAKES_BUDGET) then
      record[at + 1] = record[at + 1] + TAKES_BUDGET
    end
    touch(payer)
  end
  -- Payers of the call that the more expensive one does not name: one record, one amount.
  for name, before in pairs(own) do
    local entity = load(name)
    if hold(entity.account, estimate, before) then entity.changed, entity.moved = true, true end
  end
  return lease, record
end

local ids = {}
for at = a, #ARGV, 6 do ids[#ids + 1] = ARGV[at] end
local standing = call('HMGET', CALLS, unpack(ids))

local answers, records, leases = {}, {}, {}
for i, id in ipairs(ids) do
  local at = a + (i - 1) * 6
  local estimate, tokens = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local lease, record = admit(estimate, tokens, ARGV[at + 3] == '1', ARGV[at + 4] == '1', lists[tonumber(ARGV[at + 5])],
    standing[i] and cmsgpack.unpack(standing[i]))
  if lease then
    local n = #records
    records[n + 1], records[n + 2] = id, cmsgpack.pack(record)
    leases[n + 1], leases[n + 2] = num(now + leaseMs), id
    answers[i] = lease
  else
    answers[i] = record
  end
end
store(now)
if #records > 0 then
  call('HSET', CALLS, unpack(records))
  call('ZADD', LEASES, unpack(leases))
end

local reply = { 0, reaped }
for i, payer in ipairs(payers) do
  local account, n = payer.account, 2 + (i - 1) * 4
  local start, requests, tokens = minute(account)
  reply[n + 1], reply[n + 2] = payer.rated and requests or -1, payer.rated and tokens or -1
  reply[n + 3] = payer.rated and start + RATE_WINDOW - now or 0
  reply[n + 4] = payer.spend or -1
end
for _, answer in ipairs(answers) do reply[#reply + 1] = answer end
return reply

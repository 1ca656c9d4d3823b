-- ARGV, for each counter: entity, window, ledger total, version, pending sum of this instance, and what a total that is not
-- known may do: '1' be set, because this generation asked for it; '0' be set unless the generation is young;
-- '-' never be set (this instance had no connection when it learnt the total).
--
-- An instance's pending sum and the total that it assigns never count the same spend. But a new total may hold what
-- another instance has committed and not yet said: that instance's pending sum becomes unsure until it assigns again.
-- Unsure spend holds calls back; it never refuses them as over budget.
--
-- A total read before a flush may be older than one that the flush took away, so in the first ten seconds of a rebuilt
-- generation a total that nobody asked for only leaves its version behind: an older one is then no answer.
if not current() then return { STALE } end
local now = time()
local started = redis.call('HMGET', key('generation'), 'since', 'fresh')
local settledDown = started[2] == '1' or now >= tonumber(started[1]) + 10000

for a = FIRST, #ARGV, 6 do
  local name, w = ARGV[a], ARGV[a + 1]
  local total, version, pending = ARGV[a + 2], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local entity = key('entity:' .. name)
  local old = redis.call('HMGET', entity, 'v:' .. w, 'g:' .. w, 'b:' .. w)
  local oldVersion, known = tonumber(old[1]) or -1, old[2] == generation
  local list, sum, unsureSum = withPart(old[3], instance, pending, 0)
  local new = {}
  if version >= oldVersion then
    new = { 'v:' .. w, num(version) }
    if known or ARGV[a + 5] == '1' or (settledDown and ARGV[a + 5] == '0') then
      new[3], new[4], new[5], new[6] = 't:' .. w, total, 'g:' .. w, generation
      if not known or version > oldVersion then
        unsureSum = 0
        for i = 1, #list, 3 do
          if list[i] ~= instance then
            list[i + 2] = list[i + 1]
            unsureSum = unsureSum + list[i + 1]
          end
        end
      end
      if not known then redis.call('ZADD', key('touched'), num(now), name) end
    end
  end
  if #list > 0 then
    local n = #new
    new[n + 1], new[n + 2] = 'b:' .. w, cmsgpack.pack(list)
    new[n + 3], new[n + 4], new[n + 5], new[n + 6] = 'p:' .. w, num(sum), 'u:' .. w, num(unsureSum)
  elseif old[3] then
    redis.call('HDEL', entity, 'b:' .. w, 'p:' .. w, 'u:' .. w)
  end
  if #new > 0 then redis.call('HSET', entity, unpack(new)) end
end
return { 0 }

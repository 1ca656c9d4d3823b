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
local started = call('HMGET', prefix .. 'generation', 'since', 'fresh')
local grownUp = started[2] == '1' or now >= tonumber(started[1]) + 10000

for a = FIRST, #ARGV, 6 do
  local total, version, creation = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), ARGV[a + 5]
  local _, window = load(ARGV[a], ARGV[a + 1])
  assignPending(window, instance, tonumber(ARGV[a + 4]), 0)
  if version >= window[VERSION] then
    local known = window[GOOD_FOR] == generation
    if known or creation == '1' or (creation == '0' and grownUp) then
      if not known or version > window[VERSION] then
        window[UNSURE] = 0
        for i = PARTS, #window, 3 do
          window[i + 2] = window[i] == instance and 0 or window[i + 1]
          window[UNSURE] = window[UNSURE] + window[i + 2]
        end
      end
      window[GOOD_FOR], window[TOTAL] = generation, total
      if not known then call('ZADD', TOUCHED, num(now), ARGV[a]) end
    end
    window[VERSION] = version
    window.changed = true
  end
end
store()
return { 0 }

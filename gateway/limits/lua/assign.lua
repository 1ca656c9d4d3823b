-- ARGV, for each counter: entity, window, ledger total, version, pending sum of this instance, and how to treat an unknown
-- total: '1' set it, because this generation requested it; '0' set it unless the generation is young;
-- '-' never set it (this instance had no connection when it read the total);
-- 'k' set it, because the ledger cannot be read and this is the last known total. If a newer total was left behind,
-- that one is set. It may already include pending spend of this instance, which becomes unsure, too.
--
-- An instance's pending sum and the total that it assigns never count the same spend. But a new total may include what
-- another instance has committed and not yet reported: that instance's pending sum becomes unsure until it assigns again.
-- Unsure spend makes calls wait; it never rejects them as over budget.
--
-- A total read before a flush may be older than one lost in the flush, so in the first ten seconds of a rebuilt
-- generation a total that no instance requested is only left behind, with its version: older ones are then rejected.
-- What an earlier generation left behind rejects none: the ledger may have been replaced by its backup since.
if not current() then return { STALE } end
local now = time()
local started = call('HMGET', prefix .. 'generation', 'since', 'fresh')
local grownUp = started[2] == '1' or now >= tonumber(started[1]) + 10000
local LEFT_BEHIND = 'left behind in ' .. generation

for a = FIRST, #ARGV, 6 do
  local total, version, creation = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), ARGV[a + 5]
  local _, window = load(ARGV[a], ARGV[a + 1])
  assignPending(window, instance, tonumber(ARGV[a + 4]), 0)
  local known, newer = window[GOOD_FOR] == generation, version >= window[VERSION]
  local isRead = creation == '1' or (creation == '0' and grownUp)
  if isRead and not known and window[GOOD_FOR] ~= LEFT_BEHIND then newer = true end
  if newer or (creation == 'k' and not known) then
    if known or isRead or creation == 'k' then
      if not known or version > window[VERSION] then
        window[UNSURE] = 0
        for i = PARTS, #window, 3 do
          window[i + 2] = window[i] == instance and creation ~= 'k' and 0 or window[i + 1]
          window[UNSURE] = window[UNSURE] + window[i + 2]
        end
      end
      window[GOOD_FOR] = generation
      if not known then call('ZADD', TOUCHED, num(now), ARGV[a]) end
    else
      window[GOOD_FOR] = LEFT_BEHIND
    end
    if newer then window[TOTAL], window[VERSION] = total, version end
    window.changed = true
  end
end
store(now)
return { 0 }

-- ARGV: keys of entities. Answers: 0, now, the heartbeats (name and moment of each); of each instance with pending spend in
-- these entities: name, how many counters, the largest sum; of each instance with an undrained journal: name, calls.
if not current() then return { STALE } end
local known, pending = {}, {}
for a = FIRST, #ARGV do
  local fields = call('HGETALL', ARGV[a])
  for i = 1, #fields, 2 do
    if fields[i] ~= 'account' then
      local window = cmsgpack.unpack(fields[i + 1])
      for part = PARTS, #window, 3 do
        local at = known[window[part]]
        if not at then
          at = #pending + 1
          known[window[part]] = at
          pending[at], pending[at + 1], pending[at + 2] = window[part], 0, 0
        end
        pending[at + 1] = pending[at + 1] + 1
        pending[at + 2] = math.max(pending[at + 2], window[part + 1])
      end
    end
  end
end
return { 0, time(), call('ZRANGE', BEATS, 0, -1, 'WITHSCORES'), pending, call('HGETALL', UNDRAINED) }

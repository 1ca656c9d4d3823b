-- ARGV: keys of entities. Answers entity and window of each counter in which this instance has pending spend.
if not current() then return { STALE } end
local reply = { 0 }
for a = FIRST, #ARGV do
  local name = string.sub(ARGV[a], #prefix + #'entity:' + 1)
  local fields = call('HGETALL', ARGV[a])
  for i = 1, #fields, 2 do
    if fields[i] ~= 'account' then
      local window = cmsgpack.unpack(fields[i + 1])
      for part = PARTS, #window, 3 do
        if window[part] == instance then
          reply[#reply + 1], reply[#reply + 2] = name, string.sub(fields[i], #'window:' + 1)
        end
      end
    end
  end
end
return reply

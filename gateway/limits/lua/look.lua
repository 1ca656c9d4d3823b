-- ARGV: entities. Reserves nothing. Answers for each: requests, tokens, ms left of the minute, slots in use.
if not current() then return { STALE } end
local now = time()
local reply = { 0 }
for a = FIRST, #ARGV do
  local account = load(ARGV[a]).account
  local left = account[RATE] + RATE_WINDOW - now
  local running = left > 0 and now >= account[RATE]
  reply[#reply + 1] = running and account[REQUESTS] or 0
  reply[#reply + 1] = running and account[TOKENS] or 0
  reply[#reply + 1] = running and left or 0
  reply[#reply + 1] = account[SLOTS]
end
return reply

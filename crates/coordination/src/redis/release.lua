-- Frees claims, each only while it carries its own token: one that has lapsed may be a twin's by now.
-- KEYS are the claims, ARGV their tokens.
for at, claim in ipairs(KEYS) do
  if redis.call('GET', claim) == ARGV[at] then
    redis.call('DEL', claim)
  end
end

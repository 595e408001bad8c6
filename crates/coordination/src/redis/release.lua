-- Releases claims. A claim is released only if it still has the caller's token, because a twin may have claimed it after it expired.
-- KEYS are the claims, ARGV are their tokens.
for at, claim in ipairs(KEYS) do
  if redis.call('GET', claim) == ARGV[at] then
    redis.call('DEL', claim)
  end
end

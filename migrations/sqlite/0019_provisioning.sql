-- Pools that deliver to native addresses, keys with a label, an expiry and a last use, and deposits that belong to one partner.

ALTER TABLE pools ADD COLUMN native_addresses INTEGER NOT NULL DEFAULT 0
    CONSTRAINT pools_native_addresses CHECK (native_addresses IN (0, 1));

ALTER TABLE api_keys ADD COLUMN label TEXT;
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER;

-- A table of its own, because services write it and may not write `api_keys`. An instant is at most some minutes old.
CREATE TABLE key_uses (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    last_used_at INTEGER NOT NULL,
    CONSTRAINT key_uses_key PRIMARY KEY (mode, partner_id, key_id),
    CONSTRAINT key_uses_api_key FOREIGN KEY (mode, partner_id, key_id) REFERENCES api_keys (mode, partner_id, id)
) STRICT;

-- The owner of each deposit address and funding reference, as profiles write them: EVM addresses in lower case, references
-- in upper case. What two partners share already goes to the first partner by id; `verify` names every such pair, and
-- `apply` refuses to write the other partner's profile until the file ends the conflict.
CREATE TABLE deposit_claims (
    mode TEXT NOT NULL,
    kind TEXT NOT NULL,
    claim TEXT NOT NULL,
    owner TEXT NOT NULL,
    CONSTRAINT deposit_claims_key PRIMARY KEY (mode, kind, claim),
    CONSTRAINT deposit_claims_mode CHECK (mode IN ('test', 'live')),
    CONSTRAINT deposit_claims_kind CHECK (kind IN ('address', 'reference'))
) STRICT;

CREATE INDEX deposit_claims_owner ON deposit_claims (mode, owner);

INSERT INTO deposit_claims (mode, kind, claim, owner)
SELECT mode, kind, claim, min(partner_id)
FROM (
    SELECT mode, 'reference' AS kind, upper(funding_reference) AS claim, partner_id FROM pools_profiles
    UNION ALL
    SELECT mode, 'address', CASE WHEN address LIKE '0x%' THEN lower(address) ELSE address END, partner_id
    FROM (
        SELECT p.mode, p.partner_id, json_extract(t.value, '$.crypto_deposit_address') AS address
        FROM pools_profiles AS p, json_each(p.terms) AS t
    ) AS terms
    WHERE address IS NOT NULL
) AS claims
GROUP BY mode, kind, claim;

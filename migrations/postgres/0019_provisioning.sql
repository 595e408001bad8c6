-- Pools that deliver to native addresses, keys with a label, an expiry and a last use, and deposits that belong to one partner.

ALTER TABLE pools ADD COLUMN native_addresses boolean NOT NULL DEFAULT false;

ALTER TABLE api_keys ADD COLUMN label text, ADD COLUMN expires_at bigint;

-- A table of its own, because services write it and may not write `api_keys`. An instant is at most some minutes old.
CREATE TABLE key_uses (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    key_id uuid NOT NULL,
    last_used_at bigint NOT NULL,
    CONSTRAINT key_uses_key PRIMARY KEY (mode, partner_id, key_id),
    CONSTRAINT key_uses_api_key FOREIGN KEY (mode, partner_id, key_id) REFERENCES api_keys (mode, partner_id, id)
);

-- The owner of each deposit address and funding reference, as profiles write them: EVM addresses in lower case, references
-- in upper case. What two partners share already goes to the first partner by id; `verify` names every such pair, and
-- `apply` refuses to write the other partner's profile until the file ends the conflict.
CREATE TABLE deposit_claims (
    mode text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    claim text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    CONSTRAINT deposit_claims_key PRIMARY KEY (mode, kind, claim),
    CONSTRAINT deposit_claims_mode CHECK (mode IN ('test', 'live')),
    CONSTRAINT deposit_claims_kind CHECK (kind IN ('address', 'reference'))
);

CREATE INDEX deposit_claims_owner ON deposit_claims (mode, owner);

INSERT INTO deposit_claims (mode, kind, claim, owner)
SELECT mode, kind, claim, min(partner_id)
FROM (
    SELECT mode, 'reference' AS kind, upper(funding_reference COLLATE "C") AS claim, partner_id FROM pools_profiles
    UNION ALL
    SELECT mode, 'address', CASE WHEN address LIKE '0x%' THEN lower(address COLLATE "C") ELSE address END, partner_id
    FROM (
        SELECT p.mode, p.partner_id, t.value ->> 'crypto_deposit_address' AS address
        FROM pools_profiles AS p, jsonb_each(p.terms::jsonb) AS t
    ) AS terms
    WHERE address IS NOT NULL
) AS claims
GROUP BY mode, kind, claim;

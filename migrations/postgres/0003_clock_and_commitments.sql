-- What an account holds with all that trades may still credit to it, or more: credits and sales add to it, a count
-- lowers it. A sale looks here whether the fiat of its return would fit. (The clock stands in `books`.)
CREATE TABLE commitments (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    asset text COLLATE "C" NOT NULL,
    total bigint NOT NULL,
    CONSTRAINT commitments_key PRIMARY KEY (mode, partner_id, asset),
    CONSTRAINT commitments_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT commitments_total CHECK (total >= 0)
) WITH (fillfactor = 50);

-- Those that are to be counted anew.
CREATE INDEX commitments_high ON commitments (mode, total);

-- What settled lately, for the count.
CREATE INDEX trades_settled ON trades (mode, partner_id, settled_at) WHERE status = 'settled';

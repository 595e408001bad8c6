-- How far a recount of contingent credits (table `commitments`) has come. It reads settled trades first, then reserved ones, in
-- slices: those settled at `settled` or earlier have been read, and those made at `reserved` or earlier that were reserved. `total`
-- is what the trades read may still credit.
CREATE TABLE recounts (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    asset TEXT NOT NULL,
    begun_at INTEGER NOT NULL,
    ended_at INTEGER,
    settled INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    total INTEGER NOT NULL,
    CONSTRAINT recounts_key PRIMARY KEY (mode, partner_id, asset),
    CONSTRAINT recounts_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT recounts_ended CHECK (ended_at >= begun_at),
    CONSTRAINT recounts_total CHECK (total >= 0)
) STRICT;

-- How far the sweep of quotes has come: a partner's quotes up to this id were consumed, or are deleted.
CREATE TABLE quote_sweeps (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    quote_id TEXT NOT NULL,
    CONSTRAINT quote_sweeps_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT quote_sweeps_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id)
) STRICT;

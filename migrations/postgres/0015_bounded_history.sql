-- How far a recount of contingent credits (table `commitments`) has come. It reads settled trades first, then reserved ones, in
-- slices: those settled at `settled` or earlier have been read, and those made at `reserved` or earlier that were reserved. `total`
-- is what the trades read may still credit.
CREATE TABLE recounts (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    asset text COLLATE "C" NOT NULL,
    begun_at bigint NOT NULL,
    ended_at bigint,
    settled bigint NOT NULL,
    reserved bigint NOT NULL,
    total bigint NOT NULL,
    CONSTRAINT recounts_key PRIMARY KEY (mode, partner_id, asset),
    CONSTRAINT recounts_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT recounts_ended CHECK (ended_at >= begun_at),
    CONSTRAINT recounts_total CHECK (total >= 0)
) WITH (fillfactor = 50);

-- How far the sweep of quotes has come: a partner's quotes up to this id were consumed, or are deleted.
CREATE TABLE quote_sweeps (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    quote_id uuid NOT NULL,
    CONSTRAINT quote_sweeps_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT quote_sweeps_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id)
) WITH (fillfactor = 50);

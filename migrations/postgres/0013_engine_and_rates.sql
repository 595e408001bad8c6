-- A quote keeps the mid rate that it was priced with, in units of the pool's crypto per unit of its fiat.
ALTER TABLE quotes ADD COLUMN mid text;
-- A trade names the engine that holds it, and repeats its quote's mid rate. A settled one keeps the engine's fill rate, if the
-- engine has reported one. Older rows have none of these.
ALTER TABLE trades
    ADD COLUMN engine text COLLATE "C",
    ADD COLUMN mid text,
    ADD COLUMN fill_rate text,
    ADD CONSTRAINT trades_fill_rate CHECK (fill_rate IS NULL OR fill IS NOT NULL) NOT VALID;

-- Swaps: quotes of one asset for another, and the payments that redeem them.

-- What the user sends in a swap, which belongs to a session and has no method. Every other quote has a method and no source. SQLite
-- changes a constraint only in its text; no row changes.
ALTER TABLE signed_quotes ADD COLUMN source_asset TEXT;
ALTER TABLE signed_quotes ADD COLUMN source_scale INTEGER
    CONSTRAINT signed_quotes_source_scale CHECK (source_scale BETWEEN 0 AND 8);
ALTER TABLE signed_quotes ADD COLUMN source_network TEXT;
ALTER TABLE signed_quotes ADD COLUMN source_amount INTEGER
    CONSTRAINT signed_quotes_source CHECK (
        side = 'swap' AND session_id IS NOT NULL AND payment_method IS NULL AND source_asset IS NOT NULL
            AND source_asset <> asset AND source_scale IS NOT NULL AND source_network IS NOT NULL
            AND source_amount IS NOT NULL AND source_amount > 0
        OR side <> 'swap' AND payment_method IS NOT NULL AND source_asset IS NULL AND source_scale IS NULL
            AND source_network IS NULL AND source_amount IS NULL
    );
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(sql,
    'CONSTRAINT signed_quotes_side CHECK (side IN (''on_ramp'', ''off_ramp''))',
    'CONSTRAINT signed_quotes_side CHECK (side IN (''on_ramp'', ''off_ramp'', ''swap''))'),
    'payment_method TEXT NOT NULL', 'payment_method TEXT')
WHERE type = 'table' AND name = 'signed_quotes';
-- Only the widget makes swaps.
UPDATE sqlite_schema SET sql = replace(sql,
    'CONSTRAINT rail_records_kind CHECK (kind IN (''pay_in'', ''pay_out''))',
    'CONSTRAINT rail_records_kind CHECK (kind IN (''pay_in'', ''pay_out'') OR kind = ''swap'' AND hosted = 1)')
WHERE type = 'table' AND name = 'rail_records';
PRAGMA writable_schema = RESET;

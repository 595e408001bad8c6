-- A database of many trades, created in portions. Foreign keys are not checked here: every row refers to rows that the
-- same portion has written.
SET session_replication_role = replica;
SET synchronous_commit = off;

-- Ids start with the instant, as in the service.
CREATE FUNCTION history_id(moment bigint, place bigint, kind text) RETURNS uuid LANGUAGE sql AS $$
    SELECT (lpad(to_hex(moment), 12, '0') || lpad(to_hex(place), 18, '0') || kind)::uuid
$$;

-- Trades of a hundred days up to two days ago, round robin over the partners.
CREATE FUNCTION history(first bigint, many bigint, whole bigint, partners bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    newest constant bigint := (extract(epoch FROM now())::bigint - 2 * 86400) * 1000;
    span constant bigint := 100::bigint * 86400 * 1000;
BEGIN
    CREATE TEMPORARY TABLE portion ON COMMIT DROP AS
    SELECT 'partner-' || place % partners AS whose, place / partners AS earlier, moment, history_id(moment, place, '01') AS quote,
        history_id(moment, place, '02') AS trade, history_id(moment, place, '03') AS entry
    FROM (SELECT place, newest - span + place * span / whole AS moment
          FROM generate_series(first, first + many - 1) AS place) AS placed;

    INSERT INTO quotes (mode, partner_id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
        dest_address, dest_network, created_at, expires_at, consumed_at)
    SELECT 'test', whose, quote, 'EUR-USDT', 'on_ramp', 'tron', 10000000000, 10790325000, '1.0790325', 25, 30, 10850000000,
        '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'tron', moment, moment + 30000, moment + 1
    FROM portion;

    INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps,
        notional, dest_address, dest_network, reserved, status, created_at, settled_at, fill)
    SELECT 'test', whose, trade, quote, 'EUR-USDT', 'on_ramp', 'tron', 10000000000, 10790325000, '1.0790325', 25, 30,
        10850000000, '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'tron', 10000000000, 'settled', moment + 1, moment + 1000,
        'history'
    FROM portion;

    INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
        balance_after, reference, trade_id, part, created_at)
    SELECT 'test', whose, entry, 'EUR', 'partner', 'reserved', 10000000000, 'buy_debit', a.sequence + earlier + 1,
        a.available - (earlier + 1) * 10000000000, quote::text, trade, 'reserve', moment + 1
    FROM portion JOIN accounts AS a ON a.mode = 'test' AND a.partner_id = whose AND a.asset = 'EUR';
END
$$;

-- Balances, sequences and counts after these trades.
CREATE FUNCTION history_end() RETURNS void LANGUAGE sql AS $$
    UPDATE accounts AS a SET available = a.available - counted.trades * 10000000000, sequence = a.sequence + counted.trades
    FROM (SELECT partner_id, count(*) AS trades FROM trades GROUP BY partner_id) AS counted
    WHERE a.mode = 'test' AND a.partner_id = counted.partner_id AND a.asset = 'EUR';
    UPDATE books AS b SET settled = counted.trades
    FROM (SELECT partner_id, count(*) AS trades FROM trades GROUP BY partner_id) AS counted
    WHERE b.mode = 'test' AND b.partner_id = counted.partner_id;
$$;

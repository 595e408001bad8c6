-- A firm quote: one row and its commit.
\set place :first + :done * :connections + :client_id
\set done :done + 1
\set partner :place % :partners
INSERT INTO quotes (mode, partner_id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
    dest_address, dest_network, created_at, expires_at)
VALUES ('test', 'partner-' || :partner, reference_id(:place, '01'), 'EUR-USDT', 'on_ramp', 'tron', 10000000000,
    10790325000, '1.0790325', 25, 30, 10850000000, '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'tron', 0, 9000000000000);

//! Invariants of the database, written independently of the store's own audit.

/// A name, and a query that counts breaches.
pub(crate) const INVARIANTS: [(&str, &str); 20] = [
    (
        "contingent credit is the balance plus the possible credits of open trades",
        "SELECT count(*) FROM accounts a WHERE a.available
            + (SELECT coalesce(sum(CASE WHEN t.side = 'on_ramp' THEN coalesce(t.reserved, 0) ELSE t.fiat END), 0)
               FROM trades t WHERE t.mode = a.mode AND t.partner_id = a.partner_id AND t.status = 'reserved'
                 AND substr(t.pool, 1, 3) = a.asset)
            > coalesce((SELECT c.total FROM commitments c
               WHERE c.mode = a.mode AND c.partner_id = a.partner_id AND c.asset = a.asset), 0)",
    ),
    (
        "a balance is the sum of its entries",
        "SELECT count(*) FROM accounts a WHERE a.available <> (
            SELECT coalesce(sum(CASE WHEN e.credit = 'partner' THEN e.amount ELSE -e.amount END), 0)
            FROM ledger_entries e WHERE e.mode = a.mode AND e.partner_id = a.partner_id AND e.asset = a.asset
              AND (e.credit = 'partner' OR e.debit = 'partner'))",
    ),
    (
        "sequence numbers start at one and have no gap",
        "SELECT count(*) FROM accounts a WHERE (a.sequence, a.sequence) <> (
            SELECT count(e.account_sequence), coalesce(max(e.account_sequence), 0) FROM ledger_entries e
            WHERE e.mode = a.mode AND e.partner_id = a.partner_id AND e.asset = a.asset)",
    ),
    (
        "balances chain, are never negative, and instants never decrease along them",
        "SELECT count(*) FROM (
            SELECT balance_after, created_at, CASE WHEN credit = 'partner' THEN amount ELSE -amount END AS delta,
                   coalesce(lag(balance_after) OVER account, 0) AS before,
                   coalesce(lag(created_at) OVER account, 0) AS earlier
            FROM ledger_entries WHERE account_sequence IS NOT NULL
            WINDOW account AS (PARTITION BY mode, partner_id, asset ORDER BY account_sequence)) AS chained
         WHERE before + delta <> balance_after OR balance_after < 0 OR created_at < earlier",
    ),
    (
        "a consumed quote has exactly one trade, created at that instant and before the expiry",
        "SELECT count(*) FROM quotes q WHERE (q.consumed_at IS NOT NULL) <> (
            (SELECT count(*) FROM trades t WHERE t.mode = q.mode AND t.partner_id = q.partner_id
             AND t.quote_id = q.id AND t.created_at = q.consumed_at AND t.created_at < q.expires_at) = 1)",
    ),
    (
        "a trade's quote belongs to the same partner",
        "SELECT count(*) FROM trades t WHERE NOT EXISTS (SELECT 1 FROM quotes q
            WHERE q.mode = t.mode AND q.partner_id = t.partner_id AND q.id = t.quote_id)",
    ),
    (
        "a trade's terms are those of its quote",
        "SELECT count(*) FROM trades t JOIN quotes q
            ON q.mode = t.mode AND q.partner_id = t.partner_id AND q.id = t.quote_id
         WHERE (t.pool, t.side, t.network, t.fiat, t.crypto, t.rate, t.spread_bps, t.fee_bps, t.notional)
            <> (q.pool, q.side, q.network, q.fiat, q.crypto, q.rate, q.spread_bps, q.fee_bps, q.notional)
            OR t.dest_address IS DISTINCT FROM q.dest_address OR t.dest_network IS DISTINCT FROM q.dest_network",
    ),
    (
        "a reservation was debited once, for the trade's amount",
        "SELECT count(*) FROM trades t WHERE coalesce(t.reserved, 0) <> (
            SELECT coalesce(sum(e.amount), 0) FROM ledger_entries e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'reserve'
              AND e.reason = CASE t.side WHEN 'on_ramp' THEN 'buy_debit' ELSE 'sell_debit' END)",
    ),
    (
        "a reserve is open, settled or returned once, in agreement with the trade's status",
        "SELECT count(*) FROM trades t WHERE CASE WHEN t.status = 'reserved' THEN 0 ELSE coalesce(t.reserved, 0) END <> (
            SELECT coalesce(sum(e.amount), 0) FROM ledger_entries e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'close'
              AND e.credit = CASE WHEN t.status IN ('settled', 'returned') THEN 'operator' ELSE 'partner' END)",
    ),
    (
        "a reserve is closed at most once",
        "SELECT count(*) FROM ledger_entries e JOIN trades t
            ON t.mode = e.mode AND t.partner_id = e.partner_id AND t.id = e.trade_id
         WHERE e.part = 'close' AND (t.status = 'reserved'
            OR e.credit <> CASE WHEN t.status IN ('settled', 'returned') THEN 'operator' ELSE 'partner' END)",
    ),
    (
        "exactly the returned trades have a refund",
        "SELECT count(*) FROM trades t WHERE (
            SELECT coalesce(sum(e.amount), 0) FROM ledger_entries e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.trade_id = t.id AND e.part = 'return'
              AND e.reason = 'buy_refund' AND e.asset = substr(t.pool, 1, 3)
         ) <> CASE WHEN t.status <> 'returned' THEN 0 WHEN t.side = 'off_ramp' THEN t.fiat ELSE coalesce(t.reserved, 0) END",
    ),
    (
        "a trade that ended has one event of the matching type",
        "WITH t AS MATERIALIZED (SELECT mode, partner_id, status, 'txn_' || mode || '_' || ulid(id) AS object FROM trades)
         SELECT count(*) FROM t WHERE (
            SELECT string_agg(e.type, ',') FROM events e
            WHERE e.mode = t.mode AND e.partner_id = t.partner_id AND e.object_id = t.object
         ) IS DISTINCT FROM CASE t.status WHEN 'reserved' THEN NULL WHEN 'returned' THEN 'pool.transaction.settled'
            ELSE 'pool.transaction.' || t.status END",
    ),
    (
        "every event of pools is about a trade",
        "WITH t AS MATERIALIZED (SELECT mode, partner_id, status, 'txn_' || mode || '_' || ulid(id) AS object FROM trades)
         SELECT count(*) FROM events e WHERE e.service = 'pools' AND NOT EXISTS (SELECT 1 FROM t
            WHERE t.mode = e.mode AND t.partner_id = e.partner_id AND t.object = e.object_id)",
    ),
    (
        "a session has one event each for its creation, its package and its end",
        "WITH s AS MATERIALIZED (SELECT mode, partner_id, status, kyc_pre_verified AS kyc, 'gs_' || mode || '_' || ulid(id) AS object
             FROM sessions)
         SELECT count(*) FROM s WHERE (
            SELECT string_agg(replace(type, 'gate_session.', ''), ' ') FROM (SELECT e.type FROM events e
            WHERE e.mode = s.mode AND e.partner_id = s.partner_id AND e.object_id = s.object
              AND e.type NOT IN ('gate_session.processing', 'gate_session.failed', 'kyc.required') ORDER BY e.type) AS o
         ) IS DISTINCT FROM trim(
            CASE s.status WHEN 'completed' THEN 'completed ' WHEN 'cancelled' THEN 'cancelled ' ELSE '' END || 'created '
            || CASE s.status WHEN 'expired' THEN 'expired ' ELSE '' END
            || CASE WHEN s.kyc THEN 'kyc_package_accepted' ELSE '' END)",
    ),
    (
        "a customer has one event each time it is written",
        "WITH c AS MATERIALIZED (SELECT mode, partner_id, revision, 'cus_' || mode || '_' || ulid(id) AS object FROM customers)
         SELECT count(*) FROM c WHERE c.revision <> (SELECT count(*) FROM events e
            WHERE e.mode = c.mode AND e.partner_id = c.partner_id AND e.object_id = c.object)",
    ),
    (
        "every session event names an existing session",
        "WITH s AS MATERIALIZED (SELECT mode, partner_id, 'gs_' || mode || '_' || ulid(id) AS object FROM sessions)
         SELECT count(*) FROM events e WHERE e.type LIKE 'gate_session.%' AND NOT EXISTS (SELECT 1 FROM s
            WHERE s.mode = e.mode AND s.partner_id = e.partner_id AND s.object = e.object_id)",
    ),
    (
        "a completed session names its one completed transaction; all other completed ones come from a rail",
        "SELECT count(*) FROM sessions s WHERE (
            SELECT count(*) FROM transactions t WHERE t.mode = s.mode AND t.partner_id = s.partner_id
              AND t.session_id = s.id AND t.status = 'completed' AND t.id = s.transaction_id)
            <> CASE s.status WHEN 'completed' THEN 1 ELSE 0 END
          OR (SELECT count(*) FROM transactions t WHERE t.mode = s.mode AND t.partner_id = s.partner_id
              AND t.session_id = s.id AND t.status = 'completed' AND t.local_rail_transaction_id IS NULL) >
              CASE s.status WHEN 'completed' THEN 1 ELSE 0 END",
    ),
    (
        "a signed quote is consumed when its one record is created, with one event if the partner has rails",
        "WITH q AS MATERIALIZED (SELECT mode, partner_id, id, consumed_at, 'qt_' || mode || '_' || ulid(id) AS object
             FROM signed_quotes)
         SELECT count(*) FROM q WHERE q.consumed_at IS DISTINCT FROM (
            SELECT max(r.created_at) FROM rail_records r
            WHERE r.mode = q.mode AND r.partner_id = q.partner_id AND r.quote_id = q.id)
          OR (SELECT count(*) FROM events e WHERE e.mode = q.mode AND e.partner_id = q.partner_id
              AND e.object_id = q.object) <> coalesce((
            SELECT max(CAST(r.rail_events AS integer)) FROM rail_records r
            WHERE r.mode = q.mode AND r.partner_id = q.partner_id AND r.quote_id = q.id), 0)",
    ),
    (
        "a rail record has one event for its creation and one for its end if the partner has rails, and a swap none",
        "WITH r AS MATERIALIZED (SELECT mode, partner_id, status,
             CASE kind WHEN 'swap' THEN 0 ELSE CAST(rail_events AS integer) END AS rail_events,
             CASE kind WHEN 'pay_in' THEN 'pi_' WHEN 'pay_out' THEN 'po_' ELSE 'sw_' END || mode || '_' || ulid(id) AS object FROM rail_records)
         SELECT count(*) FROM r WHERE (SELECT count(*) FROM events e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id AND e.object_id = r.object)
            <> CASE r.status WHEN 'processing' THEN 1 ELSE 2 END * r.rail_events",
    ),
    (
        "the steps of a trade lead to its status",
        "SELECT count(*) FROM trades t WHERE (
            SELECT string_agg(s.from_status || '>' || s.to_status, ' ') FROM (
                SELECT * FROM trade_transitions s
                WHERE s.mode = t.mode AND s.partner_id = t.partner_id AND s.trade_id = t.id ORDER BY s.from_status) s
         ) IS DISTINCT FROM CASE t.status WHEN 'reserved' THEN NULL
            WHEN 'returned' THEN 'reserved>settled settled>returned' ELSE 'reserved>' || t.status END",
    ),
];

//! The statements that the audit reads row by row: whole tables, with modes and partners.

use crate::trades::open;
use crate::{
    Sql, Statement, customers, rail_columns, sessions, transactions, verification_columns,
};

/// Every statement of this file.
pub(super) static ALL: [&Statement; 22] = [
    &CHAINS,
    &ACCOUNTS,
    &ENTRIES,
    &RESERVES,
    &COUNTED,
    &TOTALS,
    &CAPPED,
    &QUOTES,
    &TRADES,
    &DEPOSITS,
    &SESSIONS,
    &TRANSACTIONS,
    &CUSTOMERS,
    &PREVIEWS,
    &USED_PREVIEWS,
    &SIGNED_QUOTES,
    &RAIL_RECORDS,
    &OPEN_ITEMS,
    &VERIFICATIONS,
    &TALLIES,
    &POOLS_PROFILES,
    &GATE_PROFILES,
];

/// Entries of the partners' accounts, ordered by account and sequence number.
pub(super) static CHAINS: Statement = Statement::new(
    "ledger_entries",
    "SELECT mode, partner_id, asset, account_sequence, balance_after, amount, credit, created_at, id
     FROM ledger_entries WHERE account_sequence IS NOT NULL
     ORDER BY mode, partner_id, asset, account_sequence",
);

pub(super) static ACCOUNTS: Statement = Statement::new(
    "accounts",
    "SELECT mode, partner_id, asset, available, sequence FROM accounts",
);

pub(super) static ENTRIES: Statement = Statement::new(
    "ledger_entries",
    "SELECT mode, partner_id, asset, debit, credit, amount FROM ledger_entries",
);

/// The reserves of open trades.
pub(super) static RESERVES: Statement = Statement::new(
    "trades",
    concat!(
        "SELECT mode, partner_id, side, pool, reserved
     FROM trades WHERE ",
        open!("trades"),
        " AND reserved IS NOT NULL"
    ),
);

/// The trades that the running totals count.
pub(super) static COUNTED: Statement = Statement::new(
    "trades",
    "SELECT t.mode, t.partner_id, t.notional
     FROM trades AS t
     LEFT JOIN velocity AS v ON v.mode = t.mode AND v.partner_id = t.partner_id
     WHERE t.status NOT IN ('released', 'failed') AND (v.floor IS NULL OR t.created_at > v.floor)",
);

pub(super) static TOTALS: Statement = Statement::new(
    "velocity",
    "SELECT mode, partner_id, total, floor FROM velocity",
);

/// Trades that a cap applies to, ordered by partner and instant. SQLite reads the list's index backwards.
pub(super) static CAPPED: Statement = Statement::per_engine(
    "trades",
    Sql {
        sqlite:
            "SELECT t.mode, t.partner_id, t.id, t.created_at, t.notional, p.velocity_cap, w.millis,
            max(p.velocity_cap_since, w.since) AS since
     FROM trades AS t INDEXED BY trades_list
     CROSS JOIN velocity_window AS w ON w.id = 1
     CROSS JOIN pools_profiles AS p ON p.mode = t.mode AND p.partner_id = t.partner_id
     WHERE t.status NOT IN ('released', 'failed') AND p.velocity_cap IS NOT NULL
     ORDER BY t.mode DESC, t.partner_id DESC, t.created_at, t.id",
        postgres:
            "SELECT t.mode, t.partner_id, t.id, t.created_at, t.notional, p.velocity_cap, w.millis,
            greatest(p.velocity_cap_since, w.since) AS since
     FROM trades AS t
     JOIN velocity_window AS w ON w.id = 1
     JOIN pools_profiles AS p ON p.mode = t.mode AND p.partner_id = t.partner_id
     WHERE t.status NOT IN ('released', 'failed') AND p.velocity_cap IS NOT NULL
     ORDER BY t.mode, t.partner_id, t.created_at, t.id",
    },
);

pub(super) static QUOTES: Statement = Statement::new(
    "quotes",
    concat!("SELECT mode, ", crate::quote_columns!(""), " FROM quotes"),
);

pub(super) static TRADES: Statement = Statement::new(
    "trades",
    concat!("SELECT mode, ", crate::trade_columns!(""), " FROM trades"),
);

pub(super) static DEPOSITS: Statement = Statement::new(
    "deposits",
    "SELECT mode, partner_id, reference AS id, asset, network, compared FROM deposits",
);

pub(super) static SESSIONS: Statement = Statement::new(
    "sessions",
    concat!(
        "SELECT mode, ",
        sessions::stored!(),
        ", false AS payment_in_progress FROM sessions"
    ),
);

pub(super) static TRANSACTIONS: Statement = Statement::new(
    "transactions",
    concat!(
        "SELECT mode, ",
        transactions::columns!(),
        " FROM transactions"
    ),
);

pub(super) static CUSTOMERS: Statement = Statement::new(
    "customers",
    concat!("SELECT mode, ", customers::columns!(), " FROM customers"),
);

pub(super) static PREVIEWS: Statement = Statement::new(
    "quote_previews",
    "SELECT mode, partner_id, id, side, currency, asset, amount, created_at, expires_at, session_id, used_at
     FROM quote_previews",
);

/// Used previews with the terms of their sessions.
pub(super) static USED_PREVIEWS: Statement = Statement::new(
    "quote_previews",
    "SELECT q.mode, q.partner_id, q.id, q.side, q.currency, q.asset, q.amount, q.created_at, q.expires_at, q.session_id,
            q.used_at, s.flow AS s_flow, s.currency AS s_currency, s.target_token AS s_token, s.amount AS s_amount
     FROM quote_previews AS q
     JOIN sessions AS s ON s.mode = q.mode AND s.partner_id = q.partner_id AND s.id = q.session_id",
);

pub(super) static SIGNED_QUOTES: Statement = Statement::new(
    "signed_quotes",
    "SELECT mode, partner_id, id, side, currency, asset, asset_scale, network, payment_method, fiat, crypto, rate,
            service_fee, network_fee, signature, created_at, expires_at, consumed_at, session_id, superseded_at,
            source_asset, source_scale, source_network, source_amount,
            (SELECT identity FROM installation_identity) AS installation
     FROM signed_quotes",
);

/// Records with their quote's terms and their transaction's columns.
pub(super) static RAIL_RECORDS: Statement = Statement::new(
    "rail_records",
    concat!(
        "SELECT r.mode, ",
        rail_columns!(),
        ",
            t.action AS t_action, t.status AS t_status, t.token AS t_token, t.network AS t_network,
            t.currency AS t_currency, t.payment_method AS t_method, t.fiat_amount AS t_fiat, t.token_amount AS t_crypto,
            t.exchange_rate AS t_rate, t.total_fees AS t_fees, t.local_rail_transaction_id AS t_record,
            t.session_id IS NOT DISTINCT FROM r.session_id AND t.created_at IS NOT DISTINCT FROM r.created_at
                AND t.completed_at IS NOT DISTINCT FROM CASE r.status WHEN 'settled' THEN r.ended_at END AS t_fits
     FROM rail_records AS r
     JOIN signed_quotes AS q ON q.mode = r.mode AND q.partner_id = r.partner_id AND q.id = r.quote_id
     LEFT JOIN transactions AS t ON t.mode = r.mode AND t.partner_id = r.partner_id AND t.id = r.transaction_id"
    ),
);

/// Records that an operator must look at, with their quote's terms.
pub(super) static OPEN_ITEMS: Statement = Statement::new(
    "rail_records",
    concat!(
        "SELECT r.mode, ",
        rail_columns!(),
        "
     FROM rail_records AS r
     JOIN signed_quotes AS q ON q.mode = r.mode AND q.partner_id = r.partner_id AND q.id = r.quote_id
     WHERE r.open_item IS NOT NULL
     ORDER BY r.mode, r.partner_id, r.id"
    ),
);

pub(super) static VERIFICATIONS: Statement = Statement::new(
    "verifications",
    concat!(
        "SELECT mode, ",
        verification_columns!(),
        " FROM verifications"
    ),
);

pub(super) static TALLIES: Statement = Statement::new(
    "session_tallies",
    "SELECT mode, partner_id, month AS id, month, created FROM session_tallies",
);

pub(super) static POOLS_PROFILES: Statement = Statement::new(
    "pools_profiles",
    "SELECT mode, partner_id, '' AS id, enabled, access, kyc, tier, allowed, balance_gate, velocity_cap, iban,
            funding_reference, terms
     FROM pools_profiles",
);

pub(super) static GATE_PROFILES: Statement = Statement::new(
    "gate_profiles",
    "SELECT mode, partner_id, '' AS id, enabled AS gate_enabled, allowed_domains, flow_sessions, kyc_trusted, rails,
            preview_locks, live_session_quota, create_session_limit, legal_name, support_url, terms_url, privacy_url
     FROM gate_profiles",
);

//! Rows that an older schema permits and a newer one forbids, which a migration must handle.

/// Sessions from before the rule of one payment per session, for a schema older than version 18. Foreign keys are off during the
/// write.
///
/// Session 1 is open with two payments in progress, session 2 was paid twice, session 3 was cancelled with a payment in progress,
/// session 4 is open with one payment in progress and a failed one, session 5 was paid once.
#[must_use]
pub fn sessions_paid_more_than_once() -> String {
    let sessions = [
        (1, "'open', NULL, NULL, NULL"),
        (2, "'completed', 5, NULL, '01KSFVT4Z2V6B9C1D3F5G7H8T3'"),
        (3, "'cancelled', NULL, 5, NULL"),
        (4, "'open', NULL, NULL, NULL"),
        (5, "'completed', 5, NULL, '01KSFVT4Z2V6B9C1D3F5G7H8T8'"),
    ];
    let sessions = sessions.map(|(number, state)| {
        format!(
            "INSERT INTO sessions (mode, partner_id, id, amount, currency, return_url, metadata, secret_hash,
                                   kyc_pre_verified, created_at, expires_at, status, completed_at, cancelled_at,
                                   transaction_id)
             VALUES ('test', 'acme', '{}', '1', 'EUR', 'https://a.example/', '{{}}', zeroblob(32), (1 = 0), 1, 10,
                     {state});",
            session(number)
        )
    });
    let records = [
        (1, 1, "'processing', NULL, NULL"),
        (2, 1, "'processing', NULL, NULL"),
        (3, 2, "'settled', NULL, 5"),
        (4, 2, "'settled', NULL, 6"),
        (5, 3, "'processing', NULL, NULL"),
        (6, 4, "'processing', NULL, NULL"),
        (7, 4, "'failed', 'provider_declined', 5"),
        (8, 5, "'settled', NULL, 5"),
    ];
    let records = records.map(|(number, session, state)| record(number, session, state));
    [sessions.concat(), records.concat()].concat()
}

/// Counts the records of [`sessions_paid_more_than_once`] with a wrong `predates_rule`. The records of sessions 4 and 5 obey the
/// rule; all others predate it.
#[must_use]
pub fn wrong_predates_rule() -> String {
    let (four, five) = (session(4), session(5));
    format!(
        "SELECT count(*) FROM rail_records WHERE predates_rule = (session_id IN ('{four}', '{five}'))"
    )
}

/// A second payment of session 4, which the newer schema refuses.
#[must_use]
pub fn further_payment() -> String {
    record(9, 4, "'processing', NULL, NULL")
}

/// Settles the payment of session 4 after the session's `expires_at`.
#[must_use]
pub fn late_settlement() -> String {
    format!(
        "UPDATE sessions SET status = 'completed', completed_at = 11, transaction_id = '01KSFVT4Z2V6B9C1D3F5G7H8T6'
         WHERE id = '{}'",
        session(4)
    )
}

fn session(number: u8) -> String {
    format!("01KSFVT4Z2V6B9C1D3F5G7H8S{number}")
}

fn record(number: u8, session_number: u8, state: &str) -> String {
    format!(
        "INSERT INTO rail_records (mode, partner_id, id, kind, quote_id, session_id, transaction_id, created_at,
                                   attempts, ask_at, status, failure_code, ended_at)
         VALUES ('test', 'acme', '01KSFVT4Z2V6B9C1D3F5G7H8R{number}', 'pay_out', '01KSFVT4Z2V6B9C1D3F5G7H8Q{number}',
                 '{}', '01KSFVT4Z2V6B9C1D3F5G7H8T{number}', 1, 0, 1, {state});",
        session(session_number)
    )
}

//! Invariants of signed quotes and rail records: those that rows show by themselves, and those that
//! need a record's own arithmetic or the master key.

use gate_core::transaction::Transaction;
use kernel::StoreError;
use partner_core::audit::Breaches;
use sqlx::sqlite::SqliteRow;

use super::{Work, named};
use crate::row::Columns;
use crate::{rails, signed_quotes};

/// The name of each invariant, with the query for the rows that break it.
pub(super) const INVARIANTS: [(&str, &str); 4] = [
    ("consumed-quote-has-its-record", REDEEMED),
    ("rail-record-says-how-it-stands", SAID),
    ("event-has-its-rail-record", TOLD_OF),
    ("settled-record-completes-its-session", SETTLED),
];

/// A quote was consumed at the instant its one record was made, and has the record's side.
const REDEEMED: &str =
    "SELECT q.mode || '/' || q.partner_id || ' signed quote ' || q.id || ' is not redeemed as its record says'
     FROM signed_quotes AS q
     LEFT JOIN rail_records AS r ON r.mode = q.mode AND r.partner_id = q.partner_id AND r.quote_id = q.id
     WHERE q.consumed_at IS NOT r.created_at
        OR q.side IS NOT coalesce(CASE r.kind WHEN 'pay_in' THEN 'on_ramp' WHEN 'pay_out' THEN 'off_ramp' END, q.side)";

/// One event that it was made, and one of its end; one that its quote was consumed.
const SAID: &str =
    "SELECT r.mode || '/' || r.partner_id || ' rail record ' || r.id || ' does not say once how it stands'
     FROM rail_records AS r
     WHERE (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id
              AND e.object_id = CASE r.kind WHEN 'pay_in' THEN 'pi_' ELSE 'po_' END || r.mode || '_' || r.id
              AND e.type = 'rail.' || r.kind || '.processing' AND e.created_at = r.created_at) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id
              AND e.object_id = CASE r.kind WHEN 'pay_in' THEN 'pi_' ELSE 'po_' END || r.mode || '_' || r.id
              AND e.type = 'rail.' || r.kind || '.' || r.status AND e.created_at = coalesce(r.ended_at, r.created_at)) <> 1
        OR (SELECT count(*) FROM events AS e
            WHERE e.mode = r.mode AND e.partner_id = r.partner_id AND e.object_id = 'qt_' || r.mode || '_' || r.quote_id
              AND e.type = 'quote.consumed' AND e.created_at = r.created_at) <> 1";

const TOLD_OF: &str =
    "SELECT e.mode || '/' || e.partner_id || ' event ' || e.id || ' tells of a rail what has not happened'
     FROM events AS e
     LEFT JOIN rail_records AS r ON r.mode = e.mode AND r.partner_id = e.partner_id AND r.id = substr(e.object_id, -26)
          AND e.object_id = CASE r.kind WHEN 'pay_in' THEN 'pi_' ELSE 'po_' END || r.mode || '_' || r.id
     LEFT JOIN signed_quotes AS q ON q.mode = e.mode AND q.partner_id = e.partner_id AND q.id = substr(e.object_id, -26)
          AND e.object_id = 'qt_' || q.mode || '_' || q.id
     WHERE e.service = 'gate'
       AND CASE WHEN e.type = 'quote.consumed' THEN q.consumed_at IS NULL
                WHEN e.type GLOB 'rail.*' THEN
                    r.id IS NULL OR e.type NOT IN ('rail.' || r.kind || '.processing', 'rail.' || r.kind || '.' || r.status)
                ELSE 0 END";

/// A record that settled has completed its session then, unless that had ended before.
const SETTLED: &str =
    "SELECT r.mode || '/' || r.partner_id || ' rail record ' || r.id || ' has not completed its session as it settled'
     FROM rail_records AS r
     LEFT JOIN sessions AS s ON s.mode = r.mode AND s.partner_id = r.partner_id AND s.id = r.session_id
     WHERE CASE WHEN s.transaction_id IS r.transaction_id
                THEN (r.status, r.ended_at) IS NOT ('settled', s.completed_at)
                ELSE r.status = 'settled'
                     AND coalesce(s.completed_at, s.cancelled_at, s.expired_at, r.ended_at + 1) > r.ended_at END";

impl Work<'_> {
    pub(super) async fn rails(&mut self) -> Result<(), StoreError> {
        self.transactions_of_rails().await?;
        self.signatures().await
    }

    /// A record's transaction has its quote's legs, rate and fees, and stands as the record does.
    async fn transactions_of_rails(&mut self) -> Result<(), StoreError> {
        let name = "rail-record-has-its-transaction";
        let mut breaches = Breaches::default();
        self.each(name, TRANSACTIONS, |row| {
            // What cannot be read has its own name.
            let mode = Columns::new("rail_records", row).mode()?;
            let record = rails::record(row, mode);
            if let Ok(record) = record
                && !tells(row, &record.transaction())?
            {
                let record = named(row, "rail record")?;
                breaches.add(|| format!("{record} has a transaction that is not its own"));
            }
            Ok(())
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }

    /// A quote is what it was when it was signed.
    async fn signatures(&mut self) -> Result<(), StoreError> {
        let name = "signed-quote-is-as-it-was-signed";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        self.each(name, SIGNED_QUOTES, |row| {
            let mode = Columns::new("signed_quotes", row).mode()?;
            let quote = signed_quotes::quote(row, mode);
            if quote.is_ok_and(|quote| !quote.is_genuine(sealer)) {
                let quote = named(row, "signed quote")?;
                breaches.add(|| format!("{quote} is not what was signed"));
            }
            Ok(())
        })
        .await?;
        self.found(name, breaches);
        Ok(())
    }
}

pub(super) const SIGNED_QUOTES: &str =
    "SELECT mode, partner_id, id, side, currency, asset, asset_scale, network, payment_method, fiat, crypto, rate,
            service_fee, network_fee, signature, created_at, expires_at, consumed_at
     FROM signed_quotes";

/// Records with their quote's terms and what their transaction says.
pub(super) const TRANSACTIONS: &str =
    "SELECT r.mode, r.partner_id, r.id, r.kind, r.quote_id, r.session_id, r.transaction_id, r.instructions, r.status,
            r.failure_code, r.created_at, r.ended_at, r.attempts, r.ask_token, r.ask_at, q.side, q.currency, q.asset,
            q.asset_scale, q.network, q.payment_method, q.fiat, q.crypto, q.rate, q.service_fee, q.network_fee,
            t.action AS t_action, t.status AS t_status, t.token AS t_token, t.network AS t_network,
            t.currency AS t_currency, t.payment_method AS t_method, t.fiat_amount AS t_fiat, t.token_amount AS t_crypto,
            t.exchange_rate AS t_rate, t.total_fees AS t_fees, t.local_rail_transaction_id AS t_record,
            t.session_id IS r.session_id AND t.created_at IS r.created_at
                AND t.completed_at IS CASE r.status WHEN 'settled' THEN r.ended_at END AS t_fits
     FROM rail_records AS r
     JOIN signed_quotes AS q ON q.mode = r.mode AND q.partner_id = r.partner_id AND q.id = r.quote_id
     LEFT JOIN transactions AS t ON t.mode = r.mode AND t.partner_id = r.partner_id AND t.id = r.transaction_id";

/// Does what is stored beside a record say what the record's transaction has to?
fn tells(row: &SqliteRow, expected: &Transaction) -> Result<bool, StoreError> {
    let row = Columns::new("transactions", row);
    let texts = [
        ("t_action", Some(expected.action.as_str())),
        ("t_status", Some(expected.state.status().as_str())),
        ("t_token", expected.token.as_deref()),
        ("t_network", expected.network.as_deref()),
        ("t_currency", Some(expected.currency.as_str())),
        ("t_method", expected.payment_method.as_deref()),
        ("t_fiat", expected.fiat_amount.as_deref()),
        ("t_crypto", expected.token_amount.as_deref()),
        ("t_rate", expected.exchange_rate.as_deref()),
        ("t_fees", expected.total_fees.as_deref()),
        ("t_record", expected.local_rail_transaction_id.as_deref()),
    ];
    for (column, text) in texts {
        if row.opt_text(column)? != text {
            return Ok(false);
        }
    }
    row.flag("t_fits")
}

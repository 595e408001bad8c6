//! Signed quotes and rail records: what needs a record's own arithmetic or the master key.

use gate_core::signed_quote::{Installation, Issue};
use gate_core::transaction::Transaction;
use kernel::StoreError;
use partner_core::Tenant;
use partner_core::audit::Breaches;

use super::{Work, named, walked};
use crate::{Row, rails, signed_quotes};

impl Work<'_> {
    pub(super) async fn rails(&mut self) -> Result<(), StoreError> {
        self.transactions_of_rails().await?;
        self.signatures().await
    }

    /// A record's transaction has its quote's legs, rate and fees, and stands as the record does.
    async fn transactions_of_rails(&mut self) -> Result<(), StoreError> {
        let name = "rail-record-has-its-transaction";
        let mut breaches = Breaches::default();
        self.each(name, &walked::RAIL_RECORDS, |row| {
            // What cannot be read has its own name.
            let record = rails::record(row, row.mode()?);
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

    /// A quote is what it was when it was signed, and where it was signed for.
    async fn signatures(&mut self) -> Result<(), StoreError> {
        let name = "signed-quote-is-as-it-was-signed";
        let sealer = self.sealer;
        let mut breaches = Breaches::default();
        self.each(name, &walked::SIGNED_QUOTES, |row| {
            let mode = row.mode()?;
            let installation = Installation(row.text("installation")?.to_owned());
            let tenant = Tenant {
                mode,
                partner: row.partner()?,
            };
            let issue = Issue {
                installation: &installation,
                tenant: &tenant,
            };
            let quote = signed_quotes::quote(row, mode);
            if quote.is_ok_and(|quote| !quote.is_genuine(issue, sealer)) {
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

/// Does what is stored beside a record say what the record's transaction has to?
fn tells(row: &dyn Row, expected: &Transaction) -> Result<bool, StoreError> {
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

//! Checks of signed quotes and rail records that need a record's arithmetic or the master key.

use gate_core::signed_quote::{Installation, Issue};
use gate_core::transaction::Transaction;
use kernel::StoreResult;

use super::{Work, named, walked};
use crate::{Row, rails, signed_quotes};

impl Work<'_> {
    pub(super) async fn rails(&mut self) -> StoreResult<()> {
        self.transactions_of_rails().await?;
        self.signatures().await?;
        self.open_items().await
    }

    /// Lists what an operator must look at. It breaks no invariant.
    async fn open_items(&mut self) -> StoreResult<()> {
        let mut items = Vec::new();
        let mut visit = |row: &dyn Row| {
            let record = rails::record(row, row.mode()?);
            // `rows-can-be-read` reports rows that cannot be read.
            if let Ok(record) = record
                && let Some(item) = record.open_item
            {
                let tenant = row.tenant()?;
                let (id, finding) = (record.id, item.finding.as_str());
                items.push(format!(
                    "{}/{} payment {id}: {finding} since {}",
                    tenant.mode, tenant.partner, item.at
                ));
            }
            Ok(())
        };
        let connection = self.snapshot.connection();
        connection
            .walk(&walked::OPEN_ITEMS, &[], &mut visit)
            .await?;
        self.report.open_items = items;
        Ok(())
    }

    /// A record's transaction has its quote's legs, rate and fees, and the record's status.
    async fn transactions_of_rails(&mut self) -> StoreResult<()> {
        let name = "rail-record-has-its-transaction";
        self.check(name, &walked::RAIL_RECORDS, |row, breaches| {
            // `rows-can-be-read` reports rows that cannot be read.
            let record = rails::record(row, row.mode()?);
            if let Ok(record) = record
                && !has_transaction(row, &record.transaction())?
            {
                let record = named(row, "rail record")?;
                breaches.add(|| format!("{record} has a transaction that is not its own"));
            }
            Ok(())
        })
        .await
    }

    /// A quote's signature fits its terms, its tenant and the installation.
    async fn signatures(&mut self) -> StoreResult<()> {
        let name = "signed-quote-is-as-it-was-signed";
        let sealer = self.sealer;
        self.check(name, &walked::SIGNED_QUOTES, |row, breaches| {
            let tenant = row.tenant()?;
            let installation = Installation(row.text("installation")?.to_owned());
            let issue = Issue {
                installation: &installation,
                tenant: &tenant,
            };
            let quote = signed_quotes::quote(row, tenant.mode);
            if quote.is_ok_and(|quote| !quote.is_genuine(issue, sealer)) {
                let quote = named(row, "signed quote")?;
                breaches.add(|| format!("{quote} is not what was signed"));
            }
            Ok(())
        })
        .await
    }
}

/// Whether the stored transaction is the one that the record implies.
fn has_transaction(row: &dyn Row, expected: &Transaction) -> StoreResult<bool> {
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

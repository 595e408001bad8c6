//! The handlers of the pools: the objects of their requests, and one request for each.

use std::net::SocketAddr;

use super::{Handled, Operation, operations_in};
use crate::Result;
use crate::book::Quote;
use crate::caller::number;
use crate::http::Client;
use crate::load::{note_transact, quote_request, transact_request};
use crate::orders::{Order, Side};
use crate::storm::writes;
use crate::world::{Partner, World};

/// Objects of the requests: a quote with its key, a second quote, and a trade in progress with its quote.
#[derive(Debug)]
pub(crate) struct Objects {
    to_execute: (String, String),
    to_reject: String,
    to_poll: String,
    trade: String,
}

impl Handled for World {
    type Objects = Objects;

    /// Quotes do not expire during the run.
    const LONG_LIFETIMES: &'static [(&'static str, &'static str)] =
        &[("PENSTOCK_QUOTE_TTL", "10m")];

    fn operations() -> Result<Vec<Operation>> {
        operations_in(&pools_http::documents()?)
    }

    /// Creates two open quotes and a trade in progress.
    fn prepare(&self, address: SocketAddr) -> Result<Objects> {
        let partner = rich(self)?;
        let mut client = Client::new(address);
        let mut quote = || -> Result<String> {
            let order = Order::new(Side::Purchase, 1_200);
            let answer = client.call_until_served(&quote_request(partner, order));
            let answer = answer.map_err(|lost| format!("no quote: {lost:?}"))?;
            let (id, quote) = Quote::read(order, &answer).ok_or("a quote that cannot be read")?;
            partner.book.lock().quotes.insert(id.clone(), quote);
            Ok(id)
        };
        let (to_execute, to_reject, to_poll) = (quote()?, quote()?, quote()?);
        let key = format!("key-{}", number());
        let answer = client.call_until_served(&transact_request(partner, &to_poll, &key));
        note_transact(partner, &to_poll, &key, &answer);
        let trade = answer.ok().and_then(|answer| answer.text("transactId"));
        Ok(Objects {
            to_execute: (to_execute, format!("key-{}", number())),
            to_reject,
            to_poll,
            trade: trade.ok_or("no trade")?,
        })
    }

    fn request(&self, objects: &Objects, operation: &Operation) -> Result<Vec<u8>> {
        let partner = rich(self)?;
        let quote = match operation.id.as_str() {
            "createQuote" => return Ok(quote_request(partner, Order::new(Side::Purchase, 1_200))),
            "transact" => {
                let (quote, key) = &objects.to_execute;
                return Ok(transact_request(partner, quote, key));
            }
            "rejectQuote" => &objects.to_reject,
            _ => &objects.to_poll,
        };
        let id_of = |kind: &str| match kind {
            "pq_test_" => Some(quote.clone()),
            "txn_test_" => Some(objects.trade.clone()),
            _ => None,
        };
        Ok(operation.recorded(&partner.key, "", id_of))
    }

    fn doubt(&self, objects: &Objects, operation: &Operation) -> Result<()> {
        let mut book = rich(self)?.book.lock();
        let (quote, key) = &objects.to_execute;
        match operation.id.as_str() {
            "transact" => {
                if let Some(known) = book.quotes.get_mut(quote) {
                    known.doubt(key);
                }
            }
            "rejectQuote" => {
                if let Some(known) = book.quotes.get_mut(&objects.to_reject) {
                    known.reject_in_doubt = true;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Both quotes are open and the trade's status is unchanged. `judge` checks that the ledger and the list of trades have no new
    /// line.
    fn untouched(&self, objects: &Objects) -> Vec<(String, String, &'static str)> {
        let key = rich(self).map_or("", |partner| &partner.key);
        let read = |path: String, wanted| (key.to_owned(), path, wanted);
        vec![
            read(format!("/pools/quotes/{}", objects.to_execute.0), "active"),
            read(format!("/pools/quotes/{}", objects.to_reject), "active"),
            read(format!("/pools/trades/{}", objects.trade), "reserved"),
        ]
    }

    fn work(&self, _: &Objects, _: SocketAddr) -> Result<()> {
        writes(self)
    }
}

fn rich(world: &World) -> Result<&Partner> {
    Ok(world.partners.first().ok_or("no partner")?)
}

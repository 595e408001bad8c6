//! Polls every trade to its end.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use test_support::time;

use crate::Result;
use crate::http::{Client, request};
use crate::world::{Partner, World};

/// Time in which all trades of a campaign must end, from the first poll on; a trade that is still reserved then is a breach. A poll's
/// lease lasts the engine's timeout plus 2 s, and a trade may take two polls. A busy machine needs several times as long.
const END_TIMEOUT: Duration = Duration::from_secs(120);
const POLLS: u32 = 4;

/// Polls every trade without a known end until it ends. Returns the trades that did not end in time.
///
/// The lease of a poll that was killed blocks other polls until it expires.
pub(crate) fn poll_all(world: &World, address: SocketAddr) -> Result<Vec<String>> {
    let began = time::now();
    let mut turns = 0;
    loop {
        let mut open = Vec::new();
        for partner in &world.partners {
            open.extend(still_reserved(partner, address)?);
        }
        turns += 1;
        let late = time::now().saturating_sub(began) > END_TIMEOUT;
        if open.is_empty() || late && turns > POLLS {
            return Ok(open);
        }
        thread::sleep(Duration::from_millis(200));
    }
}

fn still_reserved(partner: &Partner, address: SocketAddr) -> Result<Vec<String>> {
    let mut client = Client::new(address);
    let mut book = partner.book.lock();
    let mut open = Vec::new();
    for (id, quote) in &mut book.quotes {
        if quote.trade.is_none() || !matches!(quote.seen.as_deref(), None | Some("reserved")) {
            continue;
        }
        let path = format!("/pools/transactions/{id}");
        let answer = match client.call(&request(&partner.key, "GET", &path, "", "")) {
            Ok(answer) => answer,
            Err(lost) => {
                client = Client::new(address);
                open.push(format!("{id} has not ended: {lost:?}"));
                continue;
            }
        };
        quote.seen = answer.text("status");
        if quote
            .seen
            .as_deref()
            .is_none_or(|state| state == "reserved")
        {
            open.push(format!(
                "{id} has not ended: {} {}",
                answer.status,
                answer.code()
            ));
        }
    }
    Ok(open)
}

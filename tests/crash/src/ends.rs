//! Every trade polled to its end.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use crate::Result;
use crate::http::{Client, request};
use crate::time;
use crate::world::{Partner, World};

/// A poll's lease lasts the engine's timeout and 2 s, and a trade may take two polls.
const ENDED_WITHIN: Duration = Duration::from_secs(15);
const POLLS: u32 = 4;

/// Polls everything that is not known to have ended until it has; what has not. The lease of a poll that was killed
/// holds others back for as long as it lasts.
pub(crate) fn poll_all(world: &World, address: SocketAddr) -> Result<Vec<String>> {
    let began = time::now();
    let mut turns = 0;
    loop {
        let mut open = Vec::new();
        for partner in &world.partners {
            open.extend(still_reserved(partner, address)?);
        }
        turns += 1;
        let late = time::now().saturating_sub(began) > ENDED_WITHIN;
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
        let answer = client.call(&request(&partner.key, "GET", &path, "", ""));
        let answer = answer.map_err(|lost| format!("polling {id}: {lost:?}"))?;
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

//! The trace parent that calls to the engine carry.

use acceptance::{ACME, Answer, Call, FarEngine, FarFault, World, purchase};
use serde_json::json;

const CLIENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The headers `traceparent` that a client may send: a trace parent, a malformed one, none.
pub(crate) const HEADERS: [Option<&str>; 3] = [Some(CLIENT), Some("00-xyz-01"), None];

pub(crate) fn with_header(call: Call, header: Option<&str>) -> Call {
    match header {
        Some(value) => call.header("traceparent", value),
        None => call,
    }
}

/// The trace parent of the calls that a request with this header and this response has made.
pub(crate) fn expected(header: Option<&str>, answer: &Answer) -> String {
    if header == Some(CLIENT) {
        return CLIENT.to_owned();
    }
    let id = answer.header("x-request-id").unwrap();
    let bits = number(id.strip_prefix("req_").unwrap());
    format!("00-{bits:032x}-{:016x}-00", bits & u128::from(u64::MAX))
}

/// The number that a ULID writes in Crockford's base 32.
fn number(ulid: &str) -> u128 {
    const DIGITS: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let digits = ulid.chars().map(|digit| DIGITS.find(digit).unwrap());
    digits.fold(0, |number, digit| {
        number * 32 + u128::try_from(digit).unwrap()
    })
}

// rule: upstream.http.traceparent, upstream.http.trace-source, webhook.traceparent
#[tokio::test]
async fn every_call_to_the_engine_carries_the_trace_parent_of_its_request() {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let far = FarEngine::start();
    world
        .engine()
        .becomes(far.adapter("a-secret-of-the-engine"));
    let acme = world.acme();
    for header in HEADERS {
        let send = async |call: Call, operations: &[&str]| {
            let answer = acme.send(with_header(call, header)).await;
            let calls = far.calls();
            let made: Vec<&str> = calls.iter().map(|call| &*call.operation).collect();
            assert_eq!(made, operations, "{}", answer.asked);
            let parent = expected(header, &answer);
            assert!(
                calls.iter().all(|call| call.traceparent == parent),
                "{parent}: {calls:?}"
            );
            answer
        };
        let quote = async || {
            let asked = Call::post("/v1/pools/EUR-USDT/quote");
            let asked = asked.json(&purchase("EUR-USDT", "10.00"));
            let quote = send(asked, &["depth"]).await.ok();
            quote["quoteId"].as_str().unwrap().to_owned()
        };
        let transact = |quote: &str| {
            let call = Call::post("/v1/pools/EUR-USDT/transact").key(quote);
            call.json(&json!({ "quoteId": quote }))
        };
        let bought = quote().await;
        send(transact(&bought), &["hold", "confirm"]).await.ok();
        let poll = Call::get(&format!("/v1/pools/transactions/{bought}"));
        let polled = send(poll, &["confirm", "report"]).await;
        let parent = expected(header, &polled);
        let trade = polled.ok()["transactId"].as_str().unwrap().to_owned();
        let asked = format!("SELECT trace_parent FROM events WHERE object_id = '{trade}'");
        assert_eq!(world.database().texts(&asked).await, [parent]);
        let unheld = quote().await;
        far.fails("hold", FarFault::Says(503, String::new()));
        let refused = send(transact(&unheld), &["hold", "release"]).await;
        assert_eq!(refused.status, 503);
        far.mended();
    }
    world.notice_all().await;
    world.finish().await;
}

//! Two partners: objects of one are absent for the other.

use acceptance::{ACME, Call, RIVAL, RIVAL_SECRET, World};
use serde_json::{Value, json};

use crate::routes::{self, Class, Ids};

/// Acme with an open quote, a rejected one, a reserved trade and a settled one.
async fn two_partners() -> (World, Vec<Ids>) {
    let world = World::new().await;
    for partner in [ACME, RIVAL] {
        world.operator().credit(partner, "1000.00", "EUR").await;
    }
    let acme = world.acme();
    let open = acme.buy("EUR-USDT", "100").await;
    let rejected = acme.buy("EUR-USDT", "100").await;
    acme.reject(&rejected).await.ok();
    let (reserved, trade) = acme.trade("EUR-USDT", "100.21").await;
    let (settled, other) = acme.trade("EUR-USDT", "100").await;
    acme.poll(&settled).await.ok();
    world.notice(ACME, &other).await;
    let ids = |quote: &str, trade: &str| Ids {
        quote: quote.to_owned(),
        trade: trade.to_owned(),
    };
    let foreign = vec![
        ids(&open, &trade),
        ids(&rejected, &other),
        ids(&reserved, &trade),
        ids(&settled, &other),
    ];
    (world, foreign)
}

// rule: tenancy.nothing-crosses, list.foreign-cursor
#[tokio::test]
async fn lists_show_no_objects_of_another_partner() {
    let (world, foreign) = two_partners().await;
    let rival = world.rival();
    let empty = json!({ "data": [], "nextCursor": null, "hasMore": false });
    assert_eq!(rival.get("/v1/pools/trades").await.ok(), empty);
    for ids in &foreign {
        assert_eq!(
            rival
                .get(&format!("/v1/pools/trades?cursor={}", ids.trade))
                .await
                .ok(),
            empty
        );
    }
    // A foreign cursor gives an empty page of the ledger, although rival has an entry of that
    // number.
    let acme = world.acme().get("/v1/pools/ledger?limit=2").await.ok();
    let cursor = acme["nextCursor"].as_str().unwrap();
    world.operator().credit(RIVAL, "1.00", "EUR").await;
    let page = rival
        .get(&format!("/v1/pools/ledger?cursor={cursor}"))
        .await
        .ok();
    assert_eq!(
        page,
        json!({
            "currency": "EUR", "available": "1001.00", "entries": [], "nextCursor": null,
            "hasMore": false,
        })
    );
    world.finish().await;
}

// rule: tenancy.nothing-crosses
#[tokio::test]
async fn responses_hold_no_data_of_another_partner() {
    let (world, foreign) = two_partners().await;
    let mut words: Vec<String> = vec!["ACME-7F3K".to_owned(), "acme".to_owned()];
    words.extend(
        foreign
            .iter()
            .flat_map(|ids| [ids.quote.clone(), ids.trade.clone()]),
    );
    let (quote, trade) = world.rival().trade("EUR-USDT", "50").await;
    let mine = Ids {
        quote,
        trade: trade.clone(),
    };
    for (operation, call) in routes::all(Some(&mine)) {
        let answer = world.send(call.bearer(RIVAL_SECRET)).await;
        let text = String::from_utf8_lossy(&answer.bytes).to_lowercase();
        for word in &words {
            assert!(
                !text.contains(&word.to_lowercase()),
                "{} shows {word}",
                operation.id
            );
        }
    }
    world.notice(RIVAL, &trade).await;
    world.finish().await;
}

// rule: mode.on-every-row, tenancy.nothing-crosses
#[tokio::test]
async fn modes_of_one_database_are_separate() {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "100").await;
    let live = world.other_mode().await;
    let client = live.acme();
    assert_eq!(client.get("/v1/pools/trades").await.ok()["data"], json!([]));
    assert_eq!(client.ledger("EUR").await["available"], "0.00");
    for id in [&quote, &quote.replace("_test_", "_live_")] {
        client.quote(id).await.refused(404, "resource_not_found");
        client.poll(id).await.refused(404, "resource_not_found");
    }
    for id in [&trade, &trade.replace("_test_", "_live_")] {
        client.read(id).await.refused(404, "resource_not_found");
    }
    assert_eq!(world.acme().read(&trade).await.ok()["status"], "reserved");
    live.close().await;
    world.finish().await;
}

// rule: access.not-by-api, request.unknown-fields
#[tokio::test]
async fn requests_cannot_name_their_partner() {
    let (world, _) = two_partners().await;
    let before = world.acme().ledger("EUR").await;
    for (operation, call) in routes::all(None) {
        if routes::class(operation) == Class::AnyKey {
            continue;
        }
        let call = call.query("partner_id=acme&partnerId=acme&mode=live&kyc=approved");
        let call = call
            .header("x-partner-id", "acme")
            .header("x-mode", "live")
            .bearer(RIVAL_SECRET);
        let answer = world.send(call).await;
        assert!(!matches!(answer.status, 401 | 403), "{answer:?}");
    }
    assert_eq!(world.acme().ledger("EUR").await, before);
    let call = Call::get("/v1/pools/funding")
        .header("x-partner-id", ACME)
        .bearer(RIVAL_SECRET);
    let reference: Value = world.send(call).await.ok()["reference"].clone();
    assert_eq!(reference, "RIVAL-1");
    world.finish().await;
}

// rule: error.not-found-kind, tenancy.nothing-crosses
#[tokio::test]
async fn not_found_names_the_kind_and_nothing_else() {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let (quote, trade) = world.acme().trade("EUR-USDT", "100").await;
    let rival = world.rival();
    let unknown = "01HF7YAT00408104G208104081";
    for (paths, expected) in [
        (
            vec![
                "/v1/pools/EUR-USDX/capabilities".to_owned(),
                "/v1/pools/%00/capabilities".to_owned(),
                "/v1/pools/nonsense/balance".to_owned(),
            ],
            "No such pool.",
        ),
        (
            vec![
                format!("/v1/pools/quotes/{quote}"),
                format!("/v1/pools/quotes/pq_test_{unknown}"),
                "/v1/pools/quotes/nonsense".to_owned(),
                "/v1/pools/quotes/%ff".to_owned(),
            ],
            "No such quote.",
        ),
        (
            vec![
                format!("/v1/pools/trades/{trade}"),
                format!("/v1/pools/trades/txn_test_{unknown}"),
                "/v1/pools/trades/nonsense".to_owned(),
                format!("/v1/pools/transactions/{quote}"),
                format!("/v1/pools/transactions/pq_test_{unknown}"),
            ],
            "No such trade.",
        ),
    ] {
        for path in paths {
            let answer = rival.get(&path).await.refused(404, "resource_not_found");
            assert_eq!(answer["message"], expected, "{path}");
        }
    }
    world.finish().await;
}

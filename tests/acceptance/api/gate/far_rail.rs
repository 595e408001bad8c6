//! The operator's rail over HTTP.

use std::sync::Arc;
use std::time::Duration;

use acceptance::{Gate, RIVAL_SHOP};
use providers::{HttpRail, UpstreamUrl};
use serde_json::json;
use test_support::http::{Reply, Upstream};

use super::rails::{PAY_INS, id, paying, purchase, read, redeem, session};
use crate::isolation::until;

/// Starts a rail that settles every payment. It does not respond to requests for instructions of 66.66.
fn far() -> Upstream {
    Upstream::start(|request| {
        let mut segments = request.path().split('/').skip(3);
        let id = segments.next().unwrap();
        let instructs = segments.next() == Some("instructions");
        if instructs && request.json()["fiat_amount"] == "66.66" {
            return Reply::Waits;
        }
        let answer = if instructs {
            json!({ "id": id, "instructions": { "reference": "r-1" } })
        } else if request.method() == "PUT" {
            json!({ "id": id, "status": "accepted" })
        } else {
            json!({ "id": id, "status": "settled" })
        };
        Reply::json(200, &answer.to_string())
    })
}

/// More pay-ins of one partner wait for the rail than calls are made at the same time.
// rule: rail.http.even-share
#[tokio::test]
async fn payments_of_one_partner_that_hang_delay_no_other_partner() {
    let gate = Gate::new().await;
    let far = far();
    let url = UpstreamUrl::parse(&far.url()).unwrap();
    let rail = HttpRail::new(url, None, Duration::from_secs(120)).unwrap();
    gate.rail().becomes(Arc::new(rail));
    let (acme, rival) = (gate.acme(), gate.rival());
    let slow = id(&purchase(&acme, "q", "66.66").await);
    let of_acme = session(&acme, "s", "66.66", json!({})).await;
    let waiting: Vec<_> = (0..260)
        .map(|number| {
            let (acme, slow, of_acme) = (acme.clone(), slow.clone(), of_acme.clone());
            let key = format!("p{number}");
            tokio::spawn(async move { redeem(&acme, PAY_INS, &key, &slow, &of_acme).await })
        })
        .collect();
    let has_part = async || far.received().len() >= 128;
    until("a call for each permit that acme gets", has_part).await;
    let quote = id(&purchase(&rival, "q", "100.00").await);
    let page = json!({ "return_url": format!("{RIVAL_SHOP}/done") });
    let of_rival = session(&rival, "s", "100.00", page).await;
    let made = redeem(&rival, PAY_INS, "p", &quote, &of_rival).await;
    let made = made.created();
    assert_eq!(made["instructions"], json!({ "reference": "r-1" }));
    gate.world().after(1);
    gate.settle_rails().await;
    let settled = read(&rival, PAY_INS, &id(&made)).await;
    assert_eq!(settled["status"], "settled");
    assert_eq!(far.received().len(), 128 + 3);
    assert!(waiting.iter().all(|payment| !payment.is_finished()));
    for payment in waiting {
        payment.abort();
        drop(payment.await);
    }
    paying(&acme, "again", "100.00").await;
    gate.world().notice_all().await;
    gate.finish().await;
}

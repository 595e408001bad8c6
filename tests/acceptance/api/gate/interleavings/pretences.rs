//! Pretences in the sandbox beside a cancellation and a poll.

use acceptance::{Cast, Paced, Setup};
use gate_core::ports::Pretence;
use gate_core::rail::RailRecord;

use super::{Paying, Scene};

impl Paying {
    /// Pretends in a scene.
    async fn pretends(self, paced: Paced, record: RailRecord, pretence: Pretence) -> String {
        let uses = paced.gate().pretending;
        let pretending = uses.pay(self.who(), self.token(), record.payment_id(), pretence);
        pretending.await.unwrap().state.status().as_str().to_owned()
    }
}

// rule: gate.embed.pretend, gate.payment.cancel, gate.session.one-end
#[tokio::test]
async fn giving_up_and_pretending() {
    let mut scene = Scene::of(Setup::settle_later);
    while let Some(paying) = scene.next("100.00").await {
        paying.pay(paying.gate.use_cases(), "k").await.unwrap();
        let record = paying.payment().await;
        let (one, other) = (paying.clone(), paying.clone());
        let given_up = record.clone();
        let cast = Cast::of(paying.world())
            .and(move |paced| one.gives_up(paced, given_up))
            .and(move |paced| other.pretends(paced, record, Pretence::Paid));
        let answers = scene.play(cast).await;
        let session = paying.status(paying.gate.use_cases()).await;
        let record = paying.payment().await;
        assert_eq!(record.open_item, None);
        let outcome = format!(
            "{}: {session}, {}",
            answers[0],
            record.state.status().as_str()
        );
        scene.ended(&paying, &outcome).await;
    }
    scene.had(
        "giving up and pretending",
        &[
            "cancelled, cancelled: cancelled, cancelled",
            "too late, not open: completed, settled",
        ],
    );
}

// rule: gate.embed.pretend, gate.payment.once, gate.rail.settled
#[tokio::test]
async fn pretending_and_polling() {
    for outcome in ["declined", "paid"] {
        let mut scene = Scene::of(Setup::settle_later);
        while let Some(paying) = scene.next("100.00").await {
            paying.pay(paying.gate.use_cases(), "k").await.unwrap();
            let record = paying.payment().await;
            let polled = record.clone();
            // The poll finds that the payment has settled by itself.
            if outcome == "declined" {
                paying.world().after(30_000);
            }
            let (one, other) = (paying.clone(), paying.clone());
            let pretence = match outcome {
                "declined" => Pretence::Declined,
                _ => Pretence::Paid,
            };
            let cast = Cast::of(paying.world())
                .and(move |paced| one.pretends(paced, record, pretence))
                .and(move |paced| other.settles(paced, polled));
            let answers = scene.play(cast).await;
            let record = paying.payment().await;
            let status = record.state.status().as_str();
            assert_eq!(answers[0], status, "what was answered stays");
            assert_eq!(record.open_item, None);
            let session = paying.status(paying.gate.use_cases()).await;
            scene.ended(&paying, &format!("{session}, {status}")).await;
        }
        let expected: &[&str] = match outcome {
            "declined" => &["open, failed", "completed, settled"],
            _ => &["completed, settled"],
        };
        scene.had(&format!("pretending and polling, {outcome}"), expected);
    }
}

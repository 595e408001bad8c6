//! Transacts: a batch equals its commands one by one, decided on the state inside its own transaction.

use kernel::{Mode, StoreError};
use pools_core::batch::{Refusal, TransactCommand, TransactOutcome};
use pools_core::ports::{Hold, LedgerFilter};
use pools_core::profile::PoolsProfile;
use pools_core::quote::{QuoteClosed, QuoteOutcome, Side};
use pools_core::trade::TradeState;

use crate::contract::fixture::Fixture;
use crate::contract::world::{
    Decided, Member, ONE, World, amount, assert_guarded, eur, profile, terms, usdt,
};

// rule: pools.transact.effect, pools.ledger.buy, pools.ledger.sell, pools.trades.equals-quote
// rule: money.reserved-account
pub async fn purchase_reserves_fiat_and_sale_crypto(world: World<impl Fixture>) {
    let member = world.rich("acme").await;
    for (side, asset, reason) in [
        (Side::OnRamp, eur(), "buy_debit"),
        (Side::OffRamp, usdt(), "sell_debit"),
    ] {
        let before = world.account(&member.who, asset).await.unwrap();
        let quote = world.quote(&member.who, terms(side, 7 * ONE)).await;
        let command = world.command(&member, quote.id);
        let Ok(TransactOutcome::Opened(trade)) = world.transact_one(command.clone()).await else {
            panic!()
        };
        assert_eq!(
            (trade.id, trade.quote, &trade.terms),
            (command.trade, quote.id, &quote.terms)
        );
        assert_eq!(
            (&trade.state, trade.reserved),
            (&TradeState::Reserved, Some(amount("7", asset)))
        );
        assert_eq!(world.stored(&member, trade.id).await, trade);
        let outcome = world.seen(&member.who, quote.id).await.outcome;
        assert_eq!(outcome, QuoteOutcome::Consumed(trade.created_at));
        let page = world
            .ports()
            .store
            .ledger_page(&member.who, asset, &LedgerFilter::default(), 1)
            .await;
        let page = page.unwrap().unwrap();
        let entry = &page.entries[0];
        assert_eq!(
            (entry.id, entry.transfer.reason.as_str()),
            (command.entry, reason)
        );
        assert_eq!(entry.reference, quote.id.to_string());
        assert_eq!(page.account.sequence, before.sequence + 1);
        assert_eq!(
            page.account.available.units(),
            before.available.units() - 7 * ONE
        );
        assert_eq!(entry.mark.unwrap().balance_after, page.account.available);
    }
    world.assert_clean().await;
}

// rule: pools.transact.idempotent, pools.transact.once
pub async fn consumed_quote_returns_its_trade_under_every_key(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let quote = world.buy(&member, 1).await;
    let batch = [
        world.command(&member, quote.id),
        world.command(&member, quote.id),
    ];
    let decided = world.transact(&batch).await;
    let Ok(TransactOutcome::Opened(trade)) = &decided[0] else {
        panic!("{decided:?}")
    };
    assert_eq!(decided[1], Ok(TransactOutcome::Existing(trade.clone())));
    world.clock().set(quote.expires_at);
    let late = world.transact_one(world.command(&member, quote.id)).await;
    assert_eq!(late, Ok(TransactOutcome::Existing(trade.clone())));
    world.assert_clean().await;
}

// rule: pools.transact.once
pub async fn concurrent_transacts_of_quote_open_one_trade(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    for _ in 0..5 {
        let quote = world.buy(&member, 1).await;
        let asking: Vec<_> = (0..8)
            .map(|_| {
                let transact = world.ports().transact.clone();
                let command = world.command(&member, quote.id);
                tokio::spawn(async move { transact.transact(&[command]).await })
            })
            .collect();
        let mut opened = 0;
        for one in asking {
            match one.await.unwrap().unwrap().remove(0) {
                Ok(TransactOutcome::Opened(_)) => opened += 1,
                Ok(TransactOutcome::Existing(_)) => {}
                Err(refusal) => panic!("{refusal:?}"),
            }
        }
        assert_eq!(opened, 1);
    }
    world.assert_clean().await;
}

pub async fn batch_of_two_modes_is_refused(world: World<impl Fixture>) {
    let test = world.funded("acme").await;
    let live = world.member_with("acme", Mode::Live, &profile()).await;
    let batch = [
        world.command(&test, world.buy(&test, 1).await.id),
        world.command(&live, world.buy(&live, 1).await.id),
    ];
    let refused = world.ports().transact.transact(&batch).await;
    assert!(
        matches!(refused, Err(StoreError::Unexpected(_))),
        "{refused:?}"
    );
    assert_eq!(world.transact(&[]).await, []);
    world.fund(&live.who, amount("1", eur()), "start").await;
    assert!(world.transact_one(batch[1].clone()).await.is_ok());
    assert!(world.transact_one(batch[0].clone()).await.is_ok());
    world.assert_clean().await;
}

/// If one write of a batch fails, the whole batch is rolled back.
// rule: pools.transact.atomic
pub async fn transact_batch_is_atomic(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let taken = world.trade(&member, Side::OnRamp, ONE).await;
    let (one, two) = (world.buy(&member, 1).await, world.buy(&member, 1).await);
    let before = world.audit().await.figures;
    let twin = TransactCommand {
        trade: taken.id,
        ..world.command(&member, two.id)
    };
    let batch = [world.command(&member, one.id), twin];
    assert_guarded(world.ports().transact.transact(&batch).await);
    assert_eq!(world.audit().await.figures, before);
    assert_eq!(world.seen(&member.who, one.id).await, one);
    assert!(world.transact_one(batch[0].clone()).await.is_ok());
    world.assert_clean().await;
}

/// Random commands of several partners, once in batches and once one by one, have equal outcomes and leave equal rows.
// rule: pools.transact.batch-equals-single
pub async fn batch_equals_its_commands_one_by_one(world: World<impl Fixture>) {
    let mut twins = Vec::new();
    for at in 0..3 {
        twins.push((
            world.poor(&format!("batch-{at}")).await,
            world.poor(&format!("single-{at}")).await,
        ));
    }
    for round in 0..40 {
        let size = usize::try_from(1 + world.entropy.below(64)).unwrap();
        let (batch, singles) = world.random_commands(&twins, size).await;
        let together = world.transact(&batch).await;
        let mut apart = Vec::new();
        for command in &singles {
            apart.push(world.transact_one(command.clone()).await);
        }
        assert_eq!(
            plain(&together, &batch),
            plain(&apart, &singles),
            "round {round}"
        );
        for (one, two) in &twins {
            for asset in [eur(), usdt()] {
                let accounts = (
                    world.account(&one.who, asset).await,
                    world.account(&two.who, asset).await,
                );
                assert_eq!(accounts.0, accounts.1, "round {round}");
            }
            assert_eq!(
                world.total(&one.who).await,
                world.total(&two.who).await,
                "round {round}"
            );
        }
        world.clock().advance(std::time::Duration::from_secs(
            world.entropy.below(3 * 3600),
        ));
    }
    world.assert_clean().await;
}

/// An outcome without the ids that differ between twins: the number of the command that opened the trade.
fn plain(decided: &[Decided], commands: &[TransactCommand]) -> Vec<String> {
    let maker = |outcome: &TransactOutcome| {
        let (word, trade) = match outcome {
            TransactOutcome::Opened(trade) => ("opened", trade),
            TransactOutcome::Existing(trade) => ("existing", trade),
        };
        let made_by = commands
            .iter()
            .position(|command| command.trade == trade.id);
        format!(
            "{word} by {made_by:?}: {:?} {:?}",
            trade.terms, trade.reserved
        )
    };
    decided
        .iter()
        .map(|one| {
            one.as_ref()
                .map_or_else(|refusal| format!("{refusal:?}"), maker)
        })
        .collect()
}

impl<F: Fixture> World<F> {
    /// A partner that soon reaches its balance and its cap.
    async fn poor(&self, name: &str) -> Member {
        let capped = PoolsProfile {
            velocity_cap: Some(250 * ONE),
            ..profile()
        };
        let member = self.member_with(name, Mode::Test, &capped).await;
        self.fund(&member.who, amount("700", eur()), "start").await;
        self.fund(&member.who, amount("300", usdt()), "crypto")
            .await;
        member
    }

    /// The same random commands for the first and for the second of each pair.
    async fn random_commands(
        &self,
        twins: &[(Member, Member)],
        size: usize,
    ) -> (Vec<TransactCommand>, Vec<TransactCommand>) {
        let mut quotes = Vec::new();
        for _ in 0..size {
            let (one, two) = &twins[self.pick(twins.len())];
            let side = if self.entropy.below(3) == 0 {
                Side::OffRamp
            } else {
                Side::OnRamp
            };
            let terms = terms(
                side,
                i64::try_from(1 + self.entropy.below(20)).unwrap() * ONE,
            );
            quotes.push((
                one,
                self.quote(&one.who, terms.clone()).await,
                two,
                self.quote(&two.who, terms).await,
            ));
        }
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for _ in 0..size {
            let (one, of_one, two, of_two) = &quotes[self.pick(quotes.len())];
            let key = format!("key-{}", self.entropy.below(64));
            let asks = [u8::try_from(self.entropy.below(3)).unwrap()];
            let hold = [
                Some(Hold::Held),
                Some(Hold::Held),
                Some(Hold::Refused),
                None,
            ][self.pick(4)];
            first.push(TransactCommand {
                hold,
                ..self.command_under(one, of_one.id, &key, &asks)
            });
            second.push(TransactCommand {
                hold,
                ..self.command_under(two, of_two.id, &key, &asks)
            });
        }
        (first, second)
    }

    fn pick(&self, among: usize) -> usize {
        usize::try_from(self.entropy.below(u64::try_from(among).unwrap())).unwrap()
    }
}

/// An expired quote in the middle of a batch is refused alone.
// rule: pools.transact.batch-equals-single
pub async fn refusal_affects_its_own_command_only(world: World<impl Fixture>) {
    let member = world.funded("acme").await;
    let old = world.buy(&member, 1).await;
    world.clock().set(old.expires_at);
    let (one, two) = (world.buy(&member, 1).await, world.buy(&member, 1).await);
    let batch = [one.id, old.id, two.id].map(|quote| world.command(&member, quote));
    let decided = world.transact(&batch).await;
    assert!(decided[0].is_ok() && decided[2].is_ok());
    assert_eq!(decided[1], Err(Refusal::QuoteClosed(QuoteClosed::Expired)));
    world.assert_clean().await;
}

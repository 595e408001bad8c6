//! What leads to each point, and which of them have their turn.

use instruments::failpoint::{Side, Step};

use crate::programs::Served;

/// What leads to a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Road {
    /// Starting the service.
    Start,
    /// The service's own sweep, right after its start.
    Sweep,
    /// The operator credits.
    Credit,
    /// The operator revokes a key.
    Revoke,
    /// Clients of the pools ask.
    Pools,
    /// Clients of the gate ask.
    Gate,
    /// And those of the gate of live sessions.
    LiveGate,
    /// Clients of either service ask.
    Either,
}

impl Road {
    /// Do the clients of this service lead there?
    pub(super) fn is_load_of(self, served: Served) -> bool {
        match self {
            Self::Pools => served == Served::Pools,
            Self::Gate => served == Served::Gate,
            Self::Either => true,
            Self::Start | Self::Sweep | Self::Credit | Self::Revoke | Self::LiveGate => false,
        }
    }
}

pub(super) const fn road_to(step: Step) -> Road {
    match step {
        Step::MigrationRun | Step::MigrationCommit | Step::OtherCommit => Road::Start,
        Step::SweepDelete | Step::SweepCommit => Road::Sweep,
        Step::DepositInsert | Step::CreditCommit => Road::Credit,
        Step::KeyRevoke | Step::KeyRevokeCommit => Road::Revoke,
        Step::QuoteInsert
        | Step::QuoteCommit
        | Step::QuoteReject
        | Step::RejectCommit
        | Step::EngineHold
        | Step::EngineConfirm
        | Step::EngineReport
        | Step::TransactLock
        | Step::TransactLoad
        | Step::TransactChecks
        | Step::QuoteConsume
        | Step::TradeInsert
        | Step::LedgerInsert
        | Step::BalanceUpdate
        | Step::IdempotencyInsert
        | Step::TransactCommit
        | Step::PollClaimCommit
        | Step::PollUnclaimCommit
        | Step::TradeApply
        | Step::EntryPost
        | Step::PollApplyCommit => Road::Pools,
        Step::EventInsert
        | Step::DeliveryInsert
        | Step::DeliveryClaimCommit
        | Step::WebhookPost
        | Step::DeliveryConcludeCommit
        | Step::AnswerWrite => Road::Either,
        Step::TallyPut => Road::LiveGate,
        Step::SessionInsert
        | Step::SessionApply
        | Step::TransactionInsert
        | Step::BrandingPut
        | Step::AnswerPut
        | Step::SessionCommit
        | Step::ActCommit
        | Step::ExpiryCommit
        | Step::BrandingCommit
        | Step::TestEventCommit
        | Step::ReplayCommit
        | Step::TransactionEnd
        | Step::PreviewInsert
        | Step::PreviewUse
        | Step::PreviewCommit
        | Step::CustomerInsert
        | Step::CustomerPut
        | Step::CustomerCommit
        | Step::SignedQuoteInsert
        | Step::SignedQuoteConsume
        | Step::SignedQuoteCommit
        | Step::RailInsert
        | Step::RedemptionCommit
        | Step::RailAsk
        | Step::RailClaimCommit
        | Step::RailApply
        | Step::RailApplyCommit => Road::Gate,
    }
}

/// Both points of each step that some roads lead to.
fn points_of(roads: impl Fn(Road) -> bool) -> Vec<(Step, String)> {
    let sides = [Side::Before, Side::After];
    let both = move |step: Step| sides.map(|side| (step, step.point(side)));
    let steps = Step::ALL.into_iter().filter(|step| roads(road_to(*step)));
    steps.flat_map(both).collect()
}

/// Which points, and where.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Chosen {
    /// How often each.
    #[arg(long, default_value_t = 1)]
    pub(crate) repeat: u64,
    /// Only those of this step, each once at its end.
    #[arg(long)]
    pub(crate) step: Option<String>,
    /// One in so many; the seed decides which.
    #[arg(long, default_value_t = 1)]
    pub(crate) part: u64,
    /// What the database is.
    #[arg(long, value_enum, default_value_t = Database::Embedded)]
    pub(crate) store: Database,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Database {
    Embedded,
    /// A private Postgres.
    Postgres,
}

impl Chosen {
    pub(crate) const fn one_in(part: u64, store: Database) -> Self {
        Self {
            repeat: 1,
            step: None,
            part,
            store,
        }
    }

    /// Of all these, what has its turn.
    pub(super) fn of<T>(&self, all: Vec<T>, seed: u64) -> Vec<T> {
        let part = self.part.max(1);
        let turns = all.into_iter().zip(seed..);
        let chosen = turns.filter(|(_, turn)| turn.is_multiple_of(part));
        chosen.map(|(one, _)| one).collect()
    }

    /// The manners of disturbing that have their turn: one at least.
    pub(super) fn manners(&self, seed: u64) -> Vec<&'static str> {
        let all = ["fail", "full", "panic", "wait 25"];
        let chosen = self.of(all.to_vec(), seed);
        match chosen.is_empty() {
            true => all
                .into_iter()
                .cycle()
                .skip(seed as usize % all.len())
                .take(1)
                .collect(),
            false => chosen,
        }
    }

    /// The points of steps on some roads that have their turn.
    pub(super) fn points(&self, roads: impl Fn(Road) -> bool, seed: u64) -> Vec<(Step, String)> {
        let mut all = points_of(roads);
        all.retain(|(step, _)| {
            let named = self
                .step
                .as_ref()
                .is_none_or(|name| *name == format!("{step:?}"));
            named && (self.store == Database::Embedded || !of_the_embedded_store(*step))
        });
        self.of(all, seed)
    }
}

/// Steps that the store on a server takes in one statement with others.
const fn of_the_embedded_store(step: Step) -> bool {
    matches!(
        step,
        Step::QuoteConsume | Step::LedgerInsert | Step::BalanceUpdate | Step::IdempotencyInsert
    )
}

/// Steps that a request's own task or its lane takes; a panic is contained there.
pub(super) fn of_a_handler(step: Step) -> bool {
    !matches!(
        step,
        Step::DeliveryClaimCommit
            | Step::WebhookPost
            | Step::DeliveryConcludeCommit
            | Step::AnswerWrite
    )
}

/// Steps that write to the disk.
pub(super) fn of_the_disk(step: Step) -> bool {
    !step.is_commit()
        && !matches!(
            step,
            Step::EngineHold
                | Step::EngineConfirm
                | Step::EngineReport
                | Step::WebhookPost
                | Step::AnswerWrite
                | Step::TransactChecks
        )
}

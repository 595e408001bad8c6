//! The one list of steps.

/// A step that a crash must not be able to break in two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The schema is brought up to date.
    MigrationRun,
    /// And that is committed.
    MigrationCommit,
    /// Quotes are written.
    QuoteInsert,
    /// Their commit.
    QuoteCommit,
    /// A quote is rejected.
    QuoteReject,
    /// That commit.
    RejectCommit,
    /// The engine is asked to hold.
    EngineHold,
    /// The engine is told that the trade stands.
    EngineConfirm,
    /// The engine is asked how a trade stands.
    EngineReport,
    /// A batch of transacts takes the write lock.
    TransactLock,
    /// Its books are read.
    TransactLoad,
    /// The rules judge it.
    TransactChecks,
    /// Quotes are marked consumed.
    QuoteConsume,
    /// Trades are written.
    TradeInsert,
    /// Their ledger entries are.
    LedgerInsert,
    /// Balances move.
    BalanceUpdate,
    /// Keys are recorded.
    IdempotencyInsert,
    /// The batch is committed.
    TransactCommit,
    /// A poll's intent is committed.
    PollClaimCommit,
    /// A poll that learnt nothing gives its lease back.
    PollUnclaimCommit,
    /// A trade changes its state under the lease's token.
    TradeApply,
    /// An entry is posted by a poll or a credit.
    EntryPost,
    /// An event is written.
    EventInsert,
    /// And its delivery.
    DeliveryInsert,
    /// What a poll has learnt is committed.
    PollApplyCommit,
    /// Deliveries are claimed.
    DeliveryClaimCommit,
    /// An event is posted: before its first byte, after the answer's status.
    WebhookPost,
    /// Attempts are recorded.
    DeliveryConcludeCommit,
    /// Old idempotency records are deleted.
    SweepDelete,
    /// That commit.
    SweepCommit,
    /// A key is revoked.
    KeyRevoke,
    /// That commit.
    KeyRevokeCommit,
    /// A deposit is recorded.
    DepositInsert,
    /// A credit is committed.
    CreditCommit,
    /// A session is written.
    SessionInsert,
    /// The month's live sessions are counted.
    TallyPut,
    /// A session ends.
    SessionApply,
    /// A payment of the sandbox is written.
    TransactionInsert,
    /// A payment that was under way ends.
    TransactionEnd,
    /// A locked preview is written.
    PreviewInsert,
    /// A session uses one up.
    PreviewUse,
    /// A customer is written.
    CustomerInsert,
    /// One changes, or is deleted.
    CustomerPut,
    /// A signed quote is written.
    SignedQuoteInsert,
    /// One is redeemed.
    SignedQuoteConsume,
    /// A pay-in or pay-out is written.
    RailInsert,
    /// It is noted when the rail is asked about one.
    RailAsk,
    /// What the rail has said moves it.
    RailApply,
    /// The branding changes.
    BrandingPut,
    /// An answer is kept for its repeats.
    AnswerPut,
    /// A create is committed.
    SessionCommit,
    /// A cancel, or the sandbox's end of a session, is.
    ActCommit,
    /// An expiry is, by whoever met it.
    ExpiryCommit,
    /// A change of branding is.
    BrandingCommit,
    /// A partner's test event is.
    TestEventCommit,
    /// A delivery that had been given up is queued again.
    ReplayCommit,
    /// A preview is committed.
    PreviewCommit,
    /// A customer's making, change or deletion is.
    CustomerCommit,
    /// A signed quote is.
    SignedQuoteCommit,
    /// A redemption is, with its pay-in or pay-out.
    RedemptionCommit,
    /// The intent to ask the rail is.
    RailClaimCommit,
    /// What the rail has said is.
    RailApplyCommit,
    /// Any other transaction of one command is committed.
    OtherCommit,
    /// An answer is written: before its first byte, after half of it.
    AnswerWrite,
}

/// Which side of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Nothing of it has happened.
    Before,
    /// All of it has.
    After,
}

impl Side {
    /// The point on this side of what is called so.
    #[must_use]
    pub fn of(self, name: &str) -> String {
        let side = match self {
            Self::Before => "before",
            Self::After => "after",
        };
        format!("{name}.{side}")
    }
}

impl Step {
    /// Every step, in the order of the life of a trade and of a session.
    pub const ALL: [Self; 64] = [
        Self::MigrationRun,
        Self::MigrationCommit,
        Self::QuoteInsert,
        Self::QuoteCommit,
        Self::QuoteReject,
        Self::RejectCommit,
        Self::EngineHold,
        Self::EngineConfirm,
        Self::EngineReport,
        Self::TransactLock,
        Self::TransactLoad,
        Self::TransactChecks,
        Self::QuoteConsume,
        Self::TradeInsert,
        Self::LedgerInsert,
        Self::BalanceUpdate,
        Self::IdempotencyInsert,
        Self::TransactCommit,
        Self::PollClaimCommit,
        Self::PollUnclaimCommit,
        Self::TradeApply,
        Self::EntryPost,
        Self::EventInsert,
        Self::DeliveryInsert,
        Self::PollApplyCommit,
        Self::DeliveryClaimCommit,
        Self::WebhookPost,
        Self::DeliveryConcludeCommit,
        Self::SweepDelete,
        Self::SweepCommit,
        Self::KeyRevoke,
        Self::KeyRevokeCommit,
        Self::DepositInsert,
        Self::CreditCommit,
        Self::SessionInsert,
        Self::TallyPut,
        Self::SessionApply,
        Self::TransactionInsert,
        Self::TransactionEnd,
        Self::PreviewInsert,
        Self::PreviewUse,
        Self::CustomerInsert,
        Self::CustomerPut,
        Self::SignedQuoteInsert,
        Self::SignedQuoteConsume,
        Self::RailInsert,
        Self::RailAsk,
        Self::RailApply,
        Self::BrandingPut,
        Self::AnswerPut,
        Self::SessionCommit,
        Self::ActCommit,
        Self::ExpiryCommit,
        Self::BrandingCommit,
        Self::TestEventCommit,
        Self::ReplayCommit,
        Self::PreviewCommit,
        Self::CustomerCommit,
        Self::SignedQuoteCommit,
        Self::RedemptionCommit,
        Self::RailClaimCommit,
        Self::RailApplyCommit,
        Self::OtherCommit,
        Self::AnswerWrite,
    ];

    /// The commit of a transaction, by the transaction's name.
    #[must_use]
    pub fn commit_of(transaction: &str) -> Self {
        match transaction {
            "quote_reject" => Self::RejectCommit,
            "trade_claim" => Self::PollClaimCommit,
            "trade_unclaim" => Self::PollUnclaimCommit,
            "trade_apply" => Self::PollApplyCommit,
            "deliveries_claim" => Self::DeliveryClaimCommit,
            "deliveries_conclude" => Self::DeliveryConcludeCommit,
            "idempotency_sweep" => Self::SweepCommit,
            "key_revoke" => Self::KeyRevokeCommit,
            "credit" => Self::CreditCommit,
            "session_create" => Self::SessionCommit,
            "session_cancel" => Self::ActCommit,
            "session_complete" => Self::ActCommit,
            "session_fail" => Self::ActCommit,
            "session_expire" => Self::ExpiryCommit,
            "sessions_expire" => Self::ExpiryCommit,
            "branding_update" => Self::BrandingCommit,
            "webhook_test" => Self::TestEventCommit,
            "delivery_replay" => Self::ReplayCommit,
            "quote_preview" => Self::PreviewCommit,
            "customer_create" => Self::CustomerCommit,
            "customer_update" => Self::CustomerCommit,
            "customer_delete" => Self::CustomerCommit,
            "signed_quote_lock" => Self::SignedQuoteCommit,
            "rail_create" => Self::RedemptionCommit,
            "rail_claim" => Self::RailClaimCommit,
            "rail_apply" => Self::RailApplyCommit,
            _ => Self::OtherCommit,
        }
    }

    /// The name of one of its two points: what a test arms.
    #[must_use]
    pub fn point(self, side: Side) -> String {
        side.of(&format!("{self:?}"))
    }

    /// Is it a commit, so that a fault leaves open whether it happened?
    #[must_use]
    pub const fn is_commit(self) -> bool {
        matches!(
            self,
            Self::MigrationCommit
                | Self::QuoteCommit
                | Self::RejectCommit
                | Self::TransactCommit
                | Self::PollClaimCommit
                | Self::PollUnclaimCommit
                | Self::PollApplyCommit
                | Self::DeliveryClaimCommit
                | Self::DeliveryConcludeCommit
                | Self::SweepCommit
                | Self::KeyRevokeCommit
                | Self::CreditCommit
                | Self::SessionCommit
                | Self::ActCommit
                | Self::ExpiryCommit
                | Self::BrandingCommit
                | Self::TestEventCommit
                | Self::ReplayCommit
                | Self::PreviewCommit
                | Self::CustomerCommit
                | Self::SignedQuoteCommit
                | Self::RedemptionCommit
                | Self::RailClaimCommit
                | Self::RailApplyCommit
                | Self::OtherCommit
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_point_has_a_name_of_its_own() {
        let sides = [Side::Before, Side::After];
        let names: BTreeSet<String> = Step::ALL
            .iter()
            .flat_map(|step| sides.map(|side| step.point(side)))
            .collect();
        assert_eq!(names.len(), Step::ALL.len() * 2);
        assert!(names.contains("TradeInsert.before"));
    }
}

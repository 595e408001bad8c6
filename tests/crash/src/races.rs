//! Counts overlapping operations that could harm each other if the service did not prevent it.

use std::collections::BTreeMap;
use std::fmt;

use crate::history::{Kind, Op, Outcome};

/// Two concurrent operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Race {
    /// R1.
    TwinsUnderOneKey,
    /// R2.
    TwinsUnderTwoKeys,
    /// R3: two executions, the second of which exceeds the balance.
    LastMoney,
    /// R4: two executions, the second of which exceeds the cap.
    LastOfTheCap,
    /// R5.
    TransactAndReject,
    /// R8.
    TransactAndCredit,
    /// R11; R12 and R13 if the trade is returned.
    TwoPolls,
    /// R14.
    PollAndRead,
    /// R16.
    CancelAndComplete,
    TwoCancels,
    TwoCompletes,
    /// R17: an end after the deadline, and a read.
    LateEndAndRead,
    /// R18; R19 if the bodies differ.
    TwoCreatesUnderOneKey,
    /// R24: two changes of the branding.
    TwoRebrands,
    /// R24: two renames of a customer, or a rename and a deletion.
    TwoRenames,
    RenameAndDismiss,
    /// Two customers with one email or one reference of the partner.
    OnePersonTwice,
    /// Two sessions with one locked preview.
    OnePreviewTwice,
    /// R25: two redemptions under two keys.
    OneQuoteTwice,
    /// Two payments in one widget under two keys.
    OnePaymentTwice,
    /// A payment in a widget, and a request for another quote of its session.
    PayAndQuote,
    /// A payment in a widget, and the redemption of a signed quote for its session.
    PayAndRedeem,
    /// A redemption for a session or its payment, and the end of that session.
    RedeemAndEnd,
    /// R29: two creates, the second of which exceeds the quota.
    LastOfTheQuota,
}

impl Race {
    pub(crate) const OF_POOLS: [Self; 8] = [
        Self::TwinsUnderOneKey,
        Self::TwinsUnderTwoKeys,
        Self::LastMoney,
        Self::LastOfTheCap,
        Self::TransactAndReject,
        Self::TransactAndCredit,
        Self::TwoPolls,
        Self::PollAndRead,
    ];

    /// The gate's races. Only live sessions have a quota.
    pub(crate) const OF_GATE: [Self; 16] = [
        Self::CancelAndComplete,
        Self::TwoCancels,
        Self::TwoCompletes,
        Self::LateEndAndRead,
        Self::TwoCreatesUnderOneKey,
        Self::TwoRebrands,
        Self::LastOfTheQuota,
        Self::TwoRenames,
        Self::RenameAndDismiss,
        Self::OnePersonTwice,
        Self::OnePreviewTwice,
        Self::OneQuoteTwice,
        Self::OnePaymentTwice,
        Self::PayAndQuote,
        Self::PayAndRedeem,
        Self::RedeemAndEnd,
    ];

    /// Classifies two concurrent operations of one partner.
    fn between(one: &Op, other: &Op) -> Option<Self> {
        let same = one.object.is_some() && one.object == other.object;
        let two = same && one.key != other.key;
        match (one.kind, other.kind) {
            (Kind::Transact, Kind::Transact) if same && one.key == other.key => {
                Some(Self::TwinsUnderOneKey)
            }
            (Kind::Transact, Kind::Transact) if same => Some(Self::TwinsUnderTwoKeys),
            (Kind::Transact, Kind::Transact) => Self::for_the_last(one, other),
            (Kind::Transact, Kind::Reject) if same => Some(Self::TransactAndReject),
            (Kind::Transact, Kind::Credit) => Some(Self::TransactAndCredit),
            (Kind::Poll, Kind::Poll) if same => Some(Self::TwoPolls),
            (Kind::Poll, Kind::ReadQuote | Kind::ReadTrade) if same => Some(Self::PollAndRead),
            (Kind::Create, Kind::Create) if same => Some(Self::TwoCreatesUnderOneKey),
            (Kind::Create, Kind::Create) => Self::for_the_last(one, other),
            (Kind::Rebrand, Kind::Rebrand) => Some(Self::TwoRebrands),
            (Kind::Rename, Kind::Rename) if same => Some(Self::TwoRenames),
            (Kind::Rename, Kind::Dismiss) if same => Some(Self::RenameAndDismiss),
            (Kind::Enrol, Kind::Enrol) if two => Some(Self::OnePersonTwice),
            (Kind::UsePreview, Kind::UsePreview) if two => Some(Self::OnePreviewTwice),
            (Kind::Redeem, Kind::Redeem) if two => Some(Self::OneQuoteTwice),
            (Kind::Pay, Kind::Pay) if two => Some(Self::OnePaymentTwice),
            (Kind::Pay, Kind::QuoteSession) if one.with == other.object => Some(Self::PayAndQuote),
            (Kind::Pay, Kind::Redeem) if one.with == other.with => Some(Self::PayAndRedeem),
            (Kind::Redeem | Kind::Pay, Kind::Cancel | Kind::Complete)
                if one.with == other.object =>
            {
                Some(Self::RedeemAndEnd)
            }
            (Kind::Cancel, Kind::Complete) if same => Some(Self::CancelAndComplete),
            (Kind::Cancel, Kind::Cancel) if same => Some(Self::TwoCancels),
            (Kind::Complete, Kind::Complete) if same => Some(Self::TwoCompletes),
            (Kind::Cancel | Kind::Complete, Kind::ReadSession) if same => {
                let expired = other.seen.as_deref() == Some("expired");
                (expired && one.outcome == Outcome::Fail).then_some(Self::LateEndAndRead)
            }
            _ => None,
        }
    }

    /// One of two executions of different quotes succeeded, and the other found the limit reached.
    fn for_the_last(one: &Op, other: &Op) -> Option<Self> {
        let through = |op: &Op| op.outcome == Outcome::Ok;
        let refused = |op: &Op| match op.said.as_ref()?.1.as_str() {
            "insufficient_balance" => Some(Self::LastMoney),
            "velocity_cap_exceeded" => Some(Self::LastOfTheCap),
            "quota_exhausted" => Some(Self::LastOfTheQuota),
            _ => None,
        };
        match (through(one), through(other)) {
            (true, false) => refused(other),
            (false, true) => refused(one),
            _ => None,
        }
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwinsUnderOneKey => "R1 two transacts under one key",
            Self::TwinsUnderTwoKeys => "R2 two transacts under two keys",
            Self::LastMoney => "R3 two transacts, money for one",
            Self::LastOfTheCap => "R4 two transacts, cap for one",
            Self::TransactAndReject => "R5 transact and reject",
            Self::TransactAndCredit => "R8 transact and credit",
            Self::TwoPolls => "R11 two polls",
            Self::PollAndRead => "R14 poll and read",
            Self::CancelAndComplete => "R16 cancel and complete",
            Self::TwoCancels => "R16 two cancels",
            Self::TwoCompletes => "R16 two completes",
            Self::LateEndAndRead => "R17 an end past expiry and a read",
            Self::TwoCreatesUnderOneKey => "R18, R19 two creates under one key",
            Self::TwoRebrands => "R24 two changes of branding",
            Self::TwoRenames => "R24 two changes of a customer",
            Self::RenameAndDismiss => "R24 a customer's change and deletion",
            Self::OnePersonTwice => "two customers, one email or name",
            Self::OnePreviewTwice => "two sessions, one preview",
            Self::OneQuoteTwice => "R25 two redemptions of one quote",
            Self::OnePaymentTwice => "two payments in one widget",
            Self::PayAndQuote => "a payment and a quote of its session",
            Self::PayAndRedeem => "a payment and a redemption",
            Self::RedeemAndEnd => "a redemption and its session's end",
            Self::LastOfTheQuota => "R29 two creates, quota for one",
        })
    }
}

/// Counts every pair of concurrent operations.
pub(crate) fn count(ops: &[Op], races: &mut BTreeMap<Race, u64>) {
    let mut by_partner: BTreeMap<&str, Vec<&Op>> = BTreeMap::new();
    for op in ops {
        by_partner.entry(&op.partner).or_default().push(op);
    }
    for ops in by_partner.values_mut() {
        ops.sort_by_key(|op| op.invoked);
        for (place, one) in ops.iter().enumerate() {
            let later = ops.iter().skip(place + 1);
            for other in later.take_while(|other| other.invoked < one.completed) {
                let race = Race::between(one, other).or_else(|| Race::between(other, one));
                if let Some(race) = race {
                    *races.entry(race).or_default() += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: Kind, object: &str, key: &str, span: (u64, u64), code: &str) -> Op {
        let outcome = match code {
            "" => Outcome::Ok,
            _ => Outcome::Fail,
        };
        Op {
            key: Some(key.to_owned()),
            outcome,
            said: Some((200, code.to_owned())),
            ..Op::succeeded(kind, object, span)
        }
    }

    #[test]
    fn overlapping_operations_are_counted_by_race() {
        let transact = |object, key, span, code| op(Kind::Transact, object, key, span, code);
        let mut races = BTreeMap::new();
        let ops = [
            transact("a", "k", (0, 10), ""),
            transact("a", "k", (5, 15), ""),
            transact("a", "l", (12, 20), ""),
            transact("b", "m", (18, 30), "insufficient_balance"),
            op(Kind::Reject, "b", "", (25, 40), "quote_consumed"),
            op(Kind::Poll, "b", "", (50, 60), ""),
            op(Kind::ReadTrade, "b", "", (51, 52), ""),
            op(Kind::Poll, "c", "", (53, 54), ""),
        ];
        count(&ops, &mut races);
        let wanted = [
            (Race::TwinsUnderOneKey, 1),
            (Race::TwinsUnderTwoKeys, 1),
            (Race::LastMoney, 1),
            (Race::TransactAndReject, 1),
            (Race::PollAndRead, 1),
        ];
        assert_eq!(races, BTreeMap::from(wanted));
    }

    #[test]
    fn payment_races_with_other_requests_about_its_session() {
        let pay = |key, span| Op {
            with: Some("gs".to_owned()),
            ..op(Kind::Pay, "q", key, span, "")
        };
        let redeem = |session: &str, span| Op {
            with: Some(session.to_owned()),
            ..op(Kind::Redeem, "r", "m", span, "")
        };
        let mut races = BTreeMap::new();
        let ops = [
            op(Kind::QuoteSession, "gs", "", (0, 10), ""),
            pay("k", (5, 15)),
            op(Kind::QuoteSession, "gs_2", "", (6, 8), ""),
            redeem("gs", (12, 20)),
            redeem("gs_2", (13, 14)),
            pay("l", (30, 40)),
            op(Kind::Cancel, "gs", "", (35, 36), ""),
        ];
        count(&ops, &mut races);
        let wanted = [
            (Race::PayAndQuote, 1),
            (Race::PayAndRedeem, 1),
            (Race::RedeemAndEnd, 1),
        ];
        assert_eq!(races, BTreeMap::from(wanted));
    }
}

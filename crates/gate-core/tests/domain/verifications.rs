//! Verifications: the complete state matrix, the rule that says when one is needed, and properties of histories.

use gate_core::amount::SessionAmount;
use gate_core::rail::PollLease;
use gate_core::session::SessionState;
use gate_core::verification::{
    Contradiction, Need, TestVerification, Verification, VerificationId, VerificationReport,
    VerificationRule, VerificationState, VerificationStatus, needed,
};
use kernel::{Amount, Asset, Mode, Timestamp, UpstreamName};
use proptest::prelude::*;

use crate::fixtures::{after, assert_documented, noon, session_at};

const ID: &str = "ver_test_01KSFVT4Z2V6B9C1D3F5G7H8JK";

fn verification(state: VerificationState) -> Verification {
    Verification {
        id: VerificationId::parse(ID).unwrap(),
        session: session_at(SessionState::Open).id,
        verifier: Some(UpstreamName::built_in("verifier-a")),
        state,
        reference: Some("case-1".to_owned()),
        created_at: noon(),
        asking: PollLease {
            attempts: 1,
            token: None,
            next_at: after(500),
        },
        trace_parent: None,
    }
}

fn rejection() -> VerificationReport {
    VerificationReport::Rejected {
        reason: Some("The name does not match.".to_owned()),
    }
}

fn rejected(at: Timestamp) -> VerificationState {
    VerificationState::Rejected {
        at,
        reason: Some("Too young.".to_owned()),
    }
}

fn amount(text: &str) -> SessionAmount {
    SessionAmount::parse(text).unwrap()
}

fn eur() -> Asset {
    Asset::fiat("EUR").unwrap()
}

/// The facts of a session in EUR whose user is unverified.
fn unverified(amount: &SessionAmount) -> Need<'_> {
    Need {
        amount,
        currency: eur(),
        kyc_pre_verified: false,
    }
}

// rule: gate.verification.states, gate.verification.contradiction
#[test]
fn verification_matrix_covers_every_report_and_state() {
    let at = after(1_000);
    let reports = [
        ("pending", VerificationReport::Pending),
        ("approved", VerificationReport::Approved),
        ("rejected", rejection()),
    ];
    let mut lines = vec![
        "| stored | report | next | user may pay |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    for state in [
        VerificationState::Required,
        VerificationState::Pending,
        VerificationState::Approved { at },
        rejected(at),
    ] {
        for (name, report) in &reports {
            let before = verification(state.clone());
            let (shown, next) = match before.advance(report, after(2_000)) {
                Ok(None) => ("stays", before),
                Err(_) => ("stays: a contradiction", before),
                Ok(Some(step)) => {
                    let next = before.after(step);
                    (next.state.status().as_str(), next)
                }
            };
            let pays = if next.state.status().allows_payment() {
                "yes"
            } else {
                "no"
            };
            let stored = state.status().as_str();
            lines.push(format!("| {stored} | {name} | {shown} | {pays} |"));
        }
    }
    let table = lines.join("\n");
    insta::assert_snapshot!("verification", table);
    assert_documented("verification", &table);
}

// rule: gate.verification.states
#[test]
fn rejection_keeps_its_reason_and_its_instant() {
    let before = verification(VerificationState::Pending);
    let step = before.advance(&rejection(), after(2_000)).unwrap().unwrap();
    let next = before.after(step);
    assert_eq!(next.state.reason(), Some("The name does not match."));
    assert_eq!(next.state.ended_at(), Some(after(2_000)));
    assert_eq!(next.updated_at(), after(2_000));
    assert_eq!(next.reference.as_deref(), Some("case-1"));
}

// rule: gate.verification.contradiction
#[test]
fn contradiction_names_the_end() {
    let approved = verification(VerificationState::Approved { at: noon() });
    let error = approved.advance(&rejection(), after(1)).unwrap_err();
    assert_eq!(error, Contradiction(VerificationStatus::Approved));
    let rejected = verification(rejected(noon()));
    let error = rejected.advance(&VerificationReport::Approved, after(1));
    assert_eq!(error, Err(Contradiction(VerificationStatus::Rejected)));
}

#[test]
fn poll_is_due_between_start_and_end() {
    let pending = verification(VerificationState::Pending);
    assert!(!pending.is_due(after(499)));
    assert!(pending.is_due(after(500)));
    assert_eq!(pending.updated_at(), noon());
    for state in [
        VerificationState::Required,
        VerificationState::Approved { at: noon() },
        rejected(noon()),
    ] {
        assert!(!verification(state).is_due(after(9_000)));
    }
}

// rule: gate.verification.states
#[test]
fn state_is_stored_with_exactly_its_facts() {
    let at = after(1_000);
    for state in [
        VerificationState::Required,
        VerificationState::Pending,
        VerificationState::Approved { at },
        rejected(at),
        VerificationState::Rejected { at, reason: None },
    ] {
        let reason = state.stored_reason();
        let read = VerificationState::stored(state.status(), state.ended_at(), reason);
        assert_eq!(read, Some(state));
    }
    let mut valid = 0;
    for status in VerificationStatus::ALL {
        for ended in [None, Some(at)] {
            for reason in [None, Some("Too young.")] {
                let state = VerificationState::stored(status, ended, reason);
                valid += usize::from(state.is_some());
                if let Some(state) = state {
                    let facts = (state.status(), state.ended_at(), state.reason());
                    assert_eq!(facts, (status, ended, reason));
                }
            }
        }
        assert_eq!(VerificationStatus::parse(status.as_str()), Some(status));
    }
    assert_eq!(valid, 4);
    assert_eq!(VerificationStatus::parse("Approved"), None);
}

// rule: gate.verification.test-amounts
#[test]
fn fraction_of_amount_chooses_verification_in_mode_test() {
    use TestVerification as T;
    for (text, expected) in [
        ("10.61", Some(T::Approved)),
        ("10.610", Some(T::Approved)),
        ("0.61000000", Some(T::Approved)),
        ("10.62", Some(T::Rejected)),
        ("10.62000", Some(T::Rejected)),
        ("10.63", Some(T::Delayed)),
        ("9999999999.63", Some(T::Delayed)),
        ("10.60", None),
        ("10.64", Some(T::Decided)),
        ("10.65", None),
        ("10.6", None),
        ("10.611", None),
        ("10.61000001", None),
        ("10.63999999", None),
        ("61.00", None),
        ("61", None),
        ("10.061", None),
    ] {
        let amount = amount(text);
        assert_eq!(TestVerification::of(&amount), expected, "{text}");
        for rule in [VerificationRule::Never, VerificationRule::Always] {
            let asked = needed(Mode::Test, &rule, &unverified(&amount));
            assert_eq!(asked, expected.is_some(), "{text}");
        }
    }
}

// rule: gate.verification.needed
#[test]
fn live_rule_decides_by_amount_and_currency() {
    let above = VerificationRule::Above(Amount::parse("150.00", eur()).unwrap());
    let usd = Asset::fiat("USD").unwrap();
    for (rule, text, currency, expected) in [
        (VerificationRule::Never, "10000", eur(), false),
        (VerificationRule::Never, "10.61", eur(), false),
        (VerificationRule::Always, "0.01", eur(), true),
        (above, "149.99", eur(), false),
        (above, "150", eur(), false),
        (above, "150.00000000", eur(), false),
        (above, "150.00000001", eur(), true),
        (above, "150.01", eur(), true),
        (above, "1.61", eur(), false),
        (above, "0.01", usd, true),
        (
            VerificationRule::Above(Amount::zero(eur())),
            "0.00000001",
            eur(),
            true,
        ),
    ] {
        let amount = amount(text);
        let facts = Need {
            currency,
            ..unverified(&amount)
        };
        assert_eq!(
            needed(Mode::Live, &rule, &facts),
            expected,
            "{rule:?} {text}"
        );
    }
}

// rule: gate.verification.needed
#[test]
fn verified_user_is_not_verified_again() {
    let amount = amount("1000.61");
    for mode in [Mode::Test, Mode::Live] {
        for kyc_pre_verified in [false, true] {
            let facts = Need {
                kyc_pre_verified,
                ..unverified(&amount)
            };
            let asked = needed(mode, &VerificationRule::Always, &facts);
            assert_eq!(asked, !kyc_pre_verified);
        }
    }
}

// rule: gate.verification.status, gate.verification.country-change
#[test]
fn shown_status_follows_state_and_without_one_the_need() {
    use VerificationStatus as S;
    let approved = VerificationState::Approved { at: noon() };
    for (needed, state, expected, pays) in [
        (false, None, S::NotRequired, true),
        (false, Some(VerificationState::Required), S::Required, false),
        (false, Some(VerificationState::Pending), S::Pending, false),
        (false, Some(approved.clone()), S::Approved, true),
        (false, Some(rejected(noon())), S::Rejected, false),
        (true, None, S::Required, false),
        (true, Some(VerificationState::Required), S::Required, false),
        (true, Some(VerificationState::Pending), S::Pending, false),
        (true, Some(approved), S::Approved, true),
        (true, Some(rejected(noon())), S::Rejected, false),
    ] {
        let shown = S::shown(needed, state.as_ref());
        assert_eq!(shown, expected, "{state:?}");
        assert_eq!(shown.allows_payment(), pays, "{state:?}");
    }
}

fn a_report() -> impl Strategy<Value = VerificationReport> {
    prop_oneof![
        3 => Just(VerificationReport::Pending),
        1 => Just(VerificationReport::Approved),
        1 => prop::option::of("[a-z]{1,8}").prop_map(|reason| VerificationReport::Rejected { reason }),
    ]
}

proptest! {
    // rule: gate.verification.states, gate.verification.contradiction
    #[test]
    fn verification_ends_once_by_the_first_decision(reports in prop::collection::vec(a_report(), 0..12)) {
        let mut current = verification(VerificationState::Required);
        let mut expected = VerificationState::Required;
        for (index, report) in reports.iter().enumerate() {
            let now = after(u64::try_from(index).unwrap() + 1);
            if expected.ended_at().is_none() {
                expected = match report {
                    VerificationReport::Pending => VerificationState::Pending,
                    VerificationReport::Approved => VerificationState::Approved { at: now },
                    VerificationReport::Rejected { reason } => {
                        VerificationState::Rejected { at: now, reason: reason.clone() }
                    }
                };
            }
            if let Ok(Some(step)) = current.advance(report, now) {
                current = current.after(step);
            }
            prop_assert_eq!(&current.state, &expected);
            // A repeated report neither changes nor contradicts anything that it has just decided.
            if current.state.ended_at() == Some(now) {
                prop_assert_eq!(current.advance(report, now), Ok(None));
            }
        }
    }

    // rule: gate.verification.needed
    #[test]
    fn need_grows_with_the_amount(low in 1..1_000_000_000_u64, more in 0..1_000_000_000_u64, limit in 0..1_000_000_000_u64) {
        let text = |units: u64| format!("{}.{:08}", units / 100_000_000, units % 100_000_000);
        let (low, high) = (amount(&text(low)), amount(&text(low + more)));
        let limit = limit / 1_000_000 * 1_000_000;
        let bound = Amount::from_units(i64::try_from(limit).unwrap(), eur()).unwrap();
        let rule = VerificationRule::Above(bound);
        let asked = |amount| needed(Mode::Live, &rule, &unverified(amount));
        prop_assert_eq!(asked(&low), low.units() > limit);
        prop_assert!(asked(&high) || !asked(&low));
    }
}

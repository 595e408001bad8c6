//! Rail records: the complete state matrix, and the checks of a redemption.

use gate_core::amount::SessionAmount;
use gate_core::pricing::{Fees, Priced};
use gate_core::rail::{
    FailureReason, Hosted, Mismatch, PollLease, RailId, RailKind, RailRecord, RailReport,
    RailState, RailStatus, RailStep, fits, user_is_approved,
};
use gate_core::session::{Flow, Session, SessionAction, SessionState, Terms};
use gate_core::signed_quote::{
    Conversion, Installation, Issue, Lifetime, QuoteTerms, SignedQuote, SignedQuoteId, Source,
};
use kernel::rates::Side;
use kernel::{Amount, Asset, Mode, Rate, Timestamp, UpstreamName};
use partner_core::sealing::{MasterKey, Sealer};
use partner_core::{PartnerId, Tenant};

use crate::fixtures::{DAY, after, assert_documented, noon, refid, session_at};

pub(crate) fn terms(kind: RailKind) -> QuoteTerms {
    let eur = |text| Amount::parse(text, Asset::fiat("EUR").unwrap()).unwrap();
    QuoteTerms {
        conversion: match kind {
            RailKind::PayIn => Conversion::ramp(Side::OnRamp, "sepa".to_owned()),
            RailKind::PayOut => Conversion::ramp(Side::OffRamp, "sepa".to_owned()),
            RailKind::Swap => Conversion::Swap(Source {
                amount: Amount::parse("99", Asset::crypto("USDC").unwrap()).unwrap(),
                network: "ethereum".to_owned(),
            }),
        },
        network: "tron".to_owned(),
        priced: Priced {
            rate: Rate::parse("1").unwrap(),
            fiat: eur("100.00"),
            crypto: Amount::parse("98.5", Asset::crypto("USDT").unwrap()).unwrap(),
            fees: Fees::of(eur("1.00"), eur("0.50")).unwrap(),
        },
    }
}

pub(crate) fn record((kind, hosted): (RailKind, bool), state: RailState) -> RailRecord {
    let id = match kind {
        RailKind::PayIn => "pi_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        RailKind::PayOut => "po_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
        RailKind::Swap => "sw_test_01KSFVT4Z2V6B9C1D3F5G7H8JK",
    };
    RailRecord {
        id: RailId::parse(kind, id).unwrap(),
        quote: SignedQuoteId::parse("qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap(),
        terms: terms(kind),
        session: session_at(SessionState::Open).id,
        refid: refid(),
        instructions: None,
        hosted: hosted.then_some(Hosted {
            wallet_address: None,
            payout: None,
            rail_events: true,
        }),
        rail: UpstreamName::built_in("rail-a"),
        created_at: noon(),
        pay_until: Some(noon().plus(DAY)),
        state,
        asking: PollLease {
            attempts: 1,
            token: None,
            next_at: noon(),
        },
        acknowledged_at: None,
        received: None,
        open_item: None,
        watch_at: None,
    }
}

/// Every report, with its name in the tables.
pub(crate) fn reports() -> [(&'static str, RailReport); 5] {
    [
        ("in progress", RailReport::InProgress),
        (
            "settled",
            RailReport::Settled {
                reference: Some("e2e-1".to_owned()),
            },
        ),
        (
            "failed",
            RailReport::Failed {
                code: "provider_declined".to_owned(),
                reason: None,
            },
        ),
        ("cancelled", RailReport::Cancelled),
        ("returned", RailReport::Returned),
    ]
}

pub(crate) fn failed(at: Timestamp) -> RailState {
    RailState::Failed {
        at,
        code: "provider_declined".to_owned(),
        reason: None,
    }
}

// rule: gate.rail.states, gate.rail.pay-out, gate.rail.hosted, gate.transaction.rail, gate.event.once
#[test]
fn rail_matrix_covers_every_report_state_and_kind() {
    let at = after(1_000);
    let reports = reports();
    let mut lines = vec![
        "| kind | stored | report | next | event | its transaction |".to_owned(),
        "| --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    let (pay_in, pay_out) = (RailKind::PayIn, RailKind::PayOut);
    // A hosted pay-in has the steps of every other pay-in.
    for (name, record_of) in [
        ("pay_in", (pay_in, false)),
        ("pay_out", (pay_out, false)),
        ("pay_out, hosted", (pay_out, true)),
        ("swap, hosted", (RailKind::Swap, true)),
    ] {
        for state in [
            RailState::Processing,
            RailState::Settled {
                at,
                reference: None,
            },
            failed(at),
            RailState::Cancelled { at },
        ] {
            if record_of == (pay_out, false) && matches!(state, RailState::Cancelled { .. }) {
                continue;
            }
            for (reported, report) in &reports {
                let before = record(record_of, state.clone());
                let shown = match before.advance(report, after(2_000)) {
                    Ok(None) => "stays | none | stays".to_owned(),
                    Err(_) => "stays: a contradiction | none | stays".to_owned(),
                    Ok(Some(step)) => {
                        let next = before.clone().after(step);
                        let transaction = next.transaction().state.status().as_str();
                        let status = next.state.status().as_str();
                        let event = next
                            .event()
                            .map_or("none".to_owned(), |kind| format!("`{kind}`"));
                        format!("{status} | {event} | {transaction}")
                    }
                };
                let stored = state.status().as_str();
                lines.push(format!("| {name} | {stored} | {reported} | {shown} |"));
            }
        }
    }
    let table = lines.join("\n");
    insta::assert_snapshot!("rail-record", table);
    assert_documented("rail record", &table);
}

// rule: gate.payment.events, gate.rail.completes, gate.session.one-payment, gate.session.payment-waits, gate.event.once
#[test]
fn payment_matrix_covers_every_report_and_instant_of_session() {
    let deadline = noon().plus(DAY).millis();
    let mut lines = vec![
        "| report | now | payment | its event | session | event of its end |".to_owned(),
        "| --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    let name = |event: Option<&str>| event.map_or("none".to_owned(), |kind| format!("`{kind}`"));
    let before = record((RailKind::PayIn, true), RailState::Processing);
    for (reported, report) in &reports() {
        for (instant, millis) in [("before `expires_at`", -1), ("from `expires_at` on", 0)] {
            let now = Timestamp::from_millis(deadline + millis).unwrap();
            let step = before.advance(report, now).unwrap();
            // The settlement ends the session, or the first action after the payment has ended without one.
            let settled = matches!(step, Some(RailStep(RailState::Settled { .. })));
            let session = Session {
                payment_in_progress: settled || step.is_none(),
                ..session_at(SessionState::Open)
            };
            let act = if settled {
                SessionAction::Settle(refid())
            } else {
                SessionAction::Touch
            };
            let moved = session.advance(act, now).step;
            let next = step.map(|step| before.clone().after(step));
            let payment = next
                .as_ref()
                .map_or("stays", |it| it.state.status().as_str());
            let event = name(next.as_ref().and_then(RailRecord::session_event));
            let ends = moved.map_or("stays", |step| step.state.status().as_str());
            let end = name(moved.map(|step| step.event.as_str()));
            lines.push(format!(
                "| {reported} | {instant} | {payment} | {event} | {ends} | {end} |"
            ));
        }
    }
    assert_documented("payment", &lines.join("\n"));
    assert_eq!(before.session_event(), Some("gate_session.processing"));
    let of_server = record((RailKind::PayIn, false), RailState::Processing);
    assert_eq!(of_server.session_event(), None);
}

// rule: gate.rail.states
#[test]
fn state_is_stored_with_exactly_its_facts() {
    let at = after(1_000);
    let facts = |state: &RailState| {
        let code = state.failure_code().map(str::to_owned);
        let reference = state.reference().map(str::to_owned);
        (code, state.failure_reason(), reference)
    };
    let mut valid = 0;
    for status in RailStatus::ALL {
        for ended in [None, Some(at)] {
            for code in [None, Some("account_closed")] {
                for reason in [None, Some(FailureReason::Expired)] {
                    for reference in [None, Some("e2e-1")] {
                        let given = (code, reason, reference);
                        let stored = RailState::stored(true, status, ended, given);
                        let Some(state) = stored else { continue };
                        valid += 1;
                        assert_eq!((state.status(), state.ended_at()), (status, ended));
                        let code = code.map(str::to_owned);
                        let reference = reference.map(str::to_owned);
                        assert_eq!(facts(&state), (code, reason, reference));
                    }
                }
            }
        }
    }
    // Processing, settled and failed with and without a reference or a reason, and cancelled.
    assert_eq!(valid, 6);
    let cancelled = RailState::stored(false, RailStatus::Cancelled, Some(at), (None, None, None));
    assert_eq!(cancelled, None);
}

// rule: gate.payment.deadline, time.deadline-exclusive
#[test]
fn record_is_overdue_from_its_deadline_on() {
    let record = record((RailKind::PayIn, true), RailState::Processing);
    let until = record.pay_until.unwrap();
    let before = Timestamp::from_millis(until.millis() - 1).unwrap();
    assert!(!record.is_overdue(before));
    assert!(record.is_overdue(until));
    let pay_out = RailRecord {
        pay_until: None,
        ..record
    };
    assert!(!pay_out.is_overdue(until));
}

// rule: gate.quote.status, gate.embed-quote.superseded, time.deadline-exclusive
#[test]
fn signed_quote_matrix_covers_every_state_and_instant() {
    let sealer = Sealer::new(&MasterKey::new([1; 32]));
    let tenant = Tenant {
        mode: Mode::Test,
        partner: PartnerId::parse("acme").unwrap(),
    };
    let issue = Issue {
        installation: &Installation("6f0c1b2a".repeat(4)),
        tenant: &tenant,
    };
    let lifetime = Lifetime {
        from: noon(),
        until: after(60_000),
    };
    let id = SignedQuoteId::parse("qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap();
    let session = Some(session_at(SessionState::Open).id);
    let open = SignedQuote::give(
        id,
        terms(RailKind::PayIn),
        session,
        lifetime,
        issue,
        &sealer,
    );
    let open = open.unwrap();
    let superseded = SignedQuote {
        superseded_at: Some(after(1_000)),
        ..open.clone()
    };
    let mut lines = vec![
        "| facts | now | status | pay |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    for (facts, quote) in [
        ("open", open.clone()),
        ("consumed", open.consumed(after(1_000))),
        ("superseded", superseded),
    ] {
        for (instant, millis) in [
            ("1 ms before `expires_at`", 59_999),
            ("at `expires_at`", 60_000),
            ("1 ms after `expires_at`", 60_001),
        ] {
            let status = quote.status(after(millis)).as_str();
            let pay = match quote.must_be_active(after(millis)) {
                Ok(()) => "→ consumed".to_owned(),
                Err(closed) => format!("refused: {closed}"),
            };
            lines.push(format!("| {facts} | {instant} | {status} | {pay} |"));
        }
    }
    assert_documented("signed quote", &lines.join("\n"));
}

// rule: gate.rail.approved
#[test]
fn live_user_requires_verification() {
    let mut session = session_at(SessionState::Open);
    assert!(user_is_approved(&session, Mode::Test));
    assert!(!user_is_approved(&session, Mode::Live));
    session.kyc_pre_verified = true;
    assert!(user_is_approved(&session, Mode::Live));
}

// rule: gate.rail.match, gate.rail.wrong-side
#[test]
fn only_fields_set_by_session_must_match() {
    let fit = |kind: RailKind, of: RailKind, change: fn(&mut Terms)| {
        let mut session = session_at(SessionState::Open);
        session.terms.flow = None;
        session.terms.target_token = None;
        session.terms.target_network = None;
        session.terms.currency = Asset::fiat("EUR").unwrap();
        session.terms.amount = SessionAmount::parse("100").unwrap();
        change(&mut session.terms);
        fits(kind, &session, &terms(of))
    };
    let (pay_in, pay_out) = (RailKind::PayIn, RailKind::PayOut);
    let swap = RailKind::Swap;
    assert_eq!(fit(swap, swap, |_| ()), Ok(()));
    for kind in [pay_in, pay_out] {
        assert_eq!(fit(kind, swap, |_| ()), Err(Mismatch("kind of rail")));
    }
    assert_eq!(fit(pay_in, pay_in, |_| ()), Ok(()));
    // On a sale the amount may be either leg, on a purchase only the fiat leg.
    assert_eq!(fit(pay_out, pay_out, |_| ()), Ok(()));
    let crypto: fn(&mut Terms) = |terms| terms.amount = SessionAmount::parse("98.50").unwrap();
    assert_eq!(fit(pay_out, pay_out, crypto), Ok(()));
    assert_eq!(fit(pay_in, pay_in, crypto), Err(Mismatch("amount")));
    assert_eq!(fit(pay_out, pay_in, |_| ()), Err(Mismatch("kind of rail")));
    let flow: fn(&mut Terms) = |terms| terms.flow = Some(Flow::Swap);
    assert_eq!(fit(pay_in, pay_in, flow), Err(Mismatch("flow")));
    let token: fn(&mut Terms) = |terms| terms.target_token = Some("USDC".to_owned());
    assert_eq!(fit(pay_in, pay_in, token), Err(Mismatch("token")));
    let network: fn(&mut Terms) = |terms| terms.target_network = Some("TRON".to_owned());
    assert_eq!(fit(pay_in, pay_in, network), Ok(()));
}

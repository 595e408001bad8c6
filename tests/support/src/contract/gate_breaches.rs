//! Planted breaches of the gate. The audit reports each under exactly its name.

use std::time::Duration;

use gate_core::branding::BrandingUpdate;
use gate_core::change::Change;
use gate_core::draft::Draft;
use gate_core::session::SessionId;
use gate_core::usecases::act_on_session::ActionRequest;
use kernel::Mode;
use partner_core::idempotency::{IdempotencyKey, Scope};
use partner_core::stored_response::place;
use partner_core::{PartnerId, Tenant};

use crate::contract::breaches::{Breach, CHECKED, update_of};
use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::{DAY, answer, draft, key};
use crate::contract::previews::agreeing;
use crate::contract::world::{MALFORMED, Seeded, World, sealer};

/// Sessions of every kind of one partner.
pub(crate) struct Rows {
    partner: String,
    open: SessionId,
    verified: SessionId,
    cancelled: SessionId,
    completed: SessionId,
    expired: SessionId,
    previewed: SessionId,
}

impl<F: GateFixture> World<F> {
    /// A partner with all these sessions, in both modes.
    async fn gated(&self, name: &str) -> Rows {
        let live = self.open_gate(name, Mode::Live, None).await;
        for number in 0..2 {
            live.opened(&format!("live-{number}"), draft("5")).await;
        }
        let gate = self.open_listening_gate(name).await;
        let expired = gate.opened("expired", draft("5")).await;
        self.clock().advance(DAY);
        gate.clone().act(expired, None, None).await.unwrap();
        let packed = Draft {
            kyc_package: Some("{\"name\":\"Ann\"}".to_owned()),
            ..draft("5")
        };
        let preview = self.locked(&gate.access.tenant).await;
        let rows = Rows {
            partner: name.to_owned(),
            open: gate.opened("open", draft("5")).await,
            verified: gate.opened("verified", packed).await,
            cancelled: gate.opened("cancelled", draft("5")).await,
            completed: gate.opened("completed", draft("5")).await,
            expired,
            previewed: gate.opened("previewed", agreeing(preview.id)).await,
        };
        self.clock().advance(Duration::from_secs(1));
        let failing = ActionRequest::Fail {
            code: None,
            message: None,
        };
        for (id, name, deed) in [
            (rows.open, "fail", failing),
            (rows.cancelled, "cancel", ActionRequest::Cancel),
            (rows.completed, "complete", ActionRequest::Complete),
        ] {
            let acting = gate.clone().act(id, Some(name), Some(deed));
            acting.await.unwrap();
        }
        let update = BrandingUpdate {
            brand_name: Change::Set("Acme".to_owned()),
            ..BrandingUpdate::default()
        };
        let render = |_: &_| Ok(answer("{}".to_owned()));
        let branding = &gate.rebranding;
        let key = Some(key("PATCH /v1/branding", "brand"));
        let rebranded = branding.update(&gate.access.tenant, key, &update, &render);
        rebranded.await.unwrap();
        rows
    }
}

fn update(rows: &Rows, table: &str, change: &str, row: &str) -> String {
    update_of(&rows.partner, table, change, row)
}

fn live(rows: &Rows, statement: &str) -> String {
    let partner = &rows.partner;
    format!("{statement} WHERE mode = 'live' AND partner_id = '{partner}'")
}

fn id(session: SessionId) -> String {
    format!("id = '{}'", session.ulid())
}

fn of(session: SessionId) -> String {
    format!("session_id = '{}'", session.ulid())
}

/// The event of a type about a session.
fn event(rows: &Rows, change: &str, session: SessionId, kind: &str) -> String {
    let row = format!("object_id = '{session}' AND type = 'gate_session.{kind}'");
    update(rows, "events", change, &row)
}

fn answered(rows: &Rows, change: &str, key: &str) -> String {
    update(rows, "answers", change, &format!("key = '{key}'"))
}

/// A response that is sealed for its scope and that no replay can read.
fn malformed(rows: &Rows, name: &str) -> String {
    let scope = Scope {
        tenant: Tenant {
            partner: PartnerId::parse(&rows.partner).unwrap(),
            mode: Mode::Test,
        },
        route: "POST /v1/gate_sessions".to_owned(),
        key: IdempotencyKey::parse(name.as_bytes()).unwrap(),
    };
    let sealed = sealer().seal(&place(&scope), MALFORMED, &Seeded::new(9));
    let digits: String = sealed
        .unwrap()
        .0
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("answer = unhex('{digits}')")
}

const EARLIER: &str = "created_at = created_at - 1";

const fn breach(invariant: &'static str, sql: fn(&Rows) -> String) -> Breach<Rows> {
    Breach::new(invariant, sql)
}

pub(crate) const BREACHES: &[Breach<Rows>] = &[
    breach("rows-refer-to-rows", |_| {
        "INSERT INTO branding (mode, partner_id, revision) VALUES ('test', 'nobody', 1)".to_owned()
    }),
    breach("rows-can-be-read", |rows| {
        update(rows, "sessions", "metadata = '['", &id(rows.open))
    }),
    breach("rows-can-be-read", |rows| {
        let short = "secret_hash = zeroblob(31)";
        update(rows, "sessions", short, &id(rows.open))
    })
    .with(CHECKED),
    breach("rows-can-be-read", |rows| {
        update(rows, "transactions", "action = 'gift'", &of(rows.open))
    })
    .with(CHECKED),
    breach("rows-can-be-read", |rows| {
        live(rows, "UPDATE session_tallies SET month = 'May'")
    }),
    breach("rows-can-be-read", |rows| {
        live(rows, "UPDATE gate_profiles SET allowed_domains = '[1]'")
    }),
    breach("session-says-it-was-made", |rows| {
        event(rows, EARLIER, rows.open, "created")
    }),
    breach("session-says-it-was-made", |rows| {
        event(rows, EARLIER, rows.verified, "kyc_package_accepted")
    }),
    breach("session-says-it-was-made", |rows| {
        let trusted = "kyc_pre_verified = TRUE, kyc_package = zeroblob(80)";
        update(rows, "sessions", trusted, &id(rows.open))
    })
    .with(&["kyc-package-can-be-opened"]),
    breach("ended-session-has-one-event", |rows| {
        event(rows, EARLIER, rows.cancelled, "cancelled")
    }),
    breach("ended-session-has-one-event", |rows| {
        let ended = "status = 'cancelled', cancelled_at = created_at";
        update(rows, "sessions", ended, &id(rows.verified))
    }),
    breach("event-has-its-session", |rows| {
        let again = "status = 'open', expired_at = NULL";
        update(rows, "sessions", again, &id(rows.expired))
    }),
    breach("event-has-its-session", |rows| {
        let untrusted = "kyc_pre_verified = FALSE, kyc_package = NULL";
        update(rows, "sessions", untrusted, &id(rows.verified))
    })
    .with(&["session-says-it-was-made"]),
    breach("completed-session-has-its-transaction", |rows| {
        let another = "transaction_id = '00000000000P1ANTED00000000'";
        update(rows, "sessions", another, &id(rows.completed))
    }),
    breach("completed-session-has-its-transaction", |rows| {
        let later = "completed_at = completed_at + 1";
        update(rows, "transactions", later, &of(rows.completed))
    }),
    breach("completed-session-has-its-transaction", |rows| {
        let paid = "status = 'completed', completed_at = created_at";
        update(rows, "transactions", paid, &of(rows.open))
    })
    // The failed payment has a stored response.
    .with(&["answer-is-of-what-was-done"]),
    breach("transaction-has-its-sessions-terms", |rows| {
        update(rows, "transactions", "currency = 'USD'", &of(rows.open))
    }),
    breach("transaction-has-its-sessions-terms", |rows| {
        update(rows, "transactions", "fiat_amount = '6'", &of(rows.open))
    }),
    breach("transaction-has-its-sessions-terms", |rows| {
        let token = "target_token = 'USDT'";
        update(rows, "sessions", token, &id(rows.completed))
    }),
    breach("used-preview-is-its-sessions", |rows| {
        update(rows, "sessions", "amount = '100.2'", &id(rows.previewed))
    }),
    breach("used-preview-is-its-sessions", |rows| {
        update(rows, "sessions", "flow = NULL", &id(rows.previewed))
    }),
    breach("used-preview-is-its-sessions", |rows| {
        let other = "currency = 'USD'";
        update(rows, "quote_previews", other, &of(rows.previewed))
    }),
    breach("used-preview-is-its-sessions", |rows| {
        let other = "asset = 'USDC'";
        update(rows, "quote_previews", other, &of(rows.previewed))
    }),
    breach("tally-counts-live-sessions", |rows| {
        live(rows, "UPDATE session_tallies SET created = created + 1")
    }),
    breach("tally-counts-live-sessions", |rows| {
        live(rows, "UPDATE session_tallies SET month = '1999-12'")
    }),
    breach("tally-counts-live-sessions", |rows| {
        live(rows, "DELETE FROM session_tallies")
    }),
    breach("tally-counts-live-sessions", |rows| {
        let partner = &rows.partner;
        format!("INSERT INTO session_tallies VALUES ('test', '{partner}', '2026-05', 1)")
    }),
    breach("answer-is-of-what-was-done", |rows| {
        answered(rows, EARLIER, "open")
    }),
    breach("answer-is-of-what-was-done", |rows| {
        answered(rows, EARLIER, "cancel")
    }),
    breach("answer-is-of-what-was-done", |rows| {
        answered(rows, EARLIER, "complete")
    }),
    breach("answer-is-of-what-was-done", |rows| {
        answered(rows, EARLIER, "fail")
    }),
    breach("answer-is-of-what-was-done", |rows| {
        let partner = &rows.partner;
        format!("DELETE FROM branding WHERE mode = 'test' AND partner_id = '{partner}'")
    }),
    breach("answer-can-be-opened", |rows| {
        answered(rows, "answer = zeroblob(80)", "open")
    }),
    // The response is sealed for its original key.
    breach("answer-can-be-opened", |rows| {
        answered(rows, "key = 'another'", "open")
    }),
    breach("answer-can-be-opened", |rows| {
        answered(rows, &malformed(rows, "open"), "open")
    }),
    breach("kyc-package-can-be-opened", |rows| {
        let other = "kyc_package = zeroblob(80)";
        update(rows, "sessions", other, &id(rows.verified))
    }),
    breach("event-body-is-of-its-event", |rows| {
        event(rows, "body = zeroblob(80)", rows.open, "created")
    }),
    breach("rows-stay-in-their-mode", |rows| {
        let row = format!("object_id = '{}'", rows.open);
        update(rows, "deliveries", "object_id = 'gs_live_planted'", &row)
    })
    .with(&["delivery-is-of-its-event"]),
    breach("database-is-whole", |rows| {
        let late = "expires_at = created_at - 1";
        update(rows, "sessions", late, &id(rows.verified))
    }),
];

// rule: cli.verify
pub async fn every_gate_breach_is_reported_by_name(world: World<impl GateFixture>) {
    let victim = async |name: String| world.gated(&name).await;
    world.assert_found(BREACHES, victim).await;
}

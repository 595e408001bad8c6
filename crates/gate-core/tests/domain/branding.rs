//! Updating the branding, and sending a test event.

use gate_core::branding::{Branding, BrandingInputError, BrandingUpdate};
use gate_core::change::Change;
use gate_core::usecases::send_test_event::TestSendError;
use gate_core::usecases::update_branding::RebrandError;
use partner_core::stored_response::{IdempotentResponse, RenderError, RenderedResponse};

use crate::fixtures::{Gate, acme, key, ready};

fn shown(branding: &Branding) -> Result<RenderedResponse, RenderError> {
    Ok(RenderedResponse(format!("{branding:?}").into_bytes()))
}

fn color(at: usize, value: &str) -> BrandingUpdate {
    let mut update = BrandingUpdate::default();
    let slot = [
        &mut update.primary_color,
        &mut update.secondary_color,
        &mut update.accent_color,
    ];
    *slot.into_iter().nth(at).unwrap() = Change::Set(value.to_owned());
    update
}

fn update(
    gate: &Gate,
    name: Option<&str>,
    update: &BrandingUpdate,
) -> Result<IdempotentResponse, RebrandError> {
    let name = name.map(|name| key("PATCH /v1/branding", name));
    ready(gate.rebranding.update(&acme().tenant, name, update, &shown))
}

// rule: gate.branding.fields, gate.branding.merge, idempotency.gate-optional
#[test]
fn update_merges_and_is_replayed_under_its_key() {
    let gate = Gate::new(&[acme()]);
    let read = || ready(gate.reading.branding(&acme().tenant)).unwrap();
    assert_eq!(read(), Branding::default());
    let first = update(&gate, Some("a"), &color(0, "#111111"))
        .unwrap()
        .into_rendered();
    update(&gate, None, &color(1, "#222222")).unwrap();
    let again = update(&gate, Some("a"), &color(0, "#333333")).unwrap();
    assert_eq!(
        again,
        IdempotentResponse::Replayed {
            response: first,
            same_request: false
        }
    );
    let expected = Branding {
        primary_color: Some("#111111".to_owned()),
        secondary_color: Some("#222222".to_owned()),
        revision: 2,
        ..Branding::default()
    };
    assert_eq!(read(), expected);
}

// rule: gate.branding.no-lost-update
#[test]
fn concurrent_updates_keep_every_field() {
    let gate = Gate::new(&[acme()]);
    std::thread::scope(|scope| {
        for at in 0..3 {
            let gate = &gate;
            scope.spawn(move || update(gate, None, &color(at, "#abcdef")).unwrap());
        }
    });
    let branding = ready(gate.reading.branding(&acme().tenant)).unwrap();
    let colors = [
        branding.primary_color,
        branding.secondary_color,
        branding.accent_color,
    ];
    assert_eq!(colors, [(); 3].map(|()| Some("#abcdef".to_owned())));
}

// rule: gate.branding.rules, idempotency.only-success
#[test]
fn invalid_field_changes_nothing_and_leaves_key_unused() {
    let gate = Gate::new(&[acme()]);
    let refused = update(&gate, Some("a"), &color(2, "red"));
    let fault = BrandingInputError::Color("accent_color");
    assert!(matches!(refused, Err(RebrandError::Field(it)) if it == fault));
    assert!(matches!(
        update(&gate, Some("a"), &color(2, "#00ff00")),
        Ok(IdempotentResponse::First(_))
    ));
}

// rule: gate.webhook-tools.test
#[test]
fn test_event_requires_endpoint() {
    let gate = Gate::new(&[acme()]);
    let who = acme().tenant;
    let refused = ready(gate.test_sending.send(&who));
    assert!(matches!(refused, Err(TestSendError::NotConfigured)));
    assert!(gate.memory.rows().events.is_empty());
    gate.memory.rows().endpoints.insert(who.clone());
    let view = ready(gate.test_sending.send(&who)).unwrap();
    assert_eq!(view.event_kind, "webhook.test");
    let rows = gate.memory.rows();
    let event = &rows.events[0];
    assert_eq!(
        (&event.id, &event.object_id),
        (&view.record.event_id, &view.record.event_id)
    );
    let place = partner_core::events::event_place(&who, &event.id);
    let body = String::from_utf8(gate.sealer.open(&place, &event.body).unwrap()).unwrap();
    assert!(body.ends_with("\"data\":\"Endpoint\"}"), "{body}");
}

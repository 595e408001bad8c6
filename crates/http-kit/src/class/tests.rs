//! Tests of the proofs. `tests/acceptance` tests the checks themselves, on every operation.

use axum::body::Body;
use kernel::Id;
use partner_core::key::KeyRecord;
use partner_core::{Partner, PartnerId, PartnerStatus};

use super::*;

#[derive(Debug, Clone)]
struct Product;

impl Profile for Product {
    type Listing = [u8];
    const LISTING: &'static str = "things";
}

fn access() -> Arc<Access<Product>> {
    let key = KeyRecord {
        id: Id::from_parts(Mode::Test, ulid::Ulid::from_parts(1, 1)),
        kind: KeyKind::Secret,
        prefix: String::new(),
        last4: String::new(),
        generated: true,
        created_at: Timestamp::from_millis(0).unwrap(),
        revoked_at: None,
        label: None,
        expires_at: None,
    };
    let partner = Partner {
        id: PartnerId::parse("acme").unwrap(),
        name: "Acme".to_owned(),
        status: PartnerStatus::Active,
    };
    Arc::new(Access::new(Mode::Test, key, partner, Product))
}

#[tokio::test]
async fn handler_in_wrong_class_fails() {
    let (mut parts, _) = Request::new(Body::empty()).into_parts();
    parts.extensions.insert(Proof {
        class: Class::Secret,
        access: access(),
    });
    let proven = Secret::<Product>::from_request_parts(&mut parts, &()).await;
    assert_eq!(proven.unwrap().tenant().partner.as_str(), "acme");
    let astray = Entitled::<Product>::from_request_parts(&mut parts, &()).await;
    let error = astray.unwrap_err();
    assert_eq!(
        (error.status().as_u16(), error.code()),
        (500, "internal_error")
    );
}

//! Writes: object, key and bytes of each.

use std::fmt;

use serde_json::json;
use test_support::time;

use super::book::Order;
use super::{SHOP, Shop};
use crate::caller::{Begun, number};
use crate::history::Kind;
use crate::http::request;
use crate::orders::Side;
use crate::receiver::hmac_sha256;

/// The address that receives the crypto of a purchase.
const WALLET: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";

/// A write that is about to be sent.
#[derive(Clone)]
pub(crate) struct Writing {
    pub(super) kind: Kind,
    /// The object: a shared one, or the key of what is created.
    pub(super) object: String,
    /// The second object: the session that a quote is redeemed for, or that it pays.
    pub(super) with: Option<String>,
    pub(super) key: Option<String>,
    pub(super) bytes: Vec<u8>,
}

/// Omits the bytes, which do not help a reader of a breach.
impl fmt::Debug for Writing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            object,
            with,
            key,
            ..
        } = self;
        write!(f, "{kind:?} of {object} with {with:?} under {key:?}")
    }
}

impl Writing {
    /// A write whose object is named by the key.
    fn making(kind: Kind, shop: &Shop, path: &str, key: &str, body: &str) -> Self {
        Self::under(
            kind,
            key,
            key,
            request(&shop.key, "POST", path, &keyed(key), body),
        )
    }

    fn under(kind: Kind, object: &str, key: &str, bytes: Vec<u8>) -> Self {
        Self {
            kind,
            object: object.to_owned(),
            with: None,
            key: Some(key.to_owned()),
            bytes,
        }
    }

    /// Creates a session.
    pub(super) fn create(shop: &Shop, key: &str, chance: &mut fastrand::Rng) -> Self {
        let (units, hundredths) = (chance.u32(1..1_000), chance.u8(0..100));
        let flow = chance.choice(["null", "\"on_ramp\"", "\"swap\""]);
        let body = format!(
            "{{\"amount\":\"{units}.{hundredths:02}\",\"currency\":\"EUR\",\"return_url\":\"{SHOP}/done\",\
             \"flow\":{},\"metadata\":{{\"order\":{units}.10}}}}",
            flow.unwrap_or("null")
        );
        Self::making(Kind::Create, shop, "/gate_sessions", key, &body)
    }

    /// Creates a session that fits a quote for this order.
    pub(super) fn payer(shop: &Shop, order: &Order) -> Self {
        let key = format!("payer-{}", number());
        let body = session_of(shop, order).to_string();
        Self::making(Kind::Create, shop, "/gate_sessions", &key, &body)
    }

    /// Creates a session that uses a locked preview of this order.
    pub(super) fn use_up(shop: &Shop, preview: &str, order: &Order) -> Self {
        let key = format!("use-{}", number());
        let mut body = session_of(shop, order);
        if let Some(fields) = body.as_object_mut() {
            fields.insert("quote_preview_id".to_owned(), json!(preview));
        }
        let bytes = request(
            &shop.key,
            "POST",
            "/gate_sessions",
            &keyed(&key),
            &body.to_string(),
        );
        Self::under(Kind::UsePreview, preview, &key, bytes)
    }

    /// Acts on a session under the action's shared key, a key of its own, or no key.
    pub(super) fn act(shop: &Shop, kind: Kind, id: &str, chance: &mut fastrand::Rng) -> Self {
        let key = match chance.u8(0..10) {
            0..=4 => Some(everybodys(kind, id)),
            5..=7 => Some(format!("act-{}", number())),
            _ => None,
        };
        Self::of_session(shop, kind, id, key)
    }

    pub(super) fn of_session(shop: &Shop, kind: Kind, id: &str, key: Option<String>) -> Self {
        let path = match kind {
            Kind::Complete => format!("/test_helpers/sessions/{id}/complete"),
            Kind::Fail => format!("/test_helpers/sessions/{id}/fail"),
            _ => format!("/gate_sessions/{id}/cancel"),
        };
        let header = key.as_deref().map(keyed).unwrap_or_default();
        Self {
            kind,
            object: id.to_owned(),
            with: None,
            key,
            bytes: request(&shop.key, "POST", &path, &header, ""),
        }
    }

    /// Changes the branding. Each change has a key of its own, and the name is the key.
    pub(super) fn rebrand(shop: &Shop) -> Self {
        let key = format!("brand-{}", number());
        let body = json!({ "brand_name": key }).to_string();
        let bytes = request(&shop.key, "PATCH", "/branding", &keyed(&key), &body);
        Self::under(Kind::Rebrand, &brand(shop), &key, bytes)
    }

    /// Creates a customer whose first name is the key. Creates for the same person conflict: half of the persons by the email, in
    /// any case, the others by the partner's reference.
    pub(super) fn enrol(shop: &Shop, person: u64, chance: &mut fastrand::Rng) -> Self {
        let key = format!("enrol-{}", number());
        let (email, external_id) = match person.is_multiple_of(2) {
            true => (format!("p{person}@shop.example"), key.clone()),
            false => (format!("{key}@shop.example"), format!("p{person}")),
        };
        let email = match chance.bool() {
            true => email.to_uppercase(),
            false => email,
        };
        let body = json!({ "email": email, "external_id": external_id, "first_name": key });
        let bytes = request(
            &shop.key,
            "POST",
            "/customers",
            &keyed(&key),
            &body.to_string(),
        );
        Self::under(Kind::Enrol, &format!("person-{person}"), &key, bytes)
    }

    /// Renames a customer. Each change has a key of its own, and the name is the key.
    pub(super) fn rename(shop: &Shop, customer: &str) -> Self {
        let key = format!("name-{}", number());
        let body = json!({ "first_name": key }).to_string();
        let path = format!("/customers/{customer}");
        let bytes = request(&shop.key, "PATCH", &path, &keyed(&key), &body);
        Self::under(Kind::Rename, customer, &key, bytes)
    }

    /// Deletes a customer, under the shared key or a key of its own.
    pub(super) fn dismiss(shop: &Shop, customer: &str, chance: &mut fastrand::Rng) -> Self {
        let key = match chance.bool() {
            true => everybodys(Kind::Dismiss, customer),
            false => format!("dismiss-{}", number()),
        };
        let path = format!("/customers/{customer}");
        let bytes = request(&shop.key, "DELETE", &path, &keyed(&key), "");
        Self::under(Kind::Dismiss, customer, &key, bytes)
    }

    /// Creates a signed quote.
    pub(super) fn lock(shop: &Shop, order: &Order) -> Self {
        let key = format!("lock-{}", number());
        let body = order.asked_with("sepa").to_string();
        Self::making(Kind::Lock, shop, "/quotes", &key, &body)
    }

    /// Redeems a quote under a key.
    pub(super) fn redeem(shop: &Shop, side: Side, quote: &str, session: &str, key: &str) -> Self {
        let path = match side {
            Side::Purchase => "/rails/pay_ins",
            Side::Sale => "/rails/pay_outs",
        };
        let body = json!({ "quote_id": quote, "session_id": session }).to_string();
        let bytes = request(&shop.key, "POST", path, &keyed(key), &body);
        Self {
            with: Some(session.to_owned()),
            ..Self::under(Kind::Redeem, quote, key, bytes)
        }
    }

    /// Pays the session of a widget with a quote, under a key of its own.
    pub(super) fn pay(shop: &Shop, widget: &Widget, quote: &str) -> Self {
        let key = format!("pay-{}", number());
        let body = match widget.order.side {
            Side::Purchase => json!({ "quote_id": quote, "wallet_address": WALLET }),
            Side::Sale => json!({
                "quote_id": quote,
                "payout": { "iban": "DE89370400440532013000", "account_holder": "Erika Mustermann" },
            }),
        };
        let bytes = widget.call(shop, "/embed/payments", &keyed(&key), &body.to_string());
        Self {
            with: Some(widget.session.clone()),
            ..Self::under(Kind::Pay, quote, &key, bytes)
        }
    }

    /// Cancels the session of a widget, as its user does. The call has no key.
    pub(super) fn cancel_by_user(shop: &Shop, widget: &Widget) -> Self {
        Self {
            kind: Kind::Cancel,
            object: widget.session.clone(),
            with: None,
            key: None,
            bytes: widget.call(shop, "/embed/cancel", "", ""),
        }
    }

    /// The write as an operation that starts now.
    pub(super) fn begun(&self, shop: &Shop) -> Begun {
        Begun {
            key: self.key.clone(),
            with: self.with.clone(),
            ..Begun::now(self.kind, &shop.name, Some(&self.object))
        }
    }
}

/// A widget of a session.
#[derive(Debug)]
pub(super) struct Widget {
    pub(super) session: String,
    pub(super) order: Order,
    pub(super) token: String,
}

impl Widget {
    /// Renders a call with the widget's token.
    pub(super) fn call(&self, shop: &Shop, path: &str, headers: &str, body: &str) -> Vec<u8> {
        let headers = format!("X-Embed-Token: {}\r\n{headers}", self.token);
        request(&shop.publishable, "POST", path, &headers, body)
    }

    /// Renders the request for a quote.
    pub(super) fn quote(&self, shop: &Shop) -> Vec<u8> {
        let side = self.order.side_word();
        let body = match self.order.swaps {
            true => json!({
                "side": side, "source_asset": "USDC", "source_network": "ethereum", "asset": "USDT", "network": "tron",
            }),
            false => json!({
                "side": side, "asset": "USDT", "network": "tron", "payment_method": "sepa",
            }),
        };
        self.call(shop, "/embed/quotes", "", &body.to_string())
    }

    /// The id of a payment at its rail.
    pub(super) fn rail_id(&self, payment: &str) -> String {
        payment.replacen("pay_", self.order.rail_prefix(), 1)
    }

    /// Renders the cancellation of a payment.
    pub(super) fn cancel(&self, shop: &Shop, payment: &str) -> Vec<u8> {
        let path = format!("/embed/payments/{payment}/cancel");
        self.call(shop, &path, "", "")
    }
}

/// Renders a notification of a payment, signed with the secret of a rail. `None` if it cannot be signed.
pub(super) fn notification(secret: &str, id: &str) -> Option<Vec<u8>> {
    let body = json!({ "id": id }).to_string();
    let at = time::unix();
    let signature = hmac_sha256(secret.as_bytes(), format!("{at}.{body}").as_bytes()).ok()?;
    let header = format!("Rail-Signature: t={at},v1={}\r\n", hex::encode(signature));
    Some(request(
        "none",
        "POST",
        "/rail_notifications",
        &header,
        &body,
    ))
}

/// A session with an order's terms.
fn session_of(shop: &Shop, order: &Order) -> serde_json::Value {
    let is_vouched_for = shop.vouches && !order.is_verified();
    json!({
        "kyc_package": is_vouched_for.then(|| json!({ "level": 2 })),
        "amount": order.amount,
        "currency": "EUR",
        "return_url": format!("{SHOP}/done"),
        "flow": order.side_word(),
        "target_token": "USDT",
    })
}

/// The key that all clients share for an action on an object.
pub(super) fn everybodys(kind: Kind, id: &str) -> String {
    format!("{kind:?}-{id}")
}

/// The name of a partner's branding among the objects of operations.
pub(super) fn brand(shop: &Shop) -> String {
    format!("the branding of {}", shop.name)
}

pub(super) fn keyed(key: &str) -> String {
    format!("Idempotency-Key: {key}\r\n")
}

//! Signatures of deliveries in two schemes over the same bytes, so that libraries for either scheme
//! verify them.
//!
//! `Pools-Signature` and `Gate-Signature` have the form `t=<unix seconds>,v1=<hex>`: lowercase hex of
//! HMAC-SHA256 over `<t>.<body>`, whose key is the whole text of the secret. The Standard Webhooks
//! headers sign `<id>.<t>.<body>` with the bytes that the secret encodes, in base64.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use kernel::Timestamp;
use secrecy::{ExposeSecret, SecretBox, SecretString};
use sha2::Sha256;

use crate::events::Service;
use crate::sealing::keyed;

/// A header's name and value.
pub type Header = (&'static str, String);

/// The maximum difference between a delivery's timestamp and the receiver's clock.
pub const TOLERANCE: Duration = Duration::from_secs(300);

/// The secret that signs deliveries: `whsec_` and the base64 of 32 bytes.
pub struct SigningSecret {
    text: SecretString,
    bytes: SecretBox<[u8; 32]>,
}

impl SigningSecret {
    /// Parses the text of a secret.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let decoded = STANDARD.decode(text.strip_prefix("whsec_")?).ok()?;
        let bytes: [u8; 32] = decoded.try_into().ok()?;
        Some(Self {
            text: SecretString::from(text),
            bytes: SecretBox::new(Box::new(bytes)),
        })
    }
}

kernel::debug_as_text!(SigningSecret, "SigningSecret");

/// The content that a signature covers.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    /// The service of the event, which determines the name of the header.
    pub service: Service,
    /// The event's id.
    pub event_id: &'m str,
    /// The bytes that are sent.
    pub body: &'m [u8],
}

impl Message<'_> {
    /// The headers of an attempt at this instant, with one signature for each secret. The newest secret
    /// comes first and the oldest last, because some clients read only the last signature.
    #[must_use]
    pub fn sign(&self, secrets: &[SigningSecret], now: Timestamp) -> [Header; 4] {
        let time = now.seconds();
        let mut ours = format!("t={time}");
        let mut standard = Vec::new();
        for secret in secrets {
            ours.push_str(",v1=");
            let mac = plain(secret.text.expose_secret().as_bytes(), time, self.body);
            ours.push_str(&hex::encode(mac.finalize().into_bytes()));
            let mac = self.standard(secret, time).finalize().into_bytes();
            standard.push(format!("v1,{}", STANDARD.encode(mac)));
        }
        [
            (header_of(self.service), ours),
            ("webhook-id", self.event_id.to_owned()),
            ("webhook-timestamp", time.to_string()),
            ("webhook-signature", standard.join(" ")),
        ]
    }

    /// Whether a `Pools-Signature` or `Gate-Signature` proves that the holder of the secret sent this
    /// body within five minutes of now.
    #[must_use]
    pub fn verify(&self, header: &str, secret: &SigningSecret, now: Timestamp) -> bool {
        let key = secret.text.expose_secret().as_bytes();
        Timed::read(header).is_some_and(|timed| {
            is_recent(timed.time, now) && timed.proves(plain(key, timed.time, self.body))
        })
    }

    /// Whether the headers of Standard Webhooks, `webhook-timestamp` and `webhook-signature`, prove the
    /// same.
    #[must_use]
    pub fn verify_standard(
        &self,
        timestamp: &str,
        signatures: &str,
        secret: &SigningSecret,
        now: Timestamp,
    ) -> bool {
        let Some(time) = seconds(timestamp).filter(|time| is_recent(*time, now)) else {
            return false;
        };
        let mut given = signatures
            .split(' ')
            .filter_map(|it| it.strip_prefix("v1,"));
        given.any(|text| {
            let given = STANDARD.decode(text).unwrap_or_default();
            // `verify_slice` compares in constant time.
            self.standard(secret, time).verify_slice(&given).is_ok()
        })
    }

    fn standard(&self, secret: &SigningSecret, time: i64) -> Hmac<Sha256> {
        let mut mac = keyed(secret.bytes.expose_secret());
        mac.update(format!("{}.{time}.", self.event_id).as_bytes());
        mac.update(self.body);
        mac
    }
}

/// The code of `<t>.<body>`.
pub(super) fn plain(key: &[u8], time: i64, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = keyed(key);
    mac.update(format!("{time}.").as_bytes());
    mac.update(body);
    mac
}

/// A header of the form `t=<unix seconds>,v1=<hex>`, with any number of signatures.
pub(super) struct Timed<'h> {
    pub(super) time: i64,
    header: &'h str,
}

impl<'h> Timed<'h> {
    pub(super) fn read(header: &'h str) -> Option<Self> {
        let time = parts(header).find_map(|(key, text)| (key == "t").then_some(text))?;
        let time = seconds(time)?;
        Some(Self { time, header })
    }

    /// Whether one of the signatures is this code.
    pub(super) fn proves(&self, mac: Hmac<Sha256>) -> bool {
        let mut given = parts(self.header).filter(|(key, _)| *key == "v1");
        given.any(|(_, text)| {
            let given = hex::decode(text).unwrap_or_default();
            // `verify_slice` compares in constant time.
            mac.clone().verify_slice(&given).is_ok()
        })
    }
}

fn parts(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.split(',').filter_map(|part| part.split_once('='))
}

const fn header_of(service: Service) -> &'static str {
    match service {
        Service::Pools => "Pools-Signature",
        Service::Gate => "Gate-Signature",
    }
}

pub(super) fn is_recent(time: i64, now: Timestamp) -> bool {
    now.seconds().abs_diff(time) <= TOLERANCE.as_secs()
}

/// Parses digits only. A sign or a separator was never signed as part of a number.
fn seconds(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    const OTHER: &str = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
    const BODY: &[u8] = br#"{"a":1}"#;

    fn secret(text: &str) -> SigningSecret {
        SigningSecret::parse(text).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000 + 999).unwrap()
    }

    fn message(service: Service) -> Message<'static> {
        Message {
            service,
            event_id: "evt_1",
            body: BODY,
        }
    }

    /// The expected values come from the libraries of either scheme.
    // rule: webhook.signature, webhook.standard-headers
    #[test]
    fn signature_matches_vectors_of_both_schemes() {
        let published = SigningSecret {
            text: SecretString::from("whsec_test"),
            bytes: SecretBox::new(Box::new([0; 32])),
        };
        let [ours, ..] = message(Service::Gate).sign(&[published], at(1_700_000_000));
        assert_eq!(ours.0, "Gate-Signature");
        assert_eq!(
            ours.1,
            "t=1700000000,v1=38877139021993b830af32feea6e18a8da83eb2f6e49ee50bd9e4cf4ca4d3789"
        );
        let headers = message(Service::Pools).sign(&[secret(SECRET)], at(1_700_000_000));
        assert_eq!(
            headers,
            [
                ("Pools-Signature", "t=1700000000,v1=9d11143238390e896343bee27af85e468c8d1cb0a6821f60322f5b45a2f76170".to_owned()),
                ("webhook-id", "evt_1".to_owned()),
                ("webhook-timestamp", "1700000000".to_owned()),
                ("webhook-signature", "v1,E91RjL3XwKNvhbIjLEB4Oo053Uu727CszikrY+6s9HE=".to_owned()),
            ]
        );
    }

    #[derive(serde::Deserialize)]
    struct Signed {
        secrets: Vec<String>,
        time: i64,
        #[serde(rename = "eventId")]
        event_id: String,
        body: String,
        headers: std::collections::BTreeMap<String, String>,
    }

    /// Libraries in other languages verify the same file in `tests/conformance/`.
    // rule: webhook.signature, webhook.standard-headers, webhook.overlap
    #[test]
    fn signature_matches_delivery_that_other_libraries_verify() {
        let text = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/conformance/signed_delivery.json"
        ));
        let signed: Signed = serde_json::from_str(text).unwrap();
        let secrets: Vec<SigningSecret> = signed.secrets.iter().map(|it| secret(it)).collect();
        let message = Message {
            service: Service::Pools,
            event_id: &signed.event_id,
            body: signed.body.as_bytes(),
        };
        let headers = message.sign(&secrets, at(signed.time));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value));
        assert_eq!(signed.headers, headers.into());
    }

    // rule: webhook.overlap
    #[test]
    fn newest_secret_signs_first() {
        let now = at(1_700_000_000);
        let message = message(Service::Pools);
        let (new, old) = (secret(OTHER), secret(SECRET));
        let alone = |secret: &SigningSecret| {
            let secrets = [SigningSecret::parse(secret.text.expose_secret()).unwrap()];
            message.sign(&secrets, now)
        };
        let ([ours_new, .., std_new], [ours_old, .., std_old]) = (alone(&new), alone(&old));
        let v1_old = ours_old.1.strip_prefix("t=1700000000").unwrap();
        let [ours, .., standard] = message.sign(&[new, old], now);
        assert_eq!(ours.1, format!("{}{v1_old}", ours_new.1));
        assert_eq!(standard.1, format!("{} {}", std_new.1, std_old.1));
        for text in [SECRET, OTHER] {
            assert!(message.verify(&ours.1, &secret(text), now));
        }
    }

    // rule: webhook.verify
    #[test]
    fn signature_is_valid_within_five_minutes() {
        let secret = secret(SECRET);
        let message = message(Service::Pools);
        let [(_, header), ..] = message.sign(std::slice::from_ref(&secret), at(1_700_000_000));
        for (off, good) in [
            (-301, false),
            (-300, true),
            (0, true),
            (300, true),
            (301, false),
        ] {
            let now = at(1_700_000_000 + off);
            assert_eq!(message.verify(&header, &secret, now), good, "{off}");
        }
        let now = at(1_700_000_000);
        let (time, v1) = header.split_once(',').unwrap();
        assert!(
            message.verify(&format!("{v1},{time}"), &secret, now),
            "parts in another order"
        );
        assert!(message.verify(&format!("{time},v1=00,{v1},v0=1"), &secret, now));
        for bad in [
            String::new(),
            v1.to_owned(),
            time.to_owned(),
            header.replace("t=1", "t=+1"),
            header.replace("t=1700000000", "t=1_700_000_000"),
            header.replace("t=1700000000", "t=1700000000abc"),
            header.replace("t=1700000000", "t=1700000001"),
            header.replace("v1=", "v0="),
            format!("{time},v1="),
            format!("{time},v1=zz"),
        ] {
            assert!(!message.verify(&bad, &secret, now), "{bad}");
        }
        let other = Message {
            body: br#"{"a":2}"#,
            ..message
        };
        assert!(!other.verify(&header, &secret, now));
        assert!(!message.verify(&header, &super::tests::secret(OTHER), now));
    }

    // rule: webhook.verify
    #[test]
    fn standard_headers_verify_under_each_secret() {
        let now = at(1_700_000_000);
        let message = message(Service::Pools);
        let [_, _, (_, time), (_, signatures)] =
            message.sign(&[secret(OTHER), secret(SECRET)], now);
        for text in [SECRET, OTHER] {
            assert!(message.verify_standard(&time, &signatures, &secret(text), now));
        }
        let (newest, oldest) = signatures.split_once(' ').unwrap();
        assert!(!message.verify_standard(&time, newest, &secret(SECRET), now));
        assert!(message.verify_standard(
            &time,
            &format!("v2,x v1,!! {oldest}"),
            &secret(SECRET),
            now
        ));
        for (time, signatures, seconds) in [
            ("1700000001", oldest, 1_700_000_000),
            ("+1700000000", oldest, 1_700_000_000),
            ("1700000000", "", 1_700_000_000),
            ("1700000000", "v1,", 1_700_000_000),
            ("1700000000", oldest, 1_700_000_301),
            ("1700000000", oldest, 1_699_999_699),
        ] {
            let found = message.verify_standard(time, signatures, &secret(SECRET), at(seconds));
            assert!(!found, "{time} {signatures} {seconds}");
        }
        let renamed = Message {
            event_id: "evt_2",
            ..message
        };
        assert!(!renamed.verify_standard(&time, oldest, &secret(SECRET), now));
    }

    #[test]
    fn secret_is_whsec_and_32_bytes() {
        assert!(!format!("{:?}", secret(SECRET)).contains("MDEy"));
        for bad in [
            "",
            "whsec_",
            "whsec_test",
            "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
            "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY",
            " whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        ] {
            assert!(SigningSecret::parse(bad).is_none(), "{bad}");
        }
    }

    fn of_bytes(bytes: [u8; 32]) -> SigningSecret {
        secret(&format!("whsec_{}", STANDARD.encode(bytes)))
    }

    proptest! {
        // rule: webhook.signature, webhook.standard-headers, webhook.verify
        #[test]
        fn signature_verifies_only_signed_body_secret_and_time(
            bytes in any::<[u8; 32]>(), body in prop::collection::vec(any::<u8>(), 1..200),
            signed in 400..4_000_000_000_i64, off in -400..400_i64, slip in any::<prop::sample::Index>(), bit in 0..8_u32,
        ) {
            let message = Message { service: Service::Pools, event_id: "evt_1", body: &body };
            let secrets = [of_bytes(bytes)];
            let [(_, ours), _, (_, time), (_, standard)] = message.sign(&secrets, at(signed));
            let verified = |message: &Message<'_>, secret: [u8; 32], now: i64| {
                let secret = of_bytes(secret);
                [message.verify(&ours, &secret, at(now)), message.verify_standard(&time, &standard, &secret, at(now))]
            };
            prop_assert_eq!(verified(&message, bytes, signed + off), [off.abs() <= 300; 2]);

            let mut other = body.clone();
            other[slip.index(body.len())] ^= 1 << bit;
            prop_assert_eq!(verified(&Message { body: &other, ..message }, bytes, signed), [false; 2]);
            let mut stranger = bytes;
            stranger[slip.index(32)] ^= 1 << bit;
            prop_assert_eq!(verified(&message, stranger, signed), [false; 2]);
        }

        // rule: webhook.verify
        #[test]
        fn any_header_is_parsed_without_panic(header in ".{0,60}|t=[0-9]{0,20},v1=[0-9a-f]{0,70}") {
            let secret = secret(SECRET);
            prop_assert!(!message(Service::Pools).verify(&header, &secret, at(1_700_000_000)));
            prop_assert!(!message(Service::Pools).verify_standard("1700000000", &header, &secret, at(1_700_000_000)));
        }
    }
}

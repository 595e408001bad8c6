//! Sends secrets in every place that can hold one, then searches all output of the program for them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::served::{
    POOLS, Served, eventually, file_for_acme, get, poll, provision, quote, transact,
};
use crate::traces::Collector;

/// Secrets of 32 bytes each, so that they are also valid keys.
const MASTER: &str = "canary-of-the-master-key-0123456";
const SIGNING: &str = "canary-of-the-signing-secret-012";
/// Keys of 32 letters: a known key, then an unknown key, a key of the other mode and a publishable key.
const KNOWN: &str = "CanaryKnownCanaryKnownCanaryKn01";
const OTHERS: [&str; 3] = [
    "sk_test_CanaryStrangerCanaryStrangerCan1",
    "sk_live_CanaryLiveCanaryLiveCanaryLive01",
    "pk_test_CanaryPublishableCanaryPublish01",
];
/// A path that only the partner and the operator know.
const HOOK: &str = "canary-of-a-webhook-address";

/// Every form that a text may have in the output: base64 at each of its three offsets, hexadecimal, percent-encoded, a list of
/// bytes.
fn forms(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let mut forms = vec![
        secret.to_owned(),
        hex::encode(bytes),
        hex::encode_upper(bytes),
    ];
    for offset in 0..3 {
        let padded = [&vec![b'x'; offset], bytes].concat();
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            // The first and last characters depend on the neighbouring bytes.
            let whole = engine.encode(&padded);
            let inner = &whole[(offset * 8).div_ceil(6)..whole.len() - 2];
            forms.push(inner.to_owned());
        }
    }
    let percent = |lower: bool| -> String {
        bytes
            .iter()
            .map(|byte| {
                if lower {
                    format!("%{byte:02x}")
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    };
    forms.extend([percent(true), percent(false)]);
    let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
    forms.extend([numbers.join(", "), numbers.join(",")]);
    forms
}

fn assert_without_secrets(place: &str, said: &str) {
    let kept = OTHERS.iter().map(|key| &key["sk_test_".len()..]);
    for secret in [MASTER, SIGNING, KNOWN, HOOK].into_iter().chain(kept) {
        for form in forms(secret) {
            let found = said.lines().find(|line| line.contains(&form));
            assert_eq!(found, None, "{place} contains {secret} as {form}");
        }
    }
}

/// Sends requests with a key in every place that can hold one, and returns the responses.
fn send_secrets(served: &Served, known: &str) -> Vec<String> {
    let mut responses = Vec::new();
    for key in OTHERS.into_iter().chain([known]) {
        let bearer = format!("Bearer {key}");
        let escaped: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let encoded = STANDARD.encode(key);
        for headers in [
            vec![("Authorization", bearer.as_str())],
            vec![("Authorization", key)],
            vec![("X-Secret-Key", key), ("X-Publishable-Key", key)],
            vec![("X-Request-Id", key), ("User-Agent", key), ("Cookie", key)],
            vec![
                ("X-Forwarded-For", key),
                ("Origin", key),
                ("traceparent", key),
            ],
            vec![
                ("Authorization", bearer.as_str()),
                ("X-Request-Id", encoded.as_str()),
            ],
        ] {
            for line in [
                "GET /v1/pools".to_owned(),
                format!("GET /v1/pools?secret_key={key}"),
                format!("GET /v1/pools?k={escaped}"),
                format!("GET /v1/pools/quotes/{key}"),
                format!("GET /{key}"),
                format!("{key} /v1/pools"),
            ] {
                responses.push(served.send(&line, &headers, ""));
            }
            let with_key = [&headers[..], &[("Idempotency-Key", key)]].concat();
            for body in [
                format!(r#"{{"quoteId":"{key}","{key}":"{key}"}}"#),
                format!("{{\"quoteId\":{key}"),
                key.to_owned(),
            ] {
                for route in ["quote", "transact"] {
                    let line = format!("POST /v1/pools/EUR-USDT/{route}");
                    responses.push(served.send(&line, &with_key, &body));
                }
            }
        }
    }
    responses
}

// rule: auth.keys-never-logged, program.logs
#[test]
fn program_output_contains_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let master = STANDARD.encode(MASTER);
    let known = format!("sk_test_{KNOWN}");
    let signing = format!("whsec_{}", STANDARD.encode(SIGNING));
    // No server listens at this address: deliveries fail and are logged.
    let hook = format!("http://127.0.0.1:1/{HOOK}");
    let file = file_for_acme(&known, Some((&hook, &signing)));
    provision(folder.path(), &[("MASTER_KEY", &master)], &file);

    for format in ["json", "text"] {
        let collector = Collector::start();
        let variables = [
            ("MASTER_KEY", master.as_str()),
            ("METRICS_LISTEN", "127.0.0.1:0"),
            ("OTLP_ENDPOINT", collector.address.as_str()),
            ("LOG_FORMAT", format),
            ("RUST_LOG", "trace"),
        ];
        let served = POOLS.start(folder.path(), &variables);
        let bearer = format!("Bearer {known}");
        let headers = [("Authorization", &*bearer)];
        let bought = quote(&served, &headers, "100.00");
        transact(&served, &headers, &bought);
        poll(&served, &headers, &bought);
        let responses = send_secrets(&served, &known);
        assert!(responses.len() > 200);
        if format == "json" {
            let metrics = get(&served.metrics_address(), "/metrics");
            assert!(metrics.contains("penstock_http_requests_total"));
            assert_without_secrets("/metrics", &metrics);
            let attempts =
                "penstock_webhook_attempts_total{service=\"pools\",outcome=\"unreachable\"} ";
            eventually(|| {
                let metrics = get(&served.metrics_address(), "/metrics");
                let mut counts = metrics
                    .lines()
                    .filter_map(|line| line.strip_prefix(attempts));
                counts.any(|count| !count.starts_with('0')).then_some(())
            });
        }
        let (code, logged) = served.end("-TERM");
        assert_eq!(code, Some(0));
        let (lines, traced) = (logged.lines().count(), logged.contains("TRACE"));
        assert!(traced && lines > 300, "{traced} {lines}: {logged}");
        assert_without_secrets("the log", &logged);
        for response in responses {
            assert_without_secrets("a response", &response);
        }
        let posted = collector.posted();
        assert!(!posted.is_empty());
        for (head, body) in posted {
            assert_without_secrets("a trace", &head);
            assert_without_secrets("a trace", &String::from_utf8_lossy(&body));
        }
    }
}

#[test]
fn secret_search_finds_every_form() {
    let said = |text: &str| {
        let found = std::panic::catch_unwind(|| assert_without_secrets("this", text));
        found.is_err()
    };
    assert!(!said("nothing"));
    for text in [
        format!("a {MASTER} b"),
        STANDARD.encode(format!("a{KNOWN}b")),
        STANDARD.encode(format!("ab{SIGNING}c")),
        URL_SAFE_NO_PAD.encode(KNOWN),
        hex::encode(MASTER),
        format!("{:?}", HOOK.as_bytes()),
        KNOWN.bytes().map(|byte| format!("%{byte:02x}")).collect(),
    ] {
        assert!(said(&text), "{text}");
    }
}

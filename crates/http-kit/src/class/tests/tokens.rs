//! Tests of the class that takes a token.

use super::*;

async fn send_token(app: &Router, headers: &[(&str, &str)], query: &str) -> Got {
    send_with(app, "GET", &format!("/v1/embedded{query}"), headers).await
}

#[tokio::test]
async fn token_is_admitted_while_its_key_and_partner_are_good() {
    let app = app_over(keys(), LimitBy::CredentialFromClient);
    for (partner, kind, name, expected) in [
        ("acme", "pk", 'a', (200, "")),
        ("acme", "sk", 'a', (403, "key_mode_mismatch")),
        ("acme", "pk", 'r', (403, "key_revoked")),
        ("acme", "pk", 's', (403, "organization_suspended")),
        ("acme", "pk", 'x', (401, "unauthorized")),
        ("rival", "pk", 'a', (401, "unauthorized")),
    ] {
        let token = format!("{partner}{kind}{name} {partner} {}", text_of(kind, name));
        let got = send_token(&app, &[("x-embed-token", &token)], "").await;
        let got = (got.status.as_u16(), got.code.as_str());
        assert_eq!(got, expected, "{token}");
    }
}

#[tokio::test]
async fn token_is_read_from_its_header_alone() {
    let app = app_over(keys(), LimitBy::Credential);
    let key = text_of("pk", 'a');
    let (token, bearer) = (format!("one acme {key}"), format!("Bearer {key}"));
    let secret = format!("?key={}", text_of("sk", 'a'));
    let mut codes = Vec::new();
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[], ""),
        (&[("authorization", &bearer)], ""),
        (&[("x-embed-token", &token), ("x-embed-token", &token)], ""),
        (&[("x-embed-token", &token)], &secret),
    ];
    // A new router for each call, because calls with 401 are limited.
    for (headers, query) in cases {
        let app = app_over(keys(), LimitBy::Credential);
        let got = send_token(&app, headers, query).await;
        assert_eq!(got.status, 401, "{headers:?} {query}");
        codes.push(got.code);
    }
    assert_eq!(codes[3], "secret_key_in_query");
    assert!(codes[..3].iter().all(|code| code == "unauthorized"));
    let got = send(&app, "GET", "/v1/publishable", Some(&token)).await;
    assert_eq!(got.status, 401, "a token is no key");
}

#[tokio::test]
async fn limit_of_tokens_counts_each_token_alone() {
    let app = app_over(keys(), LimitBy::CredentialFromClient);
    let token = |id: &str| format!("{id} acme {}", text_of("pk", 'a'));
    for _ in 0..LIMIT {
        let got = send_token(&app, &[("x-embed-token", &token("one"))], "").await;
        assert_eq!(got.status, 200);
    }
    let full = send_token(&app, &[("x-embed-token", &token("one"))], "").await;
    assert_eq!(
        (full.status.as_u16(), full.code.as_str()),
        (429, "rate_limited")
    );
    assert!(full.headers.contains_key("retry-after-short"));
    let other = send_token(&app, &[("x-embed-token", &token("two"))], "").await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn limit_of_tokens_counts_refusals() {
    let app = app_over(keys(), LimitBy::CredentialFromClient);
    let suspended = format!("one acme {}", text_of("pk", 's'));
    for (token, status) in [(suspended.as_str(), 403), ("forged", 401)] {
        for _ in 0..LIMIT {
            let got = send_token(&app, &[("x-embed-token", token)], "").await;
            assert_eq!(got.status, status, "{token}");
            assert!(got.headers.contains_key("x-ratelimit-limit-short"));
        }
        let full = send_token(&app, &[("x-embed-token", token)], "").await;
        assert_eq!(full.status, 429, "{token}");
    }
}

#[tokio::test]
async fn class_of_tokens_without_reader_admits_nobody() {
    let app = app_over(keys(), LimitBy::Credential);
    for kind in ["pk", "sk"] {
        let got = send(&app, "GET", "/v1/unread", Some(&text_of(kind, 'a'))).await;
        assert_eq!(
            (got.status.as_u16(), got.code.as_str()),
            (401, "unauthorized")
        );
    }
}

//! The widget's origin: which pages may frame it, what it serves, and what it does not.

use acceptance::{
    ACME, ACME_PUBLISHABLE, ACME_SECRET, Answer, Call, Gate, RIVAL_PUBLISHABLE, RIVAL_SHOP, SHOP,
    WIDGET,
};
use partner_core::PartnerStatus;

const GATE: &str = "https://gate.example";

/// The policy before the sources of `frame-ancestors`.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: data:; \
    connect-src https://gate.example; font-src 'self'; base-uri 'none'; form-action 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'; frame-ancestors ";

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let value = answer.headers.get(name);
    value.map_or("", |value| value.to_str().unwrap())
}

async fn get(gate: &Gate, path: &str) -> Answer {
    gate.page(Call::get(path)).await
}

/// The pages that may frame the widget of a key.
async fn ancestors(gate: &Gate, query: &str) -> String {
    let answer = get(gate, &format!("/embed{query}")).await;
    assert_eq!(answer.status, 200);
    let policy = header(&answer, "content-security-policy");
    policy.strip_prefix(POLICY).unwrap_or(policy).to_owned()
}

fn of_key(gate: &Gate, key: &str) -> String {
    format!("?publishable_key={}", gate.world().of_mode(key))
}

// rule: gate.embed.framed
#[tokio::test]
async fn widget_is_framed_by_exactly_the_pages_of_its_partner() {
    let gate = Gate::new().await;
    let acme = of_key(&gate, ACME_PUBLISHABLE);
    assert_eq!(ancestors(&gate, &acme).await, SHOP);
    let rival = of_key(&gate, RIVAL_PUBLISHABLE);
    assert_eq!(ancestors(&gate, &rival).await, RIVAL_SHOP);
    for query in [
        String::new(),
        of_key(&gate, ACME_SECRET),
        "?publishable_key=pk_test_unknown".to_owned(),
        format!("?publishable_key=pk_test_{}", "z".repeat(32)),
        format!("?publishable_key=pk_live_{}", "z".repeat(32)),
        format!("{acme}{}", rival.replace('?', "&")),
    ] {
        assert_eq!(ancestors(&gate, &query).await, "'none'", "{query}");
    }
    gate.finish().await;
}

// rule: gate.embed.framed
#[tokio::test]
async fn widget_is_framed_by_no_page_after_partner_lost_access() {
    let gate = Gate::new().await;
    let operator = gate.world().operator();
    let acme = of_key(&gate, ACME_PUBLISHABLE);
    operator.put_partner(ACME, PartnerStatus::Suspended).await;
    assert_eq!(ancestors(&gate, &acme).await, "'none'");
    operator.put_partner(ACME, PartnerStatus::Active).await;
    assert_eq!(ancestors(&gate, &acme).await, SHOP);
    let mut profile = acceptance::gate_profile(SHOP);
    profile.enabled = false;
    operator.put_gate_profile(ACME, &profile).await;
    assert_eq!(ancestors(&gate, &acme).await, "'none'");
    operator
        .put_gate_profile(ACME, &acceptance::gate_profile(SHOP))
        .await;
    operator
        .revoke(&gate.world().of_mode(ACME_PUBLISHABLE))
        .await;
    assert_eq!(ancestors(&gate, &acme).await, "'none'");
    gate.finish().await;
}

#[tokio::test]
async fn widget_pages_have_headers_of_protection_and_no_cookie() {
    let gate = Gate::new().await;
    for path in ["/embed", "/checkout", "/sandbox/card", "/sandbox/identity"] {
        let answer = get(&gate, path).await;
        assert_eq!(
            header(&answer, "content-security-policy"),
            format!("{POLICY}'none'"),
            "{path}"
        );
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-cache"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("set-cookie", ""),
            ("access-control-allow-origin", ""),
        ] {
            assert_eq!(header(&answer, name), value, "{path}: {name}");
        }
        let (sharing, embedding) = match path {
            "/embed" => ("cross-origin", "credentialless"),
            _ => ("same-origin", ""),
        };
        assert_eq!(header(&answer, "cross-origin-resource-policy"), sharing);
        assert_eq!(header(&answer, "cross-origin-embedder-policy"), embedding);
        for permission in ["camera=()", "clipboard-read=(self)"] {
            assert!(header(&answer, "permissions-policy").contains(permission));
        }
        let page = String::from_utf8(answer.bytes.to_vec()).unwrap();
        assert!(page.contains(GATE) && !page.contains("{{penstock."));
        let head = gate.page(Call::new("HEAD", path)).await;
        assert_eq!((head.status, head.bytes.len()), (200, 0));
    }
    gate.finish().await;
}

// rule: gate.widget.sandbox-pages
#[tokio::test]
async fn pages_of_the_sandbox_are_served_in_mode_test_alone() {
    let gate = Gate::new().await;
    let live = gate.other_mode().await;
    for path in ["/sandbox/card?payment=pay_test_x", "/sandbox/identity"] {
        let page = get(&gate, path).await;
        assert_eq!(page.status, 200, "{path}");
        let page = String::from_utf8(page.bytes.to_vec()).unwrap();
        let script = page.split('"').find(|it| it.ends_with(".js")).unwrap();
        let file = get(&gate, script).await;
        let caching = "public, max-age=31536000, immutable";
        assert_eq!(header(&file, "cache-control"), caching, "{script}");
        for path in [path, script] {
            let answer = get(&live, path).await;
            assert_eq!(answer.status, 404, "{path}");
            assert_eq!(&answer.bytes[..], b"There is no such page.\n", "{path}");
        }
    }
    live.close().await;
    gate.finish().await;
}

#[tokio::test]
async fn page_names_the_origins_that_may_exchange_messages_with_it() {
    let gate = Gate::new().await;
    let acme = of_key(&gate, ACME_PUBLISHABLE);
    for (path, origins) in [
        (format!("/embed{acme}"), SHOP),
        ("/embed".to_owned(), ""),
        ("/checkout".to_owned(), ""),
    ] {
        let answer = get(&gate, &path).await;
        let page = String::from_utf8(answer.bytes.to_vec()).unwrap();
        let named = format!("<meta name=\"penstock-origins\" content=\"{origins}\">");
        assert!(page.contains(&named), "{path}: {page}");
    }
    gate.finish().await;
}

#[tokio::test]
async fn widget_files_are_compressed_for_browsers_that_accept_it() {
    let gate = Gate::new().await;
    let plain = get(&gate, "/gate.js").await;
    assert_eq!(header(&plain, "content-encoding"), "");
    let call = Call::get("/gate.js").header("accept-encoding", "br, gzip");
    let gzipped = gate.page(call).await;
    assert_eq!(header(&gzipped, "content-encoding"), "gzip");
    assert_eq!(header(&gzipped, "etag"), header(&plain, "etag"));
    assert!(gzipped.bytes.len() < plain.bytes.len() / 2);
    gate.finish().await;
}

#[tokio::test]
async fn licences_of_the_widget_and_the_sdk_are_served() {
    let gate = Gate::new().await;
    let answer = get(&gate, "/licenses.txt").await;
    assert_eq!(header(&answer, "content-type"), "text/plain; charset=utf-8");
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert!(text.contains("preact") && text.contains("Permission is hereby granted"));
    gate.finish().await;
}

// rule: gate.sdk.package
#[tokio::test]
async fn package_of_the_sdk_is_served_as_an_archive() {
    let gate = Gate::new().await;
    let answer = get(&gate, "/penstock-gate.tgz").await;
    assert_eq!(answer.status, 200);
    assert_eq!(header(&answer, "content-type"), "application/gzip");
    assert_eq!(header(&answer, "cache-control"), "public, max-age=300");
    assert!(answer.bytes.starts_with(&[0x1f, 0x8b]), "it is no gzip");
    gate.finish().await;
}

// rule: gate.sdk.served-with-mode
#[tokio::test]
async fn widget_files_are_cached_by_their_content() {
    let gate = Gate::new().await;
    let page = get(&gate, "/checkout").await;
    let page = String::from_utf8(page.bytes.to_vec()).unwrap();
    let script = page.split('"').find(|it| it.ends_with(".js")).unwrap();
    let (code, types) = ("text/javascript", "application/typescript");
    for (path, kind, caching, shared) in [
        (script, code, "public, max-age=31536000, immutable", ""),
        ("/gate.js", code, "public, max-age=300", "*"),
        ("/gate.mjs", code, "public, max-age=300", "*"),
        ("/gate.d.ts", types, "public, max-age=300", "*"),
    ] {
        let answer = get(&gate, path).await;
        assert_eq!(answer.status, 200, "{path}");
        let kind = format!("{kind}; charset=utf-8");
        assert_eq!(header(&answer, "content-type"), kind, "{path}");
        assert_eq!(header(&answer, "cache-control"), caching, "{path}");
        assert_eq!(
            header(&answer, "access-control-allow-origin"),
            shared,
            "{path}"
        );
        let tag = header(&answer, "etag");
        let known = gate
            .page(Call::get(path).header("if-none-match", tag))
            .await;
        assert_eq!((known.status, known.bytes.len()), (304, 0), "{path}");
        let stale = gate
            .page(Call::get(path).header("if-none-match", "\"x\""))
            .await;
        assert_eq!(stale.status, 200, "{path}");
    }
    for path in ["/gate.js", "/gate.mjs"] {
        let sdk = get(&gate, path).await;
        let sdk = String::from_utf8(sdk.bytes.to_vec()).unwrap();
        // The beginning of the keys that a gate in mode test takes.
        for written in [GATE, WIDGET, "\"pk_test_\""] {
            assert!(sdk.contains(written), "{path}: {written}");
        }
        assert!(!sdk.contains("{{penstock."), "{path}");
    }
    gate.finish().await;
}

#[tokio::test]
async fn widget_origin_has_no_api() {
    let gate = Gate::new().await;
    for path in [
        "/",
        "/v1/gate_sessions",
        "/v1/embed/session",
        "/assets/",
        "/assets/x.js",
        "/demo",
        "/demo.html",
        "/docs",
    ] {
        let answer = get(&gate, path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(header(&answer, "content-type"), "text/plain; charset=utf-8");
    }
    let posted = gate.page(Call::post("/embed")).await;
    assert_eq!((posted.status, header(&posted, "allow")), (405, "GET,HEAD"));
    assert_eq!(get(&gate, "/health").await.ok()["status"], "ok");
    gate.finish().await;
}

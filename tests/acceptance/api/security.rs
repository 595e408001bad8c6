//! Authorization by credential and object, as tables over every published
//! operation.

use acceptance::{
    ACME, ACME_PUBLISHABLE, ACME_SECRET, ACME_SECRET_2, Call, Client, Contract, Operation, RIVAL,
    World,
};
use axum::http::Method;
use kernel::Clock as _;
use partner_core::PartnerStatus;
use serde_json::{Value, json};

use crate::routes::{self, Class};

const SHUT: &str = "sk_test_ShutShutShutShutShutShutShut0001";
const BARE: &str = "sk_test_BareBareBareBareBareBareBare0001";
const UNKNOWN_SECRET: &str = "sk_test_NobodyNobodyNobodyNobodyNobody99";
const UNKNOWN_PUBLISHABLE: &str = "pk_test_NobodyNobodyNobodyNobodyNobody99";
const LIVE: &str = "sk_live_AcmeAcmeAcmeAcmeAcmeAcmeAcme0001";
const LIVE_PUBLISHABLE: &str = "pk_live_AcmeAcmeAcmeAcmeAcmeAcmeAcme0003";
const LIVE_UNKNOWN: &str = "sk_live_NobodyNobodyNobodyNobodyNobody99";
const SHUT_PUBLISHABLE: &str = "pk_test_ShutShutShutShutShutShutShut0002";
const SHUT_GONE: &str = "sk_test_ShutShutShutShutShutShutShut0003";
const GONE_PUBLISHABLE: &str = "pk_test_GoneGoneGoneGoneGoneGoneGone0001";
const LATE: &str = "sk_test_LateLateLateLateLateLateLate0001";
const LATE_PUBLISHABLE: &str = "pk_test_LateLateLateLateLateLateLate0002";

/// The status and code of a refusal; `None` if the caller is authorized.
type Verdict = Option<(u16, &'static str)>;
const IN: Verdict = None;
const STRANGER: Verdict = Some((401, "unauthorized"));
const EXPOSED: Verdict = Some((401, "secret_key_in_query"));
const WRONG: Verdict = Some((403, "key_mode_mismatch"));
const REVOKED: Verdict = Some((403, "key_revoked"));
const EXPIRED: Verdict = Some((403, "key_expired"));
const SUSPENDED: Verdict = Some((403, "organization_suspended"));
const NOT_ENABLED: Verdict = Some((403, "pools_not_enabled"));

type Dress = fn(Call) -> Call;

/// Credential of a request, and its result on routes for any key, for secret keys, and for
/// secret keys of entitled partners.
const TABLE: [(&str, Dress, [Verdict; 3]); 28] = [
    ("secret", |c| c.bearer(ACME_SECRET), [IN, IN, IN]),
    (
        "named",
        |c| c.header("x-secret-key", ACME_SECRET),
        [IN, IN, IN],
    ),
    (
        "publishable",
        |c| c.bearer(ACME_PUBLISHABLE),
        [IN, WRONG, WRONG],
    ),
    (
        "named publishable",
        |c| c.header("x-publishable-key", ACME_PUBLISHABLE),
        [IN, WRONG, WRONG],
    ),
    (
        "the bearer counts",
        |c| {
            c.bearer(ACME_PUBLISHABLE)
                .header("x-secret-key", ACME_SECRET)
        },
        [IN, WRONG, WRONG],
    ),
    ("nothing", |c| c, [STRANGER; 3]),
    ("unknown", |c| c.bearer(UNKNOWN_SECRET), [STRANGER; 3]),
    ("no key", |c| c.bearer("sk_test_x"), [STRANGER; 3]),
    (
        "unknown key with a good one",
        |c| c.bearer(UNKNOWN_SECRET).header("x-secret-key", ACME_SECRET),
        [STRANGER; 3],
    ),
    (
        "twice",
        |c| c.bearer(ACME_SECRET).bearer(ACME_SECRET),
        [STRANGER; 3],
    ),
    (
        "another scheme",
        |c| c.header("authorization", &format!("Basic {ACME_SECRET}")),
        [STRANGER; 3],
    ),
    (
        "publishable as secret",
        |c| c.header("x-secret-key", ACME_PUBLISHABLE),
        [STRANGER; 3],
    ),
    (
        "secret as publishable",
        |c| c.header("x-publishable-key", ACME_SECRET),
        [STRANGER; 3],
    ),
    (
        "a cookie",
        |c| c.header("cookie", &format!("key={ACME_SECRET}")),
        [STRANGER; 3],
    ),
    (
        "in the query",
        |c| c.query(&format!("key={ACME_SECRET}")),
        [EXPOSED; 3],
    ),
    (
        "in the query too",
        |c| c.query(&format!("key={ACME_SECRET}")).bearer(ACME_SECRET),
        [EXPOSED; 3],
    ),
    ("of the other mode", |c| c.bearer(LIVE), [WRONG; 3]),
    (
        "publishable of the other mode",
        |c| c.bearer(LIVE_PUBLISHABLE),
        [WRONG; 3],
    ),
    (
        "unknown of the other mode",
        |c| c.bearer(LIVE_UNKNOWN),
        [WRONG; 3],
    ),
    ("revoked", |c| c.bearer(ACME_SECRET_2), [REVOKED; 3]),
    (
        "revoked publishable",
        |c| c.bearer(GONE_PUBLISHABLE),
        [REVOKED; 3],
    ),
    (
        "revoked, of a suspended partner",
        |c| c.bearer(SHUT_GONE),
        [REVOKED; 3],
    ),
    ("expired", |c| c.bearer(LATE), [EXPIRED; 3]),
    (
        "expired publishable",
        |c| c.bearer(LATE_PUBLISHABLE),
        [EXPIRED; 3],
    ),
    (
        "unknown publishable",
        |c| c.bearer(UNKNOWN_PUBLISHABLE),
        [STRANGER; 3],
    ),
    ("suspended", |c| c.bearer(SHUT), [SUSPENDED; 3]),
    // The key's kind is checked first, then the organisation.
    (
        "suspended publishable",
        |c| c.bearer(SHUT_PUBLISHABLE),
        [SUSPENDED, WRONG, WRONG],
    ),
    ("not entitled", |c| c.bearer(BARE), [IN, IN, NOT_ENABLED]),
];

// rule: auth.missing, auth.unknown, auth.bearer-first, auth.wrong-kind, auth.other-mode, auth.revoked, auth.expired, auth.secret-in-query, access.organisation-suspended, access.not-enabled, access.order, error.default-codes, pools.list.either-key
#[tokio::test]
async fn every_credential_on_every_route() {
    let world = World::new().await;
    let operator = world.operator();
    operator.revoke(ACME_SECRET_2).await;
    operator.put_partner("shut", PartnerStatus::Suspended).await;
    operator.put_key("shut", SHUT).await;
    operator.put_key("shut", SHUT_PUBLISHABLE).await;
    operator.put_key("shut", SHUT_GONE).await;
    operator.revoke(SHUT_GONE).await;
    operator.put_key(ACME, GONE_PUBLISHABLE).await;
    operator.revoke(GONE_PUBLISHABLE).await;
    for key in [LATE, LATE_PUBLISHABLE] {
        operator.put_key(ACME, key).await;
        operator.expire(key, world.clock().now()).await;
    }
    operator.put_partner("bare", PartnerStatus::Active).await;
    operator.put_key("bare", BARE).await;
    for (operation, call) in routes::all(None) {
        let column = match routes::class(operation) {
            Class::AnyKey => 0,
            Class::Secret => 1,
            Class::Entitled => 2,
        };
        for (name, dress, verdicts) in TABLE {
            let answer = world.send(dress(call.clone())).await;
            let shown = (answer.status, answer["code"].as_str().unwrap_or_default());
            let refused = matches!(answer.status, 401 | 403).then_some(shown);
            assert_eq!(refused, verdicts[column], "{name}: {}", operation.id);
        }
    }
    assert_eq!(world.database().count("trades").await, 0);
    world.finish().await;
}

/// Position of an object id in a request.
#[derive(Debug)]
enum Place {
    Path(String),
    Query(String),
    Body(String),
}

/// Every position of a published operation that takes an id or a cursor.
fn places(operation: &Operation) -> Vec<Place> {
    let document = &Contract::published().document;
    let method = operation.method.as_str().to_lowercase();
    let published = &document["paths"][&operation.template][&method];
    let mut places = Vec::new();
    for parameter in published["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap().to_owned();
        match parameter["in"].as_str() {
            Some("path") if name.ends_with("Id") => places.push(Place::Path(name)),
            Some("query") if name == "cursor" => places.push(Place::Query(name)),
            _ => {}
        }
    }
    let body = &published["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    if let Some(place) = body.as_str() {
        let schema = document.pointer(place.trim_start_matches('#')).unwrap();
        let names = schema["properties"].as_object().unwrap().keys();
        let ids = names.filter(|name| name.ends_with("Id"));
        places.extend(ids.cloned().map(Place::Body));
    }
    places
}

/// A request with this id in this position.
fn naming(operation: &Operation, place: &Place, id: &str) -> Call {
    let path = operation.template.replace("{id}", "EUR-USDT");
    let call = |path: &str| Call::new(operation.method.as_str(), path);
    match place {
        Place::Path(name) => call(&path.replace(&format!("{{{name}}}"), id)),
        Place::Query(name) => call(&path).query(&format!("{name}={id}")),
        Place::Body(name) => call(&path).json(&json!({ name: id })).key("matrix"),
    }
}

/// The same id with another last letter: the same kind and mode, but unknown.
fn unknown_id(id: &str) -> String {
    let (rest, last) = id.split_at(id.len() - 1);
    format!("{rest}{}", if last == "Z" { "Y" } else { "Z" })
}

/// A partner's client with one object of each kind.
struct Tenant {
    name: String,
    client: Client,
    ids: Vec<String>,
}

async fn tenant(world: &World, mode: &str, partner: &str) -> Tenant {
    world.operator().credit(partner, "1000.00", "EUR").await;
    let client = if partner == ACME {
        world.acme()
    } else {
        world.rival()
    };
    let open = client.buy("EUR-USDT", "100").await;
    let (consumed, trade) = client.trade("EUR-USDT", "100").await;
    let page = client.get("/v1/pools/ledger?limit=1").await.ok();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entry = text(&page["entries"][0]["id"]);
    let cursor = text(&page["nextCursor"]);
    Tenant {
        name: format!("{partner} in {mode}"),
        client,
        ids: vec![open, consumed, trade, entry, cursor],
    }
}

// rule: tenancy.foreign-is-absent, tenancy.nothing-crosses, id.other-mode, id.kinds-differ, list.foreign-cursor, mode.on-every-row
#[tokio::test]
async fn object_of_another_partner_reads_as_missing() {
    let world = World::new().await;
    let live = world.other_mode().await;
    let tenants = [
        tenant(&world, "test", ACME).await,
        tenant(&world, "test", RIVAL).await,
        tenant(&live, "live", ACME).await,
        tenant(&live, "live", RIVAL).await,
    ];
    let before = world.database().digest().await;
    let mut asked = 0;
    for operation in &Contract::published().operations {
        for place in places(operation) {
            for caller in &tenants {
                let others = tenants.iter().filter(|owner| owner.name != caller.name);
                for (owner, id) in
                    others.flat_map(|owner| owner.ids.iter().map(move |id| (owner, id)))
                {
                    let found = caller.client.send(naming(operation, &place, id)).await;
                    let reference = naming(operation, &place, &unknown_id(id));
                    let wanted = caller.client.send(reference).await;
                    let what = format!(
                        "{}: {} names {id} of {} in {place:?}",
                        operation.id, caller.name, owner.name
                    );
                    assert_eq!(found.anonymous(), wanted.anonymous(), "{what}");
                    let names = |answer: &acceptance::Answer| -> Vec<String> {
                        answer.headers.keys().map(ToString::to_string).collect()
                    };
                    assert_eq!(names(&found), names(&wanted), "{what}");
                    let list = operation.method == Method::GET && matches!(place, Place::Query(_));
                    assert!(found.status != 200 || list, "{what}: {}", found.body);
                    let absent = found["code"] == "resource_not_found";
                    assert!(absent || !matches!(place, Place::Path(_)), "{what}");
                    let items = found.body["data"]
                        .as_array()
                        .or(found.body["entries"].as_array());
                    assert!(items.is_none_or(Vec::is_empty), "{what}: {}", found.body);
                    asked += 1;
                }
            }
        }
    }
    // Four operations with an id in the path, one in the body, two lists; 12 pairs, 5 ids each.
    assert!(asked >= 7 * 12 * 5, "{asked}");
    assert_eq!(
        world.database().digest().await,
        before,
        "refusals change no row"
    );
    live.close().await;
    world.finish().await;
}

// rule: error.panic-contained, error.internal-generic, pools.trade.lease, pools.trade.converge
#[tokio::test]
async fn panic_in_a_poll_is_500_and_commits_nothing_partially() {
    let world = World::new().await;
    world.operator().credit(ACME, "1000.00", "EUR").await;
    let acme = world.acme();
    let (quote, trade) = acme.trade("EUR-USDT", "100").await;
    world
        .engine()
        .meanwhile(|_| async { panic!("the canary of a panic") });
    let answer = acme.poll(&quote).await.refused(500, "internal_error");
    assert!(!String::from_utf8_lossy(&answer.bytes).contains("canary"));
    assert_eq!(acme.read(&trade).await.ok()["status"], "reserved");
    assert_eq!(acme.balance("EUR-USDT").await, "900.00");
    world.check().await;
    world.engine().in_peace();
    // The dead poll's lease expires, and the next poll ends the trade.
    world.after(60_000);
    assert_eq!(acme.status(&quote).await, "settled");
    assert_eq!(
        world.notice(ACME, &trade).await,
        ["pool.transaction.settled"]
    );
    world.finish().await;
}

//! Measures whether a nearly correct key takes longer to refuse than a wrong one: the API's authentication over a
//! store, in this process, with both kinds in random order; evaluated by Welch's t-test, as in dudect.
//!
//! `cargo run -p acceptance --example guesses -- 100000`
#![expect(
    clippy::print_stdout,
    clippy::float_arithmetic,
    clippy::disallowed_methods,
    reason = "a measurement of the machine's own clock, which prints what it finds"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use coordination::{DirectoryCache, MemoryThrottle};
use http_kit::{Class, Door, DoorConfig, ProductErrorCodes, Secret, TrustedProxies, codes};
use kernel::{Clock, Entropy, Mode};
use partner_core::key::{KeyKind, NewKey, random_base62};
use partner_core::{Partner, PartnerId, PartnerStatus, Tenant};
use pools_core::profile::PoolsProfile;
use provisioning::ports::ProvisionStore;
use runtime::Ports;
use store_sqlite::{Options, SqliteStore};
use tower::ServiceExt;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const KEY: &str = "sk_test_KeyWhosePrefixIsGuessedRight0001";
/// Correct characters of a near guess, of which 28 are secret.
const RIGHT: usize = 36;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The slowest samples are noise: the test uses all samples, and those below these percentiles.
const SHARES: [usize; 4] = [50, 90, 99, 100];

/// The key that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All characters correct except the last four.
    Near,
    /// Only the public characters correct.
    Far,
    /// The key itself: shows that the test detects a difference.
    Known,
}

/// Samples of each kind, in nanoseconds.
#[derive(Debug, Default)]
struct Spans {
    near: Vec<f64>,
    far: Vec<f64>,
    known: Vec<f64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let guesses = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |word| word.parse())?;
    let folder = tempfile::tempdir()?;
    measure(folder.path(), guesses).await
}

/// Sends this many keys of each kind and prints the test.
async fn measure(folder: &Path, guesses: usize) -> Result<()> {
    let ports = Ports::of_machine();
    let door = door(folder, &ports).await?;
    let mut spans = Spans::default();
    while spans.near.len().min(spans.far.len()) < guesses {
        let mut dice = [0];
        ports.entropy.fill(&mut dice);
        let (kind, kept, wanted) = match dice.map(|byte| byte % 8) {
            [0] => (Kind::Known, &mut spans.known, 200),
            [1 | 3 | 5] => (Kind::Near, &mut spans.near, 401),
            _ => (Kind::Far, &mut spans.far, 401),
        };
        let (status, took) = ask(&door, key(&*ports.entropy, kind)).await?;
        if status != wanted {
            return Err(format!("{kind:?} returned {status}").into());
        }
        kept.push(took.as_nanos() as f64);
    }
    print(&mut spans);
    Ok(())
}

/// A key of the right form.
fn key(entropy: &dyn Entropy, kind: Kind) -> String {
    let right = match kind {
        Kind::Near => RIGHT,
        Kind::Far => "sk_test_".len(),
        Kind::Known => KEY.len(),
    };
    let random = random_base62(entropy);
    let (start, rest) = (KEY.get(..right), KEY.len().saturating_sub(right));
    format!(
        "{}{}",
        start.unwrap_or_default(),
        random.get(..rest).unwrap_or_default()
    )
}

/// One route of the secret-key class, over a service's store.
async fn door(folder: &Path, ports: &Ports) -> Result<Router> {
    let options = Options {
        velocity_window: DAY,
        idempotency_ttl: DAY,
        turn_timeout: store_sqlite::TURN_TIMEOUT,
    };
    let clock: Arc<dyn Clock> = Arc::clone(&ports.clock);
    let store = SqliteStore::open(&folder.join("guesses.db"), Arc::clone(&clock), options).await?;
    provision(&store, ports).await?;
    let door = Door::new(DoorConfig {
        mode: Mode::Test,
        directory: Arc::new(DirectoryCache::<PoolsProfile>::new(
            Arc::new(store),
            Arc::default(),
        )),
        throttle: Arc::new(MemoryThrottle::new(Arc::clone(&clock))),
        proxies: TrustedProxies::default(),
        error_codes: ProductErrorCodes {
            test_key_on_live: codes::UNAUTHORIZED,
            live_key_on_test: codes::UNAUTHORIZED,
            wrong_kind: codes::UNAUTHORIZED,
            not_in_live: codes::UNAUTHORIZED,
        },
        // Otherwise guesses soon get 429, which is the purpose of the limits.
        failed_auth_limit: None,
        clock,
        entitled: |_| Ok(()),
    });
    let inside = async |_: Secret<PoolsProfile>| "in";
    let routes = Router::new().route("/", get(inside));
    Ok(door.of(Class::Secret, None).around(routes))
}

async fn provision(store: &SqliteStore, ports: &Ports) -> Result<()> {
    let who = Tenant {
        partner: PartnerId::parse("bench").ok_or("a partner's name")?,
        mode: Mode::Test,
    };
    let partner = Partner {
        id: who.partner.clone(),
        name: "bench".to_owned(),
        status: PartnerStatus::Active,
    };
    let (now, entropy) = (ports.clock.now(), &*ports.entropy);
    let key = NewKey::literal(KeyKind::Secret, now, entropy, KEY).ok_or("a key")?;
    let mut tx = store.provision_begin("bench").await?;
    tx.partner_put(Mode::Test, &partner).await?;
    tx.key_insert(&who, &key).await?;
    tx.commit().await?;
    Ok(())
}

async fn ask(door: &Router, key: String) -> Result<(u16, Duration)> {
    let request = Request::get("/").header("authorization", format!("Bearer {key}"));
    let (door, request) = (door.clone(), request.body(Body::empty())?);
    let began = Instant::now();
    let answer = door.oneshot(request).await?;
    Ok((answer.status().as_u16(), began.elapsed()))
}

fn print(spans: &mut Spans) {
    for (what, spans) in [
        (
            "guesses with 28 of 32 secret characters correct",
            &mut spans.near,
        ),
        ("guesses with no correct secret character", &mut spans.far),
        ("times the key itself", &mut spans.known),
    ] {
        spans.sort_by(f64::total_cmp);
        let middle = spans.get(spans.len() / 2).copied().unwrap_or(f64::NAN);
        println!("{} {what}: median {:.2} µs", spans.len(), middle / 1000.0);
    }
    for share in SHARES {
        let of = |spans: &[f64]| {
            let kept = spans.len() * share / 100;
            spans.get(..kept).map(<[f64]>::to_vec).unwrap_or_default()
        };
        let far = of(&spans.far);
        println!(
            "the fastest {share:>3} %: t = {:.2}; the key itself and a guess: t = {:.2}",
            welch(&of(&spans.near), &far),
            welch(&of(&spans.known), &far)
        );
    }
    println!("A difference is significant if |t| is above 4.5.");
}

/// The difference of two means in standard errors.
fn welch(one: &[f64], other: &[f64]) -> f64 {
    let ((mean, error), (other_mean, other_error)) = (sample(one), sample(other));
    (mean - other_mean) / (error + other_error).sqrt()
}

/// A sample's mean, and the variance of that mean.
fn sample(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (count - 1.0) / count)
}

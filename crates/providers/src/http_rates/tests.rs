//! The rate of a pair from prices that the test sets without HTTP. The clock changes only when the test advances it.

use kernel::Timestamp;
use proptest::prelude::*;

use super::*;

const START_MILLIS: i64 = 1_779_710_400_000;

fn decimal(text: &str) -> Decimal {
    Decimal::from_str_exact(text).unwrap()
}

fn decimals(texts: &[&str]) -> Vec<Decimal> {
    texts.iter().map(|text| decimal(text)).collect()
}

fn terms(min_sources: usize, max_move_bps: Option<u16>) -> Terms {
    Terms {
        max_age: Duration::from_secs(10),
        max_spread_bps: 50,
        min_sources,
        max_width_bps: 200,
        max_move_bps,
        refresh: Duration::from_secs(2),
        timeout: Duration::from_secs(1),
    }
}

/// The rate from these prices, or the reason why it is withheld.
fn rate_of(prices: &[&str], min_sources: usize) -> Result<String, &'static str> {
    let rate = median_of_near(decimals(prices), &terms(min_sources, None));
    rate.map(|rate| rate.normalize().to_string())
        .map_err(NoRateReason::as_str)
}

#[test]
fn median_is_exact() {
    for (prices, middle) in [
        (&["1.0850"][..], "1.0850"),
        (&["0.1", "0.2"], "0.15"),
        (&["1.0849", "1.0850", "9"], "1.0850"),
        (&["1", "1.0849", "1.0852", "9"], "1.08505"),
        (
            &["1.0000000000000000000000001", "1.0000000000000000000000003"],
            "1.0000000000000000000000002",
        ),
    ] {
        assert_eq!(median(&decimals(prices)), Some(decimal(middle)));
    }
    assert_eq!(median(&[]), None);
}

#[test]
fn prices_are_near_up_to_the_last_digit() {
    for (one, other, bps, near) in [
        ("1", "1.0050", 50, true),
        ("1", "1.0050000000000000000000001", 50, false),
        ("1.0850", "1.0850", 0, true),
        ("0.00001", "0.0000101", 99, false),
        ("0.00001", "0.0000101", 100, true),
        (
            "0.0000000000000000000000000001",
            "79228162514264337593543950335",
            10_000,
            false,
        ),
    ] {
        let (one, other) = (decimal(one), decimal(other));
        assert_eq!(is_near(one, other, bps), near, "{one} {other}");
        assert_eq!(is_near(other, one, bps), near, "{other} {one}");
    }
}

// rule: rates.http.spread
#[test]
fn prices_far_from_the_median_are_dropped() {
    let largest = "79228162514264337593543950335";
    for (prices, min_sources, rate) in [
        (&["1.0850", "1.0851", "9"][..], 2, Ok("1.08505")),
        (&["9", "1.0850", "1.0851"], 2, Ok("1.08505")),
        (&["0.10850", "1.0850", "1.0851"], 2, Ok("1.08505")),
        (&["1.0850", "1.0851", largest], 2, Ok("1.08505")),
        (&["1.0850", "1.0851", "9"], 3, Err("too_far_apart")),
        // Far from each other, near the median.
        (&["1", "1.005", "1.010025"], 3, Ok("1.005")),
        (&["1", "1.005", "1.0100250000001"], 3, Err("too_far_apart")),
        // Two sources that contradict each other: the median is near neither.
        (&["1.0850", "9"], 1, Err("too_far_apart")),
        (&["1", "1", "9", "9"], 2, Err("too_far_apart")),
        (&[largest, largest], 1, Err("too_far_apart")),
        (&["1.0850"], 2, Err("too_few")),
        (&[], 1, Err("too_few")),
    ] {
        assert_eq!(
            rate_of(prices, min_sources),
            rate.map(str::to_owned),
            "{prices:?}"
        );
    }
}

proptest! {
    // rule: rates.http.spread
    #[test]
    fn minority_of_false_prices_moves_the_rate_no_further_than_an_honest_price(
        honest in prop::collection::vec(10_000_i64..=10_050, 2..8),
        mut lies in prop::collection::vec(1_i64..1_000_000, 0..7),
        seed in any::<usize>(),
    ) {
        lies.truncate(honest.len() - 1);
        let mut prices: Vec<i64> = honest.iter().chain(&lies).copied().collect();
        let turns = seed % prices.len();
        prices.rotate_left(turns);
        let prices = prices.into_iter().map(|price| Decimal::new(price, 4)).collect();
        let rate = median_of_near(prices, &terms(honest.len(), None)).unwrap();
        let lowest = Decimal::new(*honest.iter().min().unwrap(), 4);
        let highest = Decimal::new(*honest.iter().max().unwrap(), 4);
        prop_assert!((lowest..=highest).contains(&rate), "{rate}");
    }
}

/// A machine clock that follows the monotonic clock of the test.
struct Following(Instant);

impl Clock for Following {
    fn now(&self) -> Timestamp {
        let millis = i64::try_from(self.0.elapsed().as_millis()).unwrap();
        Timestamp::from_millis(START_MILLIS + millis).unwrap()
    }
}

fn pair() -> PoolId {
    PoolId::parse("EUR-USDT").unwrap()
}

/// Rates that need two of three sources and may move by one percent.
fn rates() -> HttpRates {
    let mut text = "max_age_ms = 10000\nmax_spread_bps = 50\nmin_sources = 2\nmax_move_bps = 100\n\
        [[pairs]]\npair = \"EUR-USDT\"\nspread_bps = 25\n"
        .to_owned();
    for name in ["a", "b", "c"] {
        text.push_str(&format!(
            "[[sources]]\nname = \"{name}\"\nurl = \"http://{name}\"\n\
             prices = [{{ pair = \"EUR-USDT\", mid = \"/m\" }}]\n"
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rates.toml");
    std::fs::write(&path, text).unwrap();
    HttpRates::read(&path, &|_| None, Arc::new(Following(Instant::now()))).unwrap()
}

/// Each source responds with its price or fails. Every response is followed by `count`.
fn answer(rates: &HttpRates, prices: [Option<&str>; 3]) {
    for (source, price) in rates.sources.iter().zip(prices) {
        if let Some(price) = price {
            let now = rates.clock.now();
            source.set_price(pair(), decimal(price), Duration::ZERO, now);
            rates.count();
        }
    }
}

fn mid(rates: &HttpRates) -> Result<String, &'static str> {
    let mid = rates.mid(pair(), &rates.pairs[&pair()]);
    mid.map(|mid| mid.to_string()).map_err(NoRateReason::as_str)
}

async fn seconds(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

// rule: rates.http.move, rates.http.move-accepted
#[tokio::test(start_paused = true)]
async fn jump_of_all_sources_withholds_the_rate_for_a_minute() {
    let rates = rates();
    answer(&rates, [Some("1.0850"); 3]);
    assert_eq!(mid(&rates), Ok("1.085".to_owned()));
    // No quote asks for the rate, so only the responses are checked.
    for _ in 0..30 {
        seconds(2).await;
        answer(&rates, [Some("10.850"); 3]);
    }
    assert_eq!(mid(&rates), Err("moved_too_far"));
    seconds(4).await;
    // All prices are recent enough, but none was made after the minute.
    assert_eq!(mid(&rates), Err("moved_too_far"));
    answer(&rates, [Some("10.850"), None, None]);
    seconds(1).await;
    assert_eq!(mid(&rates), Err("moved_too_far"));
    answer(&rates, [None, Some("10.850"), None]);
    assert_eq!(mid(&rates), Ok("10.85".to_owned()));
}

// rule: rates.http.move-accepted
#[tokio::test(start_paused = true)]
async fn frozen_prices_never_confirm_a_jump() {
    let mut rates = rates();
    rates.terms.max_age = Duration::from_secs(3_600);
    answer(&rates, [Some("1.0850"); 3]);
    seconds(2).await;
    answer(&rates, [Some("10.850"), Some("10.850"), None]);
    // The third source continues to send the true price. It is the minority, so the jump lasts.
    for _ in 0..60 {
        seconds(2).await;
        answer(&rates, [None, None, Some("1.0850")]);
        assert_eq!(mid(&rates), Err("moved_too_far"));
    }
}

// rule: rates.http.move-accepted
#[tokio::test(start_paused = true)]
async fn jump_restarts_after_sources_failed() {
    let rates = rates();
    answer(&rates, [Some("1.0850"); 3]);
    for second in (0..120).step_by(2) {
        seconds(2).await;
        // All sources fail for longer than the maximum age of a price.
        if !(40..54).contains(&second) {
            answer(&rates, [Some("10.850"); 3]);
        }
        let expected = if (50..54).contains(&second) {
            Err("too_few")
        } else if second < 54 + 60 {
            Err("moved_too_far")
        } else {
            Ok("10.85".to_owned())
        };
        assert_eq!(mid(&rates), expected, "{second}");
    }
}

#[tokio::test(start_paused = true)]
async fn move_is_not_checked_before_every_source_was_called() {
    let rates = rates();
    // Two sources agree on a wrong price and are the first to respond after the start.
    answer(&rates, [Some("1.0850"), Some("1.0850"), None]);
    let moves = format!("{:?}", rates.pairs[&pair()].moves.lock());
    assert_eq!(moves, format!("{:?}", Moves::default()));
}

//! Rate sources over HTTP: the median of their prices, and no price if they are silent,
//! late, or disagree.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use acceptance::{ADDRESS, FarRates, World, purchase, sale};
use providers::http_rates::{HttpRates, RatesUnopened};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The common beginning of all files. The refresh interval is long: tests refresh explicitly.
const TERMS: &str = r#"
max_age_ms = 60000
max_spread_bps = 50
min_sources = 2
refresh_ms = 40000
timeout_ms = 20000

[[pairs]]
pair = "EUR-USDT"
spread_bps = 25
"#;

fn variable(name: &str) -> Option<String> {
    match name {
        "ALPHA_TOKEN" => Some("t0ken".to_owned()),
        "EMPTY_TOKEN" => Some(" \n".to_owned()),
        _ => None,
    }
}

fn written(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rates.toml");
    std::fs::write(&file, text).unwrap();
    (folder, file)
}

fn source(name: &str, url: &str, price: &str) -> String {
    format!(
        "[[sources]]\nname = \"{name}\"\nurl = \"{url}\"\n[[sources.prices]]\npair = \"EUR-USDT\"\n{price}\n"
    )
}

/// Rebuilds the service's rate source from this file and requests each source once.
async fn opens(world: &World, file: &str) {
    let (_folder, path) = written(file);
    let rates = HttpRates::read(&path, &variable, world.ticking()).unwrap();
    let rates = Arc::new(rates);
    for number in 0..rates.sources() {
        let rates = Arc::clone(&rates);
        tokio::spawn(async move { rates.follow(number, std::future::pending()).await });
    }
    world.rates().becomes(rates);
}

fn three(bodies: [&str; 3]) -> [FarRates; 3] {
    bodies.map(FarRates::start)
}

fn all_of(sources: &[FarRates]) -> String {
    let mut file = TERMS.to_owned();
    for (number, far) in sources.iter().enumerate() {
        let one = source(&format!("source {number}"), far.url(), "mid = \"/mid\"");
        file.write_str(&one).unwrap();
    }
    file
}

/// The result of an indicative quote: its rate, or the reason for its absence.
async fn quote_result(world: &World) -> String {
    let mut body = purchase("EUR-USDT", "100.00");
    body["type"] = json!("indicative");
    let quote = world.acme().ask("EUR-USDT", &body).await.ok();
    let field = if quote["available"] == true {
        "rate"
    } else {
        "unavailableReason"
    };
    quote[field].as_str().unwrap().to_owned()
}

// rule: rates.http.median, rates.http.spread, rates.http.silence
#[tokio::test]
async fn rate_is_the_median_of_agreeing_sources() {
    let world = World::new().await;
    // The fee is 30, the sources' spread 25: mid × 0.9945.
    for (mids, rate) in [
        (["1.0850", "\"1.0849\"", "1.0853"], "1.0790325"),
        (["1.0849", "1.0851", "no JSON"], "1.0790325"),
        (["1.0849", "1.0851", "0"], "1.0790325"),
        (["1.0849", "1.0851", "1.0849,\"mid\":1.0851"], "1.0790325"),
        (["1.0850", "[]", "{}"], "rate_unavailable"),
        (["1.0849", "1.0851", "1.1"], "1.0790325"),
        (["0.1085", "1.0849", "1.0851"], "1.0790325"),
        (["1.0850", "9", "no JSON"], "rate_unavailable"),
        (["1", "1.005", "1.005"], "0.9994725"),
        (["1", "1.005", "1.0050000001"], "0.9994725"),
        (["1", "1.0050000001", "1.0101"], "rate_unavailable"),
        (["0.30000000000000004", "3e-1", "\"0.3\""], "0.29835"),
    ] {
        let sources = mids.map(|mid| match mid {
            "no JSON" | "[]" | "{}" => FarRates::start(mid),
            _ => FarRates::start(&format!("{{\"mid\":{mid}}}")),
        });
        opens(&world, &all_of(&sources)).await;
        assert_eq!(quote_result(&world).await, rate, "{mids:?}");
    }
    let sources = three([r#"{"mid":1.0849}"#, r#"{"mid":1.0851}"#, r#"{"mid":9}"#]);
    for status in [200, 500, 302, 404, 204] {
        sources[2].says(status, r#"{"mid":9}"#);
        opens(&world, &all_of(&sources)).await;
        assert_eq!(quote_result(&world).await, "1.0790325", "{status}");
    }
    sources[2].is_mute();
    let short_timeout = all_of(&sources).replace("20000", "3000");
    opens(&world, &short_timeout).await;
    assert_eq!(quote_result(&world).await, "1.0790325");
    sources[2].says(500, "");
    let large = format!("{{\"mid\":1.0851,\"pad\":\"{}\"}}", "x".repeat(1_100_000));
    sources[1].says(200, &large);
    opens(&world, &all_of(&sources)).await;
    assert_eq!(quote_result(&world).await, "rate_unavailable");
    world.finish().await;
}

/// Requests quotes until one has this result; gives up after a minute.
async fn wait_for_quote(world: &World, expected: &str) {
    let until = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let found = quote_result(world).await;
        if found == expected {
            return;
        }
        assert!(tokio::time::Instant::now() < until, "{expected}: {found}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

// rule: rates.http.move
#[tokio::test]
async fn quotes_stop_while_all_sources_are_a_decimal_point_off() {
    let world = World::new().await;
    let sources = three([r#"{"mid":1.0850}"#; 3]);
    let bounded = all_of(&sources)
        .replace("min_sources = 2", "min_sources = 2\nmax_move_bps = 200")
        .replace("40000", "50")
        .replace("20000", "5000");
    opens(&world, &bounded).await;
    assert_eq!(quote_result(&world).await, "1.0790325");
    for (mid, rate) in [
        ("10.850", "rate_unavailable"),
        ("1.0950", "1.0889775"),
        ("0.1085", "rate_unavailable"),
        ("1.0850", "1.0790325"),
    ] {
        for source in &sources {
            source.says(200, &format!("{{\"mid\":{mid}}}"));
        }
        wait_for_quote(&world, rate).await;
    }
    world.finish().await;
}

// rule: rates.http.age
#[tokio::test]
async fn stale_price_is_refused() {
    let world = World::new().await;
    let mid = r#"{"mid":1.0850}"#;
    let sources = three([mid; 3]);
    opens(&world, &all_of(&sources)).await;
    assert_eq!(quote_result(&world).await, "1.0790325");
    // The price expires after exactly one minute, even without a refresh.
    world.after(50_000);
    assert_eq!(quote_result(&world).await, "1.0790325");
    world.after(10_001);
    assert_eq!(quote_result(&world).await, "rate_unavailable");
    world.finish().await;
}

// rule: rates.http.age
#[tokio::test]
async fn price_age_starts_when_the_source_made_the_price() {
    let world = World::new().await;
    let two = three([""; 3]);
    for row in [
        r#"rfc3339 "2026-05-25T11:59:30.000Z" "2026-05-25T12:00:01Z" 1.0790325"#,
        r#"rfc3339 "2026-05-25T11:58:59.999Z" "2026-05-25T12:00:01Z" rate_unavailable"#,
        r#"rfc3339 "2026-05-25T12:10:00Z" "2026-05-25T12:00:00Z" rate_unavailable"#,
        r#"rfc3339 "today" "2026-05-25T12:00:00Z" rate_unavailable"#,
        "seconds 1779710400 1779710399.5 1.0790325",
        r#"milliseconds 1779710400000 "1779710370000" 1.0790325"#,
        "milliseconds 1779710339999 1779710400000 rate_unavailable",
    ] {
        let [form, first, second, rate] = row.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let mut file = TERMS.to_owned();
        for (far, at) in two.iter().zip([first, second]) {
            far.says(200, &format!(r#"[{{"price":"1.0850","at":{at}}}]"#));
            let price = format!("mid = \"/0/price\"\ntime = \"/0/at\"\ntime_form = \"{form}\"");
            file.push_str(&source(far.url(), far.url(), &price));
        }
        opens(&world, &file).await;
        assert_eq!(quote_result(&world).await, rate, "{row}");
    }
    world.finish().await;
}

// rule: rates.http.sources
#[tokio::test]
async fn sources_are_requested_as_configured() {
    let world = World::new().await;
    let sources = three([
        r#"{"result":{"EUR/USDT":{"b":["1.0849","3"],"a":["1.0851","1"]}}}"#,
        r#"{"price":0.8}"#,
        r#"{"price":0.8}"#,
    ]);
    let [book, inverse, down] = &sources;
    let url = format!("{}/v1/book?pair=EURUSDT", book.url());
    let pointers = "bid = \"/result/EUR~1USDT/b/0\"\nask = \"/result/EUR~1USDT/a/0\"";
    let headers = "headers = [{ name = \"Authorization\", prefix = \"Bearer \", env = \"ALPHA_TOKEN\" }]\n[[sources.prices]]";
    let one = TERMS.replace("min_sources = 2", "min_sources = 1");
    let asked = source("book", &url, pointers).replacen("[[sources.prices]]", headers, 1);
    opens(&world, &format!("{one}{asked}")).await;
    assert_eq!(quote_result(&world).await, "1.0790325");
    let asked = book.asked();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    assert_eq!(asked[0].path(), "/v1/book?pair=EURUSDT");
    assert_eq!(asked[0].header("authorization"), "Bearer t0ken");
    // Euros per dollar: 1.25 dollars per euro, less 0.55 %.
    opens(
        &world,
        &format!(
            "{one}{}",
            source("inverse", inverse.url(), "mid = \"/price\"\ninverse = true")
        ),
    )
    .await;
    assert_eq!(quote_result(&world).await, "1.243125");
    let sold = world
        .acme()
        .ask("EUR-USDT", &sale("EUR-USDT", "100"))
        .await
        .ok();
    assert_eq!(sold["rate"], "0.7956");
    // A bid above the ask is invalid.
    let crossed = pointers
        .replace("b/0", "x")
        .replace("a/0", "b/0")
        .replace("/x", "/a/0");
    opens(
        &world,
        &format!("{one}{}", source("crossed", &url, &crossed)),
    )
    .await;
    assert_eq!(quote_result(&world).await, "rate_unavailable");
    // A pair outside the file has no price.
    let mut other = purchase("EUR-USDC", "100.00");
    other["destAddress"] = json!(ADDRESS);
    opens(
        &world,
        &format!("{one}{}", source("down", down.url(), "mid = \"/price\"")),
    )
    .await;
    let unpriced: Value = world.acme().ask("EUR-USDC", &other).await.ok();
    assert_eq!(unpriced["unavailableReason"], "rate_unavailable");
    world.finish().await;
}

// rule: rates.http.width
#[tokio::test]
async fn source_with_wide_or_one_sided_book_gives_no_price() {
    let world = World::new().await;
    let pointers = "bid = \"/b/0\"\nask = \"/a/0\"";
    let servers = three([r#"{"mid":1.0850}"#; 3]);
    let [book, mid, _] = &servers;
    let alone = TERMS.replace("min_sources = 2", "min_sources = 1");
    // The fee is 30, the sources' spread 25: mid × 0.9945.
    for (width, bids, asks, rate) in [
        ("", "[1]", "[1.02]", "1.004445"),
        ("", "[1]", "[1.0200001]", "rate_unavailable"),
        ("max_width_bps = 300", "[1]", "[1.03]", "1.0094175"),
        ("max_width_bps = 1", "[1]", "[1.0002]", "rate_unavailable"),
        ("", "[1.0850]", "[1.0850]", "1.0790325"),
        ("", "[1.0851]", "[1.0849]", "rate_unavailable"),
        ("", "[]", "[1.0850]", "rate_unavailable"),
        ("", "[1.0850]", "[]", "rate_unavailable"),
        ("", "[0]", "[1.0850]", "rate_unavailable"),
        ("", "[1.0850]", "[\"0.0\"]", "rate_unavailable"),
        ("", "[null]", "[1.0850]", "rate_unavailable"),
    ] {
        book.says(200, &format!(r#"{{"b":{bids},"a":{asks}}}"#));
        let settings = format!("min_sources = 1\n{width}");
        let terms = alone.replace("min_sources = 1", &settings);
        let only = source("book", book.url(), pointers);
        opens(&world, &format!("{terms}{only}")).await;
        assert_eq!(quote_result(&world).await, rate, "{width} {bids} {asks}");
    }
    // Such a book is a failure of its source, whatever the other sources say.
    let other = source("mid", mid.url(), "mid = \"/mid\"");
    let both = format!("{TERMS}{other}{}", source("book", book.url(), pointers));
    for (bid, ask, rate) in [
        ("1.0840", "1.0860", "1.0790325"),
        ("1.0700", "1.1000", "rate_unavailable"),
    ] {
        book.says(200, &format!(r#"{{"b":[{bid}],"a":[{ask}]}}"#));
        opens(&world, &both).await;
        assert_eq!(quote_result(&world).await, rate, "{bid} {ask}");
    }
    world.finish().await;
}

/// A text of a file, what replaces it, and the fault with its line. `\n` is the end of a line.
const FAULTS: &str = r#"
max_age_ms = 60000\n =>  => 1: max_age_ms: missing
max_age_ms = 60000 => max_age_ms = 59999 => 2: max_age_ms: expected at least 60000 (refresh_ms plus timeout_ms)
max_spread_bps = 50 => max_spread_bps = 10001 => 3: max_spread_bps: expected a whole number from 0 to 10000
min_sources = 2 => min_sources = 0 => 4: min_sources: expected at least one
min_sources = 2 => min_sources = 3 => 9: pairs.pair: expected at least 3 sources (min_sources) of EUR-USDT, found 2
min_sources = 2 => min_sources = 2\nmax_width_bps = 0 => 5: max_width_bps: expected at least 1, found "0"
min_sources = 2 => min_sources = 2\nmax_width_bps = 10001 => 5: max_width_bps: expected a whole number from 0 to 10000
min_sources = 2 => min_sources = 2\nmax_move_bps = 0 => 5: max_move_bps: expected at least 1; omit the key
min_sources = 2 => min_sources = 2\nmax_move_bps = 10001 => 5: max_move_bps: expected a whole number from 0 to 10000
timeout_ms => timeout => 6: timeout: unknown key; the nearest known one is `timeout_ms`
spread_bps = 25 => spread_bps = -1 => 10: pairs.spread_bps: expected
"b"\n => "a"\n => 18: sources.name: expected a name that no other source has
"b"\n => "b\u200B"\n => 18: sources.name: expected visible characters without U+200B
"http://b" => "http://user:hunter2@b" => 19: sources.url: expected http:// or https://
"http://b" => "ftp://b" => 19: sources.url: expected http:// or https://
"/m" => "m" => 16: sources.prices.mid: expected a JSON Pointer such as /data/0/mid, found "m"
mid = "/m" => bid = "/m" => 14: sources.prices: expected either mid, or bid and ask
mid = "/m" => mid = "/m"\ntime_form = "seconds" => 17: sources.prices.time_form: expected the key time too
mid = "/m" => mid = "/m"\ntime = "/t"\ntime_form = "unix" => 18: sources.prices.time_form: expected rfc3339, seconds or milliseconds
[[sources.prices]]\npair = "EUR-USDT" => [[sources.prices]]\npair = "GBP-USDT" => 15: sources.prices.pair: expected a pair of [[pairs]]
"http://a" => "http://a"\nheaders = [{ name = "X-Key", env = "NOT_SET" }] => 14: sources.headers.env: expected a value of printable characters
"http://a" => "http://a"\nheaders = [{ name = "X-Key", prefix = "Bearer ", env = "EMPTY_TOKEN" }] => 14: sources.headers.env: expected a value of printable characters
"http://a" => "http://a"\nheaders = [{ name = "X-Key" }] => 14: sources.headers: expected one of value, env
[[pairs]] => [[pair]] => 8: pair: unknown key
"#;

// rule: rates.http.faults
#[tokio::test]
async fn every_fault_of_a_file_is_named_with_its_line() {
    let good = format!(
        "{TERMS}{}{}",
        source("a", "http://a", "mid = \"/m\""),
        source("b", "http://b", "mid = \"/m\"")
    );
    let faults = |text: &str| {
        let (_folder, path) = written(text);
        let world_clock = Arc::new(acceptance::ManualClock::at(acceptance::START));
        match HttpRates::read(&path, &variable, world_clock) {
            Ok(_) => Vec::new(),
            Err(RatesUnopened::File(faults)) => {
                let named = format!("{}:", path.display());
                let lines = faults.iter().map(ToString::to_string);
                lines.map(|line| line.replacen(&named, "", 1)).collect()
            }
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(faults(&good), Vec::<String>::new());
    for row in FAULTS.trim().lines() {
        let row = row.replace(r"\n", "\n");
        let [from, to, message] = row.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let broken = good.replacen(from, to, 1);
        assert_ne!(broken, good, "{from}");
        let messages = faults(&broken);
        assert!(
            messages.iter().any(|line| line.starts_with(message)),
            "{message}: {messages:#?}"
        );
        assert!(!messages.concat().contains("hunter2"), "{messages:?}");
    }
}

//! The parser of spans: how long a customer can pay, and how long an order usually takes.

use std::ops::RangeInclusive;
use std::time::Duration;

use partner_core::tables::{Field, Section, Shape, Sink};
use partner_core::throttle;

use crate::catalogue::UsualTime;

pub(super) const PAYMENT_USUAL_TIME: Shape = Shape {
    name: "payment_methods.usual_time",
    keys: &["from", "to"],
};
pub(super) const PAYOUT_USUAL_TIME: Shape = Shape {
    name: "payout_methods.usual_time",
    keys: &["from", "to"],
};
pub(super) const SWAP_USUAL_TIME: Shape = Shape {
    name: "swaps.usual_time",
    keys: &["from", "to"],
};

const SPANS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(720);
const PAY_WITHIN_SPAN: &str = "a span from 1s to 720h such as 30m or 72h";
const USUAL_SPAN: &str = "a span of whole seconds from 1s to 720h such as 10m or 24h";

/// How long the customer can pay, if the table says so.
pub(super) fn pay_within(sink: &mut Sink<'_>, table: &Section<'_, '_>) -> Option<Duration> {
    table.field("pay_within")?.read(sink, PAY_WITHIN_SPAN, span)
}

/// How long an order usually takes, if the table says so.
pub(super) fn usual_time(
    sink: &mut Sink<'_>,
    table: &Section<'_, '_>,
    shape: &'static Shape,
) -> Option<UsualTime> {
    let table = table.section(sink, "usual_time", shape)?;
    let first = table.required(sink, "from", USUAL_SPAN);
    let last = table.required(sink, "to", USUAL_SPAN);
    let from = first.as_ref().and_then(|field| whole_seconds(sink, field));
    let to = last.as_ref().and_then(|field| whole_seconds(sink, field));
    let (from, to, first, last) = (from?, to?, first?, last?);
    if to < from {
        let from = first.text().unwrap_or_default();
        last.refuse(sink, &format!("expected at least from, {from}"));
    }
    Some(UsualTime { from, to })
}

fn whole_seconds(sink: &mut Sink<'_>, field: &Field<'_, '_>) -> Option<Duration> {
    field.read(sink, USUAL_SPAN, |text| {
        span(text).filter(|span| span.subsec_nanos() == 0)
    })
}

fn span(text: &str) -> Option<Duration> {
    throttle::parse_span(text).filter(|span| SPANS.contains(span))
}

#[cfg(test)]
mod tests {
    use kernel::Asset;
    use kernel::rates::Side;

    use crate::catalogue::{Catalogue, UsualTime};

    const FILE: &str = r#"
[[currencies]]
code = "EUR"
symbol = "€"
name = "Euro"

[[countries]]
code = "DE"
name = "Germany"
currency = "EUR"

[[assets]]
symbol = "BTC"
name = "Bitcoin"
decimals = 8
limits = { currency = "EUR", min_amount = 1, max_amount = 9 }
networks = [{ chain = "bitcoin" }]

[[payment_methods]]
id = "sepa"
name = "SEPA transfer"
currency = "EUR"

[[payout_methods]]
id = "sepa"
name = "SEPA transfer"
currency = "EUR"

[[swaps]]
currency = "EUR"
"#;

    /// The tables with a usual time, with the line after each header.
    const TABLES: [(&str, u32); 3] = [
        ("payment_methods", 20),
        ("payout_methods", 25),
        ("swaps", 30),
    ];

    /// What a table says, and the error.
    const FAULTS: &str = r#"
"24h" => : expected a table, written [TABLE.usual_time], found "24h"
{ from = "10m" } => .to: missing; expected a span of whole seconds from 1s to 720h
{ to = "10m" } => .from: missing; expected a span of whole seconds from 1s to 720h
{ from = "0s", to = "10m" } => .from: expected a span of whole seconds from 1s to 720h
{ from = "1500ms", to = "10m" } => .from: expected a span of whole seconds from 1s to 720h
{ from = 10, to = "10m" } => .from: expected a span of whole seconds from 1s to 720h
{ from = "1m", to = "721h" } => .to: expected a span of whole seconds from 1s to 720h
{ from = "1m", to = "1d" } => .to: expected a span of whole seconds from 1s to 720h
{ from = "1h", to = "59m" } => .to: expected at least from, 1h, found "59m"
{ from = "1h", to = "2h", after = "3h" } => .after: unknown key
"#;

    /// The usual time of the only entry of each of the tables, in seconds.
    fn usual_times(catalogue: &Catalogue) -> [Option<(u64, u64)>; 3] {
        let euro = Asset::fiat("EUR").unwrap();
        let method = |side| catalogue.method(side, euro, "sepa").unwrap().usual_time;
        let of_swaps = catalogue.swaps_in(euro).unwrap().usual_time;
        let found = [method(Side::OnRamp), method(Side::OffRamp), of_swaps];
        let seconds = |it: UsualTime| (it.from.as_secs(), it.to.as_secs());
        found.map(|it| it.map(seconds))
    }

    fn with(table: &str, usual_time: &str) -> String {
        let header = format!("[[{table}]]\n");
        FILE.replacen(&header, &format!("{header}usual_time = {usual_time}\n"), 1)
    }

    // rule: gate.catalogue.usual-time, gate.catalogue.faults
    #[test]
    fn method_and_swap_state_how_long_they_usually_take() {
        assert_eq!(usual_times(&Catalogue::parse(FILE).unwrap()), [None; 3]);
        for (number, (table, line)) in TABLES.into_iter().enumerate() {
            for (written, seconds) in [
                (r#"{ from = "10m", to = "24h" }"#, (600, 86_400)),
                (r#"{ from = "1s", to = "720h" }"#, (1, 2_592_000)),
                (r#"{ from = "2000ms", to = "2s" }"#, (2, 2)),
            ] {
                let catalogue = Catalogue::parse(&with(table, written)).unwrap();
                let mut expected = [None; 3];
                expected[number] = Some(seconds);
                assert_eq!(usual_times(&catalogue), expected, "{table} {written}");
            }
            for row in FAULTS.trim().lines() {
                let (written, told) = row.split_once(" => ").unwrap();
                let told = told.replace("TABLE", table);
                let told = format!("line {line}: {table}.usual_time{told}");
                let faults = Catalogue::parse(&with(table, written)).unwrap_err().0;
                let found: Vec<_> = faults.iter().map(ToString::to_string).collect();
                assert!(
                    matches!(&found[..], [only] if only.starts_with(&told)),
                    "{told}: {found:#?}"
                );
            }
        }
    }

    // rule: gate.catalogue.usual-time
    #[test]
    fn every_built_in_method_and_swap_has_a_usual_time() {
        let catalogue = Catalogue::built_in().unwrap();
        for side in Side::ALL {
            for method in catalogue.methods(side) {
                assert!(method.usual_time.is_some(), "{}", method.id);
            }
        }
        for currency in ["EUR", "GBP", "USD"] {
            let offer = catalogue.swaps_in(Asset::fiat(currency).unwrap());
            assert!(offer.unwrap().usual_time.is_some(), "{currency}");
        }
    }
}

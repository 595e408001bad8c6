//! Prices checked with independent arithmetic: wide integers, calculated only from the printed figures.

use kernel::rates::SourceRate;
use kernel::{Amount, AssetKind, Mid};
use pools_core::pricing::{Mids, PriceError, Priced, price};
use pools_core::profile::{PoolId, PoolTerms};
use pools_core::quote::Side;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use ruint::aliases::U512;
use rust_decimal::Decimal;

use crate::fixtures::money_cases;

const POOLS: [&str; 6] = [
    "EUR-USDT", "EUR-BTC", "JPY-BTC", "KWD-ETH", "USD-USDC", "CLP-USDT",
];

/// A printed decimal as an integer and its power of ten.
fn read(text: &str) -> (U512, U512) {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}").parse().unwrap();
    (digits, ten(fraction.len()))
}

fn ten(power: usize) -> U512 {
    U512::from(10).pow(U512::from(power))
}

/// A client's multiplication: amount × rate, rounded down to `scale` digits, in units of the last digit.
fn multiply(amount: &str, rate: &str, scale: u8) -> U512 {
    let ((amount, below), (rate, under)) = (read(amount), read(rate));
    amount * rate * ten(usize::from(scale)) / (below * under)
}

/// The printed amount in units of its last digit.
fn smallest(amount: &Amount) -> U512 {
    multiply(&amount.to_string(), "1", amount.asset().scale())
}

#[derive(Debug, Clone)]
struct Order {
    pool: PoolId,
    side: Side,
    amount: Amount,
    mids: Mids,
    terms: PoolTerms,
}

impl Order {
    fn price(&self) -> Result<Priced, PriceError> {
        price(&self.pool, self.side, self.amount, &self.mids, &self.terms)
    }

    /// The rate with spread and fee before rounding.
    fn exact_rate(&self) -> (U512, U512) {
        let spread = self
            .mids
            .pair
            .spread_bps
            .min(self.terms.spread_cap_bps)
            .min(50);
        let kept = U512::from(10_000 - spread - self.terms.draw_fee_bps);
        let (mid, below) = read(&self.mids.pair.mid.to_string());
        match self.side {
            Side::OnRamp => (mid * kept, below * U512::from(10_000)),
            Side::OffRamp => (below * kept, mid * U512::from(10_000)),
        }
    }

    /// The rate in units of its last decimal, and the number of its decimals.
    fn cut_rate(&self) -> (U512, usize) {
        let (exact, below) = self.exact_rate();
        let mut scales = 8..=28;
        let scale = scales.find(|scale| exact * ten(*scale) / below >= ten(7));
        let scale = scale.unwrap_or(28);
        (exact * ten(scale) / below, scale)
    }
}

prop_compose! {
    fn magnitude(digits: u32)(power in 0..digits)(number in 1..=10_i64.pow(power + 1)) -> i64 {
        number
    }
}

prop_compose! {
    fn order()(
        which in 0..POOLS.len(), sale in any::<bool>(), steps in magnitude(17), mid in magnitude(15),
        scale in 0..13_u32, usdt in magnitude(6), spread in 0..120_u16, cap in 0..80_u16, fee in 0..=5_000_u16,
    ) -> Order {
        let pool = PoolId::parse(POOLS[which]).unwrap();
        let (side, asset) = if sale { (Side::OffRamp, pool.crypto()) } else { (Side::OnRamp, pool.fiat()) };
        let step = 10_i64.pow(u32::from(8 - asset.scale()));
        let pair = SourceRate { mid: Mid::new(Decimal::new(mid, scale)).unwrap(), spread_bps: spread };
        let usdt = if pool.crypto().code() == "USDT" { pair.mid } else { Mid::new(Decimal::new(usdt, 4)).unwrap() };
        Order {
            pool,
            side,
            amount: Amount::from_units(steps.min(1_000_000_000_000_000_000 / step) * step, asset).unwrap(),
            mids: Mids { pair, usdt },
            terms: PoolTerms { draw_fee_bps: fee, spread_cap_bps: cap, min_order_usdt: Decimal::ZERO, ..PoolTerms::default() },
        }
    }
}

/// The rate is the exact fraction, rounded down once: to 8 decimals or to 8 significant digits.
fn rate_is_cut_once(order: &Order, printed: &str) -> Result<(), TestCaseError> {
    let (cut, scale) = order.cut_rate();
    let (rate, under) = read(printed);
    prop_assert_eq!(cut * under, rate * ten(scale), "{}", printed);
    let fraction = printed.split_once('.').map_or("", |(_, fraction)| fraction);
    prop_assert!(!fraction.ends_with('0') && fraction.len() <= scale);
    Ok(())
}

proptest! {
    #![proptest_config(money_cases())]

    // rule: pools.price.rate, pools.price.rate-rounding, pools.price.other-leg, pools.price.remainder, pools.price.spread, pools.price.fee-uncapped, pools.quote.amount-side
    #[test]
    fn client_multiplication_gives_same_leg_and_never_exceeds_market(order in order()) {
        let Ok(priced) = order.price() else { return Ok(()) };
        let (input, output) = match order.side {
            Side::OnRamp => (priced.fiat, priced.crypto),
            Side::OffRamp => (priced.crypto, priced.fiat),
        };
        prop_assert_eq!(input, order.amount);
        prop_assert_eq!(output.asset().kind() == AssetKind::Fiat, order.side == Side::OffRamp);

        let rate = priced.rate.to_string();
        rate_is_cut_once(&order, &rate)?;
        let own = multiply(&input.to_string(), &rate, output.asset().scale());
        prop_assert_eq!(own, smallest(&output));

        // The leg is at most the exact product, and less than one unit below the product of the printed rate.
        let (exact, below) = order.exact_rate();
        let (given, scale) = read(&output.to_string());
        let (taken, under) = read(&input.to_string());
        prop_assert!(given * below * under <= taken * exact * scale);
        let (rate, digits) = read(&rate);
        let step = ten(usize::from(output.asset().scale()));
        prop_assert!(taken * rate * scale * step < (given * step + scale) * under * digits);
    }

    // rule: money.out-of-range
    #[test]
    fn order_is_out_of_range_exactly_if_leg_is(order in order()) {
        let (cut, scale) = order.cut_rate();
        let output = match order.side { Side::OnRamp => order.pool.crypto(), Side::OffRamp => order.pool.fiat() };
        let digits = usize::from(output.scale());
        let (taken, under) = read(&order.amount.to_string());
        let leg = taken * cut * ten(digits) / (under * ten(scale));
        let fits = !leg.is_zero() && leg <= ten(10 + digits);
        match order.price() {
            Ok(_) => prop_assert!(fits),
            Err(PriceError::OutOfRange) => prop_assert!(!fits || cut >= ten(28) || value(&order).is_none()),
            Err(fault) => prop_assert!(false, "{}", fault),
        }
    }

    // rule: pools.price.usdt-fiat, pools.price.usdt-crypto, pools.price.usdt-rounding
    #[test]
    fn order_value_is_exact_and_rounded_up_once(order in order()) {
        let Ok(priced) = order.price() else { return Ok(()) };
        prop_assert_eq!(Some(priced.notional), value(&order));
    }

    // rule: pools.quote.limits-inclusive, pools.quote.below-minimum, pools.quote.above-maximum
    #[test]
    fn order_at_limit_is_accepted(order in order(), off in -1_i64..=1) {
        let Ok(priced) = order.price() else { return Ok(()) };
        let limit = Decimal::new(priced.notional + off, 8);
        let (exact, below) = worth(&order);
        let (limit_units, one) = (U512::from((priced.notional + off).unsigned_abs()), ten(8));
        let (exact, limit_units) = (exact * one, limit_units * below);
        let least = Order { terms: PoolTerms { min_order_usdt: limit, ..order.terms.clone() }, ..order };
        prop_assert_eq!(least.price().is_ok(), exact >= limit_units);
        let terms = PoolTerms { min_order_usdt: Decimal::ZERO, max_order_usdt: Some(limit), ..least.terms.clone() };
        let most = Order { terms, ..least };
        prop_assert_eq!(most.price().is_ok(), exact <= limit_units);
    }
}

/// The order's value in USDT, as an exact fraction.
fn worth(order: &Order) -> (U512, U512) {
    let (taken, under) = read(&order.amount.to_string());
    let (usdt, usdt_below) = read(&order.mids.usdt.to_string());
    let (pair, pair_below) = read(&order.mids.pair.mid.to_string());
    match order.side {
        Side::OnRamp => (taken * usdt, under * usdt_below),
        Side::OffRamp if order.pool.crypto().code() == "USDT" => (taken, under),
        Side::OffRamp => (taken * usdt * pair_below, under * usdt_below * pair),
    }
}

/// The order's value in units of 10^-8 USDT, rounded up; `None` above 63 bits.
fn value(order: &Order) -> Option<i64> {
    let (worth, below) = worth(order);
    let up = (worth * ten(8) + below - U512::from(1)) / below;
    i64::try_from(u64::try_from(up).ok()?).ok()
}

// rule: pools.price.rate, pools.price.other-leg
#[test]
fn worked_example_of_money_page_holds() {
    let pool = PoolId::parse("EUR-USDT").unwrap();
    let pair = SourceRate {
        mid: Mid::new(Decimal::new(10_850, 4)).unwrap(),
        spread_bps: 25,
    };
    for (side, input, shown) in [
        (
            Side::OnRamp,
            pool.fiat(),
            "1.0790325 100.00 107.90325 10850000000",
        ),
        (
            Side::OffRamp,
            pool.crypto(),
            "0.91658986 91.65 100 10000000000",
        ),
    ] {
        let order = Order {
            pool,
            side,
            amount: Amount::parse("100", input).unwrap(),
            mids: Mids {
                usdt: pair.mid,
                pair,
            },
            terms: PoolTerms {
                draw_fee_bps: 30,
                ..PoolTerms::default()
            },
        };
        let Priced {
            rate,
            fiat,
            crypto,
            notional,
            ..
        } = order.price().unwrap();
        assert_eq!(format!("{rate} {fiat} {crypto} {notional}"), shown);
    }
}

/// The properties above need orders that have a price.
#[test]
fn most_generated_orders_have_price() {
    let mut runner = TestRunner::deterministic();
    let orders = order();
    let priced = (0..2_000).filter(|_| {
        orders
            .new_tree(&mut runner)
            .unwrap()
            .current()
            .price()
            .is_ok()
    });
    let share = priced.count();
    assert!((1_000..1_900).contains(&share), "{share} of 2000");
}

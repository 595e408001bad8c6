//! Pricing of swaps: both legs from a value in the session's currency.
//!
//! The user sends the least amount of the source that is worth the value at the rate of sales, rounded up. The target is bought with the
//! value less the fees at the rate of purchases, rounded down. So both legs have the rates of the session's currency, the fees are
//! taken once, and the operator keeps the remainder of each rounding.

use kernel::rates::{SPREAD_CEILING_BPS, Side, SourceRate, WHOLE_BPS};
use kernel::{Amount, Asset, Rate};

use super::{FeeSchedule, OutOfRange, Priced, price, price_received};

/// One leg of a swap: an asset, and its rate for the session's currency.
#[derive(Debug, Clone, Copy)]
pub struct SwapLeg<'r> {
    pub asset: Asset,
    pub rate: &'r SourceRate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedSwap {
    /// What the user sends.
    pub sent: Amount,
    /// The value, what the user receives, the fees, and the target per unit of the source before fees.
    pub priced: Priced,
}

/// Prices a swap of a value: `source` is what the user sends, `target` what the user receives.
///
/// # Errors
/// [`OutOfRange`] if a leg rounds to zero, does not cover the fees, or exceeds 10^10.
pub fn price_swap(
    value: Amount,
    source: SwapLeg<'_>,
    target: SwapLeg<'_>,
    schedule: &FeeSchedule,
) -> Result<PricedSwap, OutOfRange> {
    let zero = Amount::zero(value.asset());
    let free = FeeSchedule {
        service_bps: 0,
        service_least: zero,
        network: zero,
    };
    let sale = price_received(value, source.asset, source.rate, &free)?;
    let purchase = price(Side::OnRamp, value, target.asset, target.rate, schedule)?;
    Ok(PricedSwap {
        sent: sale.crypto,
        priced: Priced {
            rate: cross_rate(source.rate, target.rate).ok_or(OutOfRange)?,
            ..purchase
        },
    })
}

/// Target per unit of the source: the rate of the sale times that of the purchase, rounded down once.
fn cross_rate(source: &SourceRate, target: &SourceRate) -> Option<Rate> {
    let whole = u64::from(WHOLE_BPS);
    let kept = |rate: &SourceRate| {
        let cut = rate.spread_bps.min(SPREAD_CEILING_BPS);
        whole.checked_sub(u64::from(cut))
    };
    let exact = target.mid.fraction().over(&source.mid.fraction())?;
    let exact = exact.times_ratio(kept(source)?, whole)?;
    Rate::floor(&exact.times_ratio(kept(target)?, whole)?)
}

#[cfg(test)]
mod tests {
    use kernel::Mid;
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::*;

    fn asset(symbol: &str) -> Asset {
        Asset::crypto(symbol).unwrap()
    }

    fn eur(text: &str) -> Amount {
        Amount::parse(text, Asset::fiat("EUR").unwrap()).unwrap()
    }

    fn rate(mid: &str, spread_bps: u16) -> SourceRate {
        SourceRate {
            mid: Mid::new(Decimal::from_str_exact(mid).unwrap()).unwrap(),
            spread_bps,
        }
    }

    fn schedule(bps: u16, least: &str, network: &str) -> FeeSchedule {
        let euros = |text: &str| match text {
            "0" => Amount::zero(Asset::fiat("EUR").unwrap()),
            _ => eur(text),
        };
        FeeSchedule {
            service_bps: bps,
            service_least: euros(least),
            network: euros(network),
        }
    }

    // rule: gate.price.swap
    #[test]
    fn swap_sends_the_value_and_delivers_it_less_the_fees() {
        let (btc, usdt) = (rate("0.00001", 0), rate("1.0850", 25));
        let source = SwapLeg {
            asset: asset("BTC"),
            rate: &btc,
        };
        let target = SwapLeg {
            asset: asset("USDT"),
            rate: &usdt,
        };
        let swap = price_swap(eur("100.00"), source, target, &schedule(100, "0", "0.50")).unwrap();
        // 100 / 100000; (100 - 1.50) x 1.0822875 = 106.60531875, rounded down; 100000 x 1.0822875.
        assert_eq!(swap.sent.to_string(), "0.001");
        assert_eq!(swap.priced.crypto.to_string(), "106.605318");
        assert_eq!(swap.priced.fiat.to_string(), "100.00");
        assert_eq!(swap.priced.fees.total.to_string(), "1.50");
        assert_eq!(swap.priced.rate.to_string(), "108228.75");
    }

    // rule: gate.price.swap
    #[test]
    fn sent_amount_is_rounded_up() {
        let (usdc, usdt) = (rate("1.1", 50), rate("1", 0));
        let source = SwapLeg {
            asset: asset("USDC"),
            rate: &usdc,
        };
        let target = SwapLeg {
            asset: asset("USDT"),
            rate: &usdt,
        };
        let swap = price_swap(eur("10.00"), source, target, &schedule(0, "0", "0")).unwrap();
        // 10 / 0.90454545 = 11.0552764…
        assert_eq!(swap.sent.to_string(), "11.055277");
        assert_eq!(swap.priced.crypto.to_string(), "10");
    }

    // rule: gate.price.swap, gate.price.out-of-range
    #[test]
    fn swap_that_does_not_cover_its_fees_is_refused() {
        let even = rate("1", 0);
        let leg = |symbol| SwapLeg {
            asset: asset(symbol),
            rate: &even,
        };
        for value in ["0.99", "1.00"] {
            let fees = schedule(0, "1.00", "0");
            let refused = price_swap(eur(value), leg("USDC"), leg("USDT"), &fees);
            assert_eq!(refused, Err(OutOfRange), "{value}");
        }
    }

    /// Pairs of assets with 6 and 8 digits.
    const PAIRS: [(&str, &str); 4] = [
        ("USDC", "USDT"),
        ("BTC", "USDT"),
        ("USDT", "BTC"),
        ("ETH", "BTC"),
    ];

    /// A rate, and one unit of its last digit: of eight decimals, or of eight significant digits if these are finer.
    fn with_last_digit(rate: &Rate) -> (Decimal, Decimal) {
        let value = Decimal::from_str_exact(&rate.to_string()).unwrap();
        let is_finest = |scale: &u32| value >= Decimal::new(10_000_000, *scale);
        let scale = (8..=28).find(is_finest).unwrap_or(28);
        (value, Decimal::new(1, scale))
    }

    proptest! {
        // rule: gate.price.swap
        #[test]
        fn swap_conserves_value_within_one_unit_and_never_gives_one_away(
            pair in prop::sample::select(PAIRS.to_vec()), mids in [1_000_i64..100_000_000, 1_000_i64..100_000_000],
            spreads in [0_u16..80, 0_u16..80], cents in 1_i64..1_000_000_000, bps in 0_u16..1_000, least in 1_i64..1_000,
            network in 0_i64..1_000,
        ) {
            let currency = Asset::fiat("EUR").unwrap();
            let euros = |cents: i64| Amount::from_units(cents * 1_000_000, currency).unwrap();
            let of = |micros, spread_bps| SourceRate { mid: Mid::new(Decimal::new(micros, 6)).unwrap(), spread_bps };
            let (from, to) = (of(mids[0], spreads[0]), of(mids[1], spreads[1]));
            let fees = FeeSchedule { service_bps: bps, service_least: euros(least), network: euros(network) };
            let value = euros(cents);
            let source = SwapLeg { asset: asset(pair.0), rate: &from };
            let target = SwapLeg { asset: asset(pair.1), rate: &to };
            let Ok(swap) = price_swap(value, source, target, &fees) else { return Ok(()) };
            let free = FeeSchedule { service_bps: 0, service_least: euros(0), network: euros(0) };
            // What is sent covers the value, and one unit less does not.
            let sale = |units| {
                let sent = Amount::from_units(units, source.asset)?;
                price(Side::OffRamp, sent, currency, &from, &free).ok()
            };
            let sold = sale(swap.sent.units()).unwrap();
            prop_assert!(sold.fiat.units() >= value.units());
            let unit = 10_i64.pow(8 - u32::from(source.asset.scale()));
            prop_assert!(sale(swap.sent.units() - unit).is_none_or(|less| less.fiat.units() < value.units()));
            // What is received is what the value buys after the fees.
            let bought = price(Side::OnRamp, value, target.asset, &to, &fees).unwrap();
            prop_assert_eq!((swap.priced.crypto, swap.priced.fees, swap.priced.fiat), (bought.crypto, bought.fees, value));
            prop_assert!(swap.priced.fees.service.units() >= fees.service_least.units());
            // The exchange rate is the product of both single rates. Each of the three is rounded down by less than its last digit.
            let [(sells, of_sale), (buys, of_purchase), (swaps, of_swap)] =
                [sold.rate, bought.rate, swap.priced.rate].map(|rate| with_last_digit(&rate));
            prop_assert!(swaps + of_swap > sells * buys, "{} is less than {} x {}", swaps, sells, buys);
            let most = (sells + of_sale) * (buys + of_purchase);
            prop_assert!(swaps < most, "{} is more than {} x {}", swaps, sells, buys);
            // Sold again at the same rates, the target is worth no more than the value less the fees.
            if let Ok(back) = price(Side::OffRamp, swap.priced.crypto, currency, &to, &free) {
                prop_assert!(back.fiat.units() <= value.units() - swap.priced.fees.total.units());
            }
        }
    }
}

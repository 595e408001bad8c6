//! The terms of a payment, as the gate sends them to its rail.

use kernel::Timestamp;
use serde_json::{Map, Value, json};

/// Addresses of two networks. Each fails the check of the other one.
pub(super) const TRON_ADDRESS: &str = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8";
pub(super) const EVM_ADDRESS: &str = "0x50656e73746f636B2073616e64626f782065766D";
/// Less than any payment of a campaign.
pub(super) const LESS: &str = "1.5";

#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::gate) struct Terms(pub(in crate::gate) Value);

/// What the customer pays: fiat if it has no network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paid<'t> {
    pub(super) amount: &'t str,
    code: &'t str,
    pub(super) network: Option<&'t str>,
}

impl Terms {
    pub(super) fn text(&self, field: &str) -> &str {
        let found = self.0.get(field).and_then(Value::as_str);
        found.unwrap_or_default()
    }

    /// The hundredths of the fiat amount, which choose the end of the payment.
    pub(super) fn hundredths(&self) -> &str {
        let parts = self.text("fiat_amount").rsplit_once('.');
        parts.map_or("", |(_, hundredths)| hundredths)
    }

    /// Whether the payment takes longer and its user may cancel it meanwhile.
    pub(super) fn is_slow(&self) -> bool {
        let hosted = self.0.get("wallet_address").or(self.0.get("payout"));
        self.hundredths() == "33" && hosted.is_some()
    }

    pub(super) fn paid(&self) -> Paid<'_> {
        let (amount, code, network) = match self.text("kind") {
            "pay_in" => ("fiat_amount", "currency", None),
            "pay_out" => ("crypto_amount", "asset", Some("network")),
            _ => ("source_amount", "source_asset", Some("source_network")),
        };
        Paid {
            amount: self.text(amount),
            code: self.text(code),
            network: network.map(|field| self.text(field)),
        }
    }

    /// True instructions.
    pub(super) fn instructions(&self, id: &str) -> Map<String, Value> {
        let paid = self.paid();
        let (asset, network) = match paid.network {
            None => (self.text("asset"), self.text("network")),
            Some(network) => (paid.code, network),
        };
        let mut named = texts(&[
            ("reference", id),
            ("amount", paid.amount),
            ("currency", self.text("currency")),
            ("asset", asset),
            ("network", network),
        ]);
        if let Some(network) = paid.network {
            named.insert("address".to_owned(), json!(address(network)));
        }
        named
    }
}

impl Paid<'_> {
    /// What has arrived, as reports say it.
    pub(super) fn received(&self, amount: &str, at: Timestamp) -> Map<String, Value> {
        let at = at.to_string();
        match self.network {
            None => texts(&[
                ("amount", amount),
                ("at", at.as_str()),
                ("currency", self.code),
            ]),
            Some(network) => texts(&[
                ("amount", amount),
                ("at", at.as_str()),
                ("asset", self.code),
                ("network", network),
            ]),
        }
    }

    /// The amount with digits that no asset has. The gate cuts them off.
    pub(super) fn with_more_digits(&self) -> String {
        let point = if self.amount.contains('.') { "" } else { "." };
        format!("{}{point}000000000009", self.amount)
    }

    /// A larger amount.
    pub(super) fn more(&self) -> String {
        format!("9{}", self.amount)
    }
}

fn texts(named: &[(&str, &str)]) -> Map<String, Value> {
    let named = named.iter();
    named
        .map(|(name, text)| ((*name).to_owned(), json!(text)))
        .collect()
}

/// An address of a network.
fn address(network: &str) -> &'static str {
    match network {
        "tron" => TRON_ADDRESS,
        _ => EVM_ADDRESS,
    }
}

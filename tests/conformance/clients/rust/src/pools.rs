//! A purchase.

use pools_client::apis::Error;
use pools_client::apis::configuration::Configuration;
use pools_client::apis::discovery_api::{get_capabilities, list_pools};
use pools_client::apis::funds_api::{GetBalanceError, get_balance, list_ledger_entries};
use pools_client::apis::quotes_api::create_quote;
use pools_client::apis::trades_api::{get_trade, get_transaction_by_quote, transact};
use pools_client::models::{QuoteRequest, Side, TradeStatus, TransactRequest};
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::said::{key, setting, until};

const POOL: &str = "EUR-USDT";

/// The generated calls send a token once for each kind of key that an operation takes, and `listPools` takes two: a header that
/// is repeated is refused. Therefore the client sends the token and the calls do not.
fn with_key(key: &str) -> Result<Client, Box<dyn std::error::Error>> {
    let bearer = HeaderValue::from_str(&format!("Bearer {key}"))?;
    let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
    Ok(Client::builder().default_headers(headers).build()?)
}

pub async fn run() -> Result<Value, Box<dyn std::error::Error>> {
    let api = &Configuration {
        base_path: setting("POOLS_URL")?,
        client: with_key(&setting("SECRET_KEY")?)?,
        ..Configuration::default()
    };
    let listed = list_pools(api).await?.pools;
    assert!(listed.iter().any(|pool| pool.id == POOL && pool.available));
    let networks = get_capabilities(api, POOL).await?.supported_networks;
    assert!(networks.iter().any(|network| network == "tron"));

    let [fiat, crypto, amount] = ["EUR", "USDT", "100.00"].map(str::to_owned);
    let mut wanted = QuoteRequest::new(Side::OnRamp, fiat, crypto, amount);
    wanted.dest_address = Some(Some(setting("ADDRESS")?));
    let quote = create_quote(api, POOL, wanted).await?;
    assert!(quote.available);
    let quote_id = quote.quote_id.ok_or("the quote is not firm")?;

    let key = key();
    let order = TransactRequest::new(quote_id.clone());
    let ack = transact(api, POOL, &key, order.clone()).await?;
    let again = transact(api, POOL, &key, order).await?;
    assert!(again.transact_id == ack.transact_id && again.idempotent);
    until(
        async || get_transaction_by_quote(api, &quote_id).await,
        |seen| seen.status == TradeStatus::Settled,
    )
    .await?;

    let trade = get_trade(api, &ack.transact_id).await?;
    assert_eq!(
        (trade.status, trade.fiat_amount.as_str()),
        (TradeStatus::Settled, "100.00")
    );
    let page = list_ledger_entries(api, Some("EUR"), Some(1), None, None, None).await?;
    assert_eq!(page.entries[0].delta, "-100.00");
    match get_balance(api, "EUR-NOPE").await {
        Err(Error::ResponseError(refusal)) => match refusal.entity {
            Some(GetBalanceError::Status401(error) | GetBalanceError::Status404(error)) => {
                assert_eq!(error.code, "resource_not_found")
            }
            other => return Err(format!("not a typed refusal: {other:?}").into()),
        },
        other => return Err(format!("not refused: {other:?}").into()),
    }
    Ok(json!({ "transactId": ack.transact_id }))
}

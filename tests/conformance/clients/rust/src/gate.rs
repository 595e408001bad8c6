//! A session, a pay-in and a pay-out.

use std::collections::HashMap;
use std::error::Error;

use gate_client::apis::capabilities_api::list_countries;
use gate_client::apis::configuration::Configuration;
use gate_client::apis::quotes_api::{lock_quote, preview_quotes};
use gate_client::apis::rails_api::{
    create_pay_in, create_pay_out, retrieve_pay_in, retrieve_pay_out,
};
use gate_client::apis::sessions_api::{create_session, list_sessions, retrieve_session};
use gate_client::models::{
    CreateSessionRequest, Flow, GateSession, LockQuoteRequest, PayInStatus, PayOutStatus,
    PreviewQuotesRequest, RedeemRequest, SessionStatus, Side, SignedQuote,
};
use serde_json::{Value, json};

use crate::said::{key, setting, until};

type Done<T> = Result<T, Box<dyn Error>>;

pub async fn run() -> Done<Value> {
    let api = &Configuration {
        base_path: setting("GATE_URL")?,
        bearer_access_token: Some(setting("SECRET_KEY")?),
        ..Configuration::default()
    };
    plan(api).await?;
    let session = opened(api, Flow::OnRamp, "100.00").await?;
    assert_eq!(session.status, SessionStatus::Open);
    assert!(session.client_secret.is_some());
    let read = retrieve_session(api, &session.id).await?;
    assert!(read.client_secret.is_none());
    assert_eq!(read.metadata["order"], "A-1");
    let page = list_sessions(api, Some(5), None, Some(SessionStatus::Open), None, None).await?;
    assert_eq!(page.data[0].id, session.id);

    let quote = locked(api, Side::OnRamp, "100.00").await?;
    let redeem = RedeemRequest::new(quote.id, session.id.clone());
    let pay_in = create_pay_in(api, &key(), redeem.clone()).await?;
    let ended = until(
        async || retrieve_pay_in(api, &pay_in.id).await,
        |seen| seen.status != PayInStatus::Processing,
    )
    .await?;
    assert_eq!(ended.status, PayInStatus::Settled);
    assert!(ended.settled_at.is_some());
    let late = create_pay_in(api, &key(), redeem).await;
    assert!(format!("{late:?}").contains("session_not_open"), "{late:?}");

    let sale = locked(api, Side::OffRamp, "50").await?;
    let seller = opened(api, Flow::OffRamp, &sale.fiat_amount).await?;
    let pay_out = create_pay_out(api, &key(), RedeemRequest::new(sale.id, seller.id)).await?;
    until(
        async || retrieve_pay_out(api, &pay_out.id).await,
        |seen| seen.status == PayOutStatus::Settled,
    )
    .await?;
    Ok(json!({ "session": session.id, "payIn": pay_in.id, "payOut": pay_out.id }))
}

/// Available assets and their limits.
async fn plan(api: &Configuration) -> Done<()> {
    let countries = list_countries(api, None, Some(true)).await?.data;
    assert!(countries.iter().any(|country| country.country_code == "DE"));
    let [currency, asset, amount] = ["EUR", "USDT", "100.00"].map(str::to_owned);
    let order = PreviewQuotesRequest::new(currency, asset, amount, Side::OnRamp);
    let options = preview_quotes(api, order).await?.options;
    assert!(options.iter().any(|option| option.payment_method == "sepa"));
    Ok(())
}

async fn opened(api: &Configuration, flow: Flow, amount: &str) -> Done<GateSession> {
    let [amount, currency] = [amount, "EUR"].map(str::to_owned);
    let mut wanted = CreateSessionRequest::new(amount, currency, setting("RETURN_URL")?);
    wanted.flow = Some(Some(flow));
    wanted.target_token = Some(Some("USDT".to_owned()));
    let metadata = [("order", json!("A-1")), ("lines", json!([1, 2]))];
    let metadata = metadata.map(|(name, value)| (name.to_owned(), value));
    wanted.metadata = Some(Some(HashMap::from(metadata)));
    Ok(create_session(api, &key(), wanted).await?)
}

async fn locked(api: &Configuration, side: Side, amount: &str) -> Done<SignedQuote> {
    let [currency, asset, amount, method] = ["EUR", "USDT", amount, "sepa"].map(str::to_owned);
    let order = LockQuoteRequest::new(currency, asset, amount, side, method);
    Ok(lock_quote(api, &key(), order).await?)
}

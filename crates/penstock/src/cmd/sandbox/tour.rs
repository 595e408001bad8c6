//! What the sandbox prints: credentials, and calls ready to paste.

use std::net::SocketAddr;

use super::demo::Demo;

/// Where the tour has crypto delivered: an address that nobody owns.
pub(super) const DESTINATION: &str = "0x52908400098527886E0F7030069857D2E4169EE7";

/// The whole tour of the main job, in the order in which it is done.
pub(super) fn text(demo: &Demo, pools: SocketAddr, gate: SocketAddr, folder: &str) -> String {
    let Demo {
        partner,
        secret_key,
        publishable_key,
        webhook_secret,
    } = demo;
    format!(
        r#"Penstock sandbox: no real money. Data and credentials are kept in {folder}.

  partner          {partner}
  secret key       {secret_key}
  publishable key  {publishable_key}
  webhook secret   {webhook_secret} (events go to http://127.0.0.1:9999/pools and /gate)
  contracts        http://{pools}/openapi/pools-v1.yaml http://{gate}/openapi/gate-v1.yaml
  documentation    http://{pools}/docs http://{gate}/docs

Paste these into another terminal. A firm quote lives 15 seconds.

export BASE=http://{pools}/v1
export GATE=http://{gate}/v1
export SK={secret_key}
export PK={publishable_key}

# 1. Discover the pools, and what you may do in one.
curl -s $BASE/pools -H "Authorization: Bearer $PK"; echo
curl -s $BASE/pools/EUR-USDT/capabilities -H "Authorization: Bearer $SK"; echo

# 2. A firm quote, and its execution. Repeating the second call executes nothing twice.
ANSWER=$(curl -s $BASE/pools/EUR-USDT/quote -H "Authorization: Bearer $SK" -H 'Content-Type: application/json' \
  -d '{{"side":"on_ramp","fiatCurrency":"EUR","cryptoCurrency":"USDT","amount":"100.00","cryptoNetwork":"ethereum","destAddress":"{DESTINATION}"}}')
QUOTE=$(echo "$ANSWER" | sed -n 's/.*"quoteId":"\([^"]*\)".*/\1/p'); echo "$ANSWER"
curl -s $BASE/pools/EUR-USDT/transact -H "Authorization: Bearer $SK" -H 'Content-Type: application/json' \
  -H "Idempotency-Key: $QUOTE" -d "{{\"quoteId\":\"$QUOTE\"}}"; echo

# 3. Poll until it is settled.
curl -s $BASE/pools/transactions/$QUOTE -H "Authorization: Bearer $SK"; echo

# 4. Reconcile.
curl -s "$BASE/pools/trades?limit=5" -H "Authorization: Bearer $SK"; echo
curl -s $BASE/pools/EUR-USDT/balance -H "Authorization: Bearer $SK"; echo
curl -s "$BASE/pools/ledger?limit=5" -H "Authorization: Bearer $SK"; echo
curl -s $BASE/pools/funding -H "Authorization: Bearer $SK"; echo

# 5. A hosted session: create it, start its widget as a browser would, and pay it by hand.
ANSWER=$(curl -s $GATE/gate_sessions -H "Authorization: Bearer $SK" -H 'Content-Type: application/json' \
  -H "Idempotency-Key: tour-$(date +%s)" -d '{{"amount":"100.00","currency":"EUR","return_url":"https://shop.example/done"}}')
SESSION=$(echo "$ANSWER" | sed -n 's/.*"id":"\(gs_[^"]*\)".*/\1/p'); echo "$ANSWER"
SECRET=$(echo "$ANSWER" | sed -n 's/.*"client_secret":"\([^"]*\)".*/\1/p')
curl -s $GATE/embed/bootstrap -H "Authorization: Bearer $PK" -H 'Origin: https://shop.example' \
  -H 'Content-Type: application/json' -d "{{\"clientSecret\":\"$SECRET\"}}"; echo
curl -s -X POST $GATE/test_helpers/sessions/$SESSION/complete -H "Authorization: Bearer $SK"; echo
curl -s "$GATE/transactions?session_id=$SESSION" -H "Authorization: Bearer $SK"; echo

# 6. What can be bought and sold where, and what an order would cost.
curl -s "$GATE/capabilities/eligibility?country_code=DE&currency=EUR&asset=USDT" -H "Authorization: Bearer $SK"; echo
curl -s $GATE/quotes/preview -H "Authorization: Bearer $SK" -H 'Content-Type: application/json' \
  -d '{{"currency":"EUR","asset":"USDT","amount":"100.00","side":"on_ramp"}}'; echo

# 7. A signed quote locks the rate for a minute; a pay-in redeems it for a session, which it completes once it has settled.
ANSWER=$(curl -s $GATE/quotes -H "Authorization: Bearer $SK" -H 'Content-Type: application/json' -H "Idempotency-Key: quote-$(date +%s)" \
  -d '{{"currency":"EUR","asset":"USDT","amount":"100.00","side":"on_ramp","payment_method":"sepa"}}')
SIGNED=$(echo "$ANSWER" | sed -n 's/.*"id":"\(qt_[^"]*\)".*/\1/p'); echo "$ANSWER"
ANSWER=$(curl -s $GATE/gate_sessions -H "Authorization: Bearer $SK" -H 'Content-Type: application/json' \
  -H "Idempotency-Key: session-$(date +%s)" -d '{{"amount":"100.00","currency":"EUR","return_url":"https://shop.example/done"}}')
SESSION=$(echo "$ANSWER" | sed -n 's/.*"id":"\(gs_[^"]*\)".*/\1/p')
ANSWER=$(curl -s $GATE/rails/pay_ins -H "Authorization: Bearer $SK" -H 'Content-Type: application/json' \
  -H "Idempotency-Key: pay-in-$(date +%s)" -d "{{\"quote_id\":\"$SIGNED\",\"session_id\":\"$SESSION\"}}")
PAYIN=$(echo "$ANSWER" | sed -n 's/.*"id":"\(pi_[^"]*\)".*/\1/p'); echo "$ANSWER"; sleep 1
curl -s $GATE/rails/pay_ins/$PAYIN -H "Authorization: Bearer $SK"; echo

# An amount's fraction chooses what happens: 100.21 settles on the second poll, 100.31 fails,
# 100.32 is released, 100.41 is returned after it settled, 100.51 is refused at transact; a pay-in of 100.31 fails.
"#
    )
}

"""The contract's list of operation ids, their callers and events per published document."""

POOLS = {
    "listPools": ("GET", "/v1/pools"),
    "getCapabilities": ("GET", "/v1/pools/{id}/capabilities"),
    "createQuote": ("POST", "/v1/pools/{id}/quote"),
    "transact": ("POST", "/v1/pools/{id}/transact"),
    "getQuote": ("GET", "/v1/pools/quotes/{quoteId}"),
    "rejectQuote": ("POST", "/v1/pools/quotes/{quoteId}/reject"),
    "getTransactionByQuote": ("GET", "/v1/pools/transactions/{quoteId}"),
    "listTrades": ("GET", "/v1/pools/trades"),
    "getTrade": ("GET", "/v1/pools/trades/{transactId}"),
    "getBalance": ("GET", "/v1/pools/{id}/balance"),
    "getFundingInstructions": ("GET", "/v1/pools/funding"),
    "listLedgerEntries": ("GET", "/v1/pools/ledger"),
}
POOLS_EVENTS = {"pool.transaction.settled", "pool.transaction.failed", "pool.transaction.released"}

GATE = {
    "listSessions": ("GET", "/v1/gate_sessions"),
    "createSession": ("POST", "/v1/gate_sessions"),
    "retrieveSession": ("GET", "/v1/gate_sessions/{id}"),
    "cancelSession": ("POST", "/v1/gate_sessions/{id}/cancel"),
    "listCountries": ("GET", "/v1/capabilities/countries"),
    "listCurrencies": ("GET", "/v1/capabilities/currencies"),
    "listAssets": ("GET", "/v1/capabilities/assets"),
    "getAsset": ("GET", "/v1/capabilities/assets/{symbol}"),
    "listPaymentMethods": ("GET", "/v1/capabilities/payment-methods"),
    "listPayoutMethods": ("GET", "/v1/capabilities/payout-methods"),
    "checkEligibility": ("GET", "/v1/capabilities/eligibility"),
    "previewQuotes": ("POST", "/v1/quotes/preview"),
    "listTransactions": ("GET", "/v1/transactions"),
    "retrieveTransaction": ("GET", "/v1/transactions/{refid}"),
    "createEmbedToken": ("POST", "/v1/embed/bootstrap"),
    "retrieveEmbedOutcome": ("POST", "/v1/embed/outcome"),
    "getBranding": ("GET", "/v1/branding"),
    "updateBranding": ("PATCH", "/v1/branding"),
    "listPartnerWebhookDeliveries": ("GET", "/v1/webhooks/deliveries"),
    "replayWebhookDelivery": ("POST", "/v1/webhooks/deliveries/{id}/replay"),
    "sendTestWebhook": ("POST", "/v1/webhooks/test"),
    "createCustomer": ("POST", "/v1/customers"),
    "listCustomers": ("GET", "/v1/customers"),
    "getCustomer": ("GET", "/v1/customers/{id}"),
    "updateCustomer": ("PATCH", "/v1/customers/{id}"),
    "deleteCustomer": ("DELETE", "/v1/customers/{id}"),
    "lockQuote": ("POST", "/v1/quotes"),
    "retrieveSignedQuote": ("GET", "/v1/quotes/{id}"),
    "createPayIn": ("POST", "/v1/rails/pay_ins"),
    "retrievePayIn": ("GET", "/v1/rails/pay_ins/{id}"),
    "createPayOut": ("POST", "/v1/rails/pay_outs"),
    "retrievePayOut": ("GET", "/v1/rails/pay_outs/{id}"),
}
GATE_EVENTS = {
    *(f"gate_session.{what}" for what in ("created", "processing", "completed", "failed", "cancelled", "expired")),
    *("kyc.required", "gate_session.kyc_package_accepted", "quote.consumed", "webhook.test"),
    *(f"rail.pay_in.{what}" for what in ("processing", "settled", "failed", "cancelled")),
    *(f"rail.pay_out.{what}" for what in ("processing", "settled", "failed")),
    *(f"customer.{what}" for what in ("created", "updated", "deleted")),
}

HELPERS = {
    "completeTestSession": ("POST", "/v1/test_helpers/sessions/{id}/complete"),
    "failTestSession": ("POST", "/v1/test_helpers/sessions/{id}/fail"),
}

EMBED = {
    "retrieveEmbedSession": ("GET", "/v1/embed/session"),
    "listEmbedOptions": ("GET", "/v1/embed/options"),
    "cancelEmbedSession": ("POST", "/v1/embed/cancel"),
    "createEmbedVerification": ("POST", "/v1/embed/verification"),
    "createEmbedQuote": ("POST", "/v1/embed/quotes"),
    "createEmbedPayment": ("POST", "/v1/embed/payments"),
    "cancelEmbedPayment": ("POST", "/v1/embed/payments/{id}/cancel"),
    "sendTestPayment": ("POST", "/v1/embed/test_helpers/payments/{id}/send"),
    "declineTestPayment": ("POST", "/v1/embed/test_helpers/payments/{id}/decline"),
    "approveTestVerification": ("POST", "/v1/embed/test_helpers/verification/approve"),
    "rejectTestVerification": ("POST", "/v1/embed/test_helpers/verification/reject"),
}

# The credential of all operations of a document but these; one of several is enough.
CREDENTIAL = {
    "pools-v1": "secretKey", "gate-v1": "secretKey", "gate-test-helpers-v1": "secretKey", "gate-embed-v1": "embedToken",
}
OTHER_CREDENTIALS = {
    "listPools": {"publishableKey", "secretKey"},
    "createEmbedToken": {"publishableKey"},
    "retrieveEmbedOutcome": {"publishableKey"},
}

# The operations that need an entitlement beside that of the gate, by the code of its refusal.
ENTITLED = {
    "pools_not_enabled": {"getCapabilities", "createQuote", "transact", "getBalance"},
    "rails_not_enabled": {
        "lockQuote", "retrieveSignedQuote", "createPayIn", "retrievePayIn", "createPayOut", "retrievePayOut",
    },
}

# Each document: part of its title, its operations, its events.
LISTED = {
    "pools-v1": ("partner api", POOLS, POOLS_EVENTS),
    "gate-v1": ("hosted ramp session api", GATE, GATE_EVENTS),
    "gate-test-helpers-v1": ("test helpers", HELPERS, set()),
    "gate-embed-v1": ("widget calls", EMBED, set()),
}

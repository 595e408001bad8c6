"""A session, a pay-in and a pay-out, with the package generated from the published document."""

import json
import uuid

from gate_client import AuthenticatedClient
from gate_client.api.capabilities import list_countries
from gate_client.api.quotes import lock_quote, preview_quotes
from gate_client.api.rails import create_pay_in, create_pay_out, retrieve_pay_in, retrieve_pay_out
from gate_client.api.sessions import create_session, list_sessions, retrieve_session
from gate_client.models import (
    CountryList,
    CreateSessionRequest,
    CreateSessionRequestMetadataType0,
    Error,
    Flow,
    GateSession,
    LockQuoteRequest,
    PayIn,
    PayInStatus,
    PayOut,
    PayOutStatus,
    PreviewQuotesRequest,
    QuotePreview,
    RedeemRequest,
    SessionList,
    SessionStatus,
    Side,
    SignedQuote,
)
from said import body, setting, until

api = AuthenticatedClient(base_url=setting("GATE_URL"), token=setting("SECRET_KEY"))


def key() -> str:
    return str(uuid.uuid4())


def opened(flow: Flow, amount: str) -> GateSession:
    metadata = CreateSessionRequestMetadataType0.from_dict({"order": "A-1", "lines": [1, 2]})
    wanted = CreateSessionRequest(
        amount=amount,
        currency="EUR",
        return_url=setting("RETURN_URL"),
        flow=flow,
        target_token="USDT",
        metadata=metadata,
    )
    return body(create_session.sync(client=api, body=wanted, idempotency_key=key()), GateSession)


def locked(side: Side, amount: str) -> SignedQuote:
    wanted = LockQuoteRequest(side=side, currency="EUR", asset="USDT", amount=amount, payment_method="sepa")
    return body(lock_quote.sync(client=api, body=wanted, idempotency_key=key()), SignedQuote)


countries = body(list_countries.sync(client=api, supported=True), CountryList)
assert "DE" in {country.country_code for country in countries.data}
order = PreviewQuotesRequest(side=Side.ON_RAMP, currency="EUR", asset="USDT", amount="100.00")
preview = body(preview_quotes.sync(client=api, body=order), QuotePreview)
assert "sepa" in {option.payment_method for option in preview.options}

session = opened(Flow.ON_RAMP, "100.00")
assert isinstance(session.client_secret, str) and session.status is SessionStatus.OPEN
read = body(retrieve_session.sync(session.id, client=api), GateSession)
assert not isinstance(read.client_secret, str) and read.metadata["order"] == "A-1"
page = body(list_sessions.sync(client=api, status=SessionStatus.OPEN, limit=5), SessionList)
assert page.data[0].id == session.id

quote = locked(Side.ON_RAMP, "100.00")
redeem = RedeemRequest(quote_id=quote.id, session_id=session.id)
pay_in = body(create_pay_in.sync(client=api, body=redeem, idempotency_key=key()), PayIn)
seen_in = until(
    lambda: body(retrieve_pay_in.sync(pay_in.id, client=api), PayIn),
    lambda seen: seen.status is not PayInStatus.PROCESSING,
)
assert seen_in.status is PayInStatus.SETTLED and seen_in.settled_at is not None
late = create_pay_in.sync(client=api, body=redeem, idempotency_key=key())
assert body(late, Error).code == "session_not_open"

sale = locked(Side.OFF_RAMP, "50")
seller = opened(Flow.OFF_RAMP, sale.fiat_amount)
out = RedeemRequest(quote_id=sale.id, session_id=seller.id)
pay_out = body(create_pay_out.sync(client=api, body=out, idempotency_key=key()), PayOut)
until(
    lambda: body(retrieve_pay_out.sync(pay_out.id, client=api), PayOut),
    lambda seen: seen.status is PayOutStatus.SETTLED,
)

print(json.dumps({"session": session.id, "payIn": pay_in.id, "payOut": pay_out.id}))

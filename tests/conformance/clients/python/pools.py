"""A purchase, with the package generated from the published document."""

import json
import uuid

from pools_client import AuthenticatedClient
from pools_client.api.discovery import get_capabilities, list_pools
from pools_client.api.funds import get_balance, list_ledger_entries
from pools_client.api.quotes import create_quote
from pools_client.api.trades import get_trade, get_transaction_by_quote, transact
from pools_client.models import (
    Capabilities,
    Error,
    LedgerPage,
    PoolList,
    QuoteRequest,
    QuoteResponse,
    Side,
    StatusView,
    Trade,
    TradeStatus,
    TransactAck,
    TransactRequest,
)
from said import body, setting, until

POOL = "EUR-USDT"
api = AuthenticatedClient(base_url=setting("POOLS_URL"), token=setting("SECRET_KEY"))

listed = body(list_pools.sync(client=api), PoolList)
assert any(pool.id == POOL and pool.available for pool in listed.pools)
assert "tron" in body(get_capabilities.sync(POOL, client=api), Capabilities).supported_networks

wanted = QuoteRequest(
    side=Side.ON_RAMP, fiat_currency="EUR", crypto_currency="USDT", amount="100.00", dest_address=setting("ADDRESS")
)
quote = body(create_quote.sync(POOL, client=api, body=wanted), QuoteResponse)
assert quote.available and isinstance(quote.quote_id, str)
quote_id = quote.quote_id

key, order = str(uuid.uuid4()), TransactRequest(quote_id=quote_id)
ack = body(transact.sync(POOL, client=api, body=order, idempotency_key=key), TransactAck)
again = body(transact.sync(POOL, client=api, body=order, idempotency_key=key), TransactAck)
assert again.transact_id == ack.transact_id and again.idempotent
until(
    lambda: body(get_transaction_by_quote.sync(quote_id, client=api), StatusView),
    lambda seen: seen.status is TradeStatus.SETTLED,
)

trade = body(get_trade.sync(ack.transact_id, client=api), Trade)
assert (trade.status, trade.fiat_amount, trade.quote_id) == (TradeStatus.SETTLED, "100.00", quote_id)
page = body(list_ledger_entries.sync(client=api, currency="EUR", limit=1), LedgerPage)
assert page.entries[0].delta == "-100.00"
assert body(get_balance.sync("EUR-NOPE", client=api), Error).code == "resource_not_found"

print(json.dumps({"transactId": ack.transact_id}))

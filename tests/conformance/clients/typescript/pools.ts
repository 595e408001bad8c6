// A purchase, using only the types generated from the published document.

import createClient from "openapi-fetch";
import type { paths } from "./pools-v1.js";
import { body, code, expect, setting, until } from "./said.js";

const api = createClient<paths>({
  baseUrl: setting("POOLS_URL"),
  headers: { Authorization: `Bearer ${setting("SECRET_KEY")}` },
});
const path = { id: "EUR-USDT" };

const { pools } = body(await api.GET("/v1/pools"));
expect(pools.some((pool) => pool.id === path.id && pool.available), "the pool is listed");
const capabilities = body(await api.GET("/v1/pools/{id}/capabilities", { params: { path } }));
expect(capabilities.supportedNetworks.includes("tron"), "it pays out on tron");

const quote = body(
  await api.POST("/v1/pools/{id}/quote", {
    params: { path },
    body: {
      side: "on_ramp",
      fiatCurrency: "EUR",
      cryptoCurrency: "USDT",
      amount: "100.00",
      destAddress: setting("ADDRESS"),
    },
  }),
);
if (!quote.available || quote.quoteId == null) throw new Error("the quote is not firm");
const { quoteId } = quote;

const once = { path, header: { "Idempotency-Key": crypto.randomUUID() } };
const trade = body(await api.POST("/v1/pools/{id}/transact", { params: once, body: { quoteId } }));
const again = body(await api.POST("/v1/pools/{id}/transact", { params: once, body: { quoteId } }));
expect(again.transactId === trade.transactId, "a repeat is the same trade");
await until(
  async () => body(await api.GET("/v1/pools/transactions/{quoteId}", { params: { path: { quoteId } } })),
  (seen) => seen.status === "settled",
);

const { transactId } = trade;
const record = body(await api.GET("/v1/pools/trades/{transactId}", { params: { path: { transactId } } }));
expect(record.fiatAmount === "100.00" && record.status === "settled", "the record is of this trade");
const ledger = body(await api.GET("/v1/pools/ledger", { params: { query: { currency: "EUR", limit: 1 } } }));
expect(ledger.entries[0]?.delta === "-100.00", "the ledger shows it");
const unknown = { path: { id: "EUR-NOPE" } };
expect(code(await api.GET("/v1/pools/{id}/balance", { params: unknown })) === "resource_not_found", "a typed refusal");

console.log(JSON.stringify({ transactId }));

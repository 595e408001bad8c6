// A session, a pay-in and a pay-out, using only the types generated from the published document.

import createClient from "openapi-fetch";
import type { components, paths } from "./gate-v1.js";
import { body, code, expect, setting, until } from "./said.js";

type Order = components["schemas"]["LockQuoteRequest"];
type Session = components["schemas"]["CreateSessionRequest"];

const api = createClient<paths>({
  baseUrl: setting("GATE_URL"),
  headers: { Authorization: `Bearer ${setting("SECRET_KEY")}` },
});
const keyed = () => ({ header: { "Idempotency-Key": crypto.randomUUID() } });

const { data: countries } = body(await api.GET("/v1/capabilities/countries", { params: { query: { supported: true } } }));
expect(countries.some((country) => country.country_code === "DE"), "Germany is served");
const order: Order = { side: "on_ramp", currency: "EUR", asset: "USDT", amount: "100.00", payment_method: "sepa" };
const preview = body(await api.POST("/v1/quotes/preview", { body: order }));
expect(preview.options.some((option) => option.payment_method === "sepa"), "a transfer is an option");

const open = async (flow: "on_ramp" | "off_ramp", amount: string) => {
  const wanted: Session = {
    amount,
    currency: "EUR",
    return_url: setting("RETURN_URL"),
    flow,
    target_token: "USDT",
    metadata: { order: "A-1", lines: [1, 2] },
  };
  return body(await api.POST("/v1/gate_sessions", { params: keyed(), body: wanted }));
};
const lock = async (order: Order) => body(await api.POST("/v1/quotes", { params: keyed(), body: order }));

const session = await open("on_ramp", "100.00");
expect(session.client_secret !== undefined && session.status === "open", "it is shown with its secret");
const read = body(await api.GET("/v1/gate_sessions/{id}", { params: { path: { id: session.id } } }));
expect(read.client_secret === undefined && read.metadata["order"] === "A-1", "and read without it");
const page = body(await api.GET("/v1/gate_sessions", { params: { query: { status: "open", limit: 5 } } }));
expect(page.data[0]?.id === session.id, "the newest comes first");

const quote = await lock(order);
const redeem = { quote_id: quote.id, session_id: session.id };
const payIn = body(await api.POST("/v1/rails/pay_ins", { params: keyed(), body: redeem }));
const settledIn = await until(
  async () => body(await api.GET("/v1/rails/pay_ins/{id}", { params: { path: { id: payIn.id } } })),
  (seen) => seen.status !== "processing",
);
expect(settledIn.status === "settled", "the pay-in settles");
const late = await api.POST("/v1/rails/pay_ins", { params: keyed(), body: redeem });
expect(code(late) === "session_not_open", "a typed refusal");

const sale = await lock({ ...order, side: "off_ramp", amount: "50" });
const seller = await open("off_ramp", sale.fiat_amount);
const out = { quote_id: sale.id, session_id: seller.id };
const payOut = body(await api.POST("/v1/rails/pay_outs", { params: keyed(), body: out }));
await until(
  async () => body(await api.GET("/v1/rails/pay_outs/{id}", { params: { path: { id: payOut.id } } })),
  (seen) => seen.status === "settled",
);

console.log(JSON.stringify({ session: session.id, payIn: payIn.id, payOut: payOut.id }));

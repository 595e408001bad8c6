// Verifies one delivery, given on stdin, with the two libraries for Node.js; throws where either refuses it.
const { Webhook } = require("standardwebhooks");
const Stripe = require("stripe");

const { body, headers, secret } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const event = new Stripe("sk_test_unused").webhooks.constructEvent(body, headers["pools-signature"], secret, 300);
const again = new Webhook(secret).verify(body, headers);
if (event.eventId !== again.eventId) throw new Error("two different events");

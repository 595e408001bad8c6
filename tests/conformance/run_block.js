// Runs a function of docs/verifying-webhooks.md on a delivery, both given on stdin; prints the event, or throws. If a
// time is given, the function sees that time.
const { code, headers, body, secret, now } = JSON.parse(require("fs").readFileSync(0, "utf8"));
if (now) Date.now = () => now * 1000;
const eventOf = new Function("require", `${code}\nreturn eventOf;`)(require);
process.stdout.write(JSON.stringify(eventOf(headers, body, secret)));

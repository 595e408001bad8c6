//! The handlers of the gate, test helpers included: the objects of their requests, and one request for each.

use std::net::SocketAddr;
use std::thread;

use serde_json::Value;
use test_support::recorded::kind_of;
use test_support::time;

use super::book::{Order, Test};
use super::writing::{Widget, Writing};
use super::{Gate, SHOP, Shop};
use crate::Result;
use crate::caller::number;
use crate::history::Kind;
use crate::http::{Answer, Client, RESPONSE_TIMEOUT, request};
use crate::orders::Side;
use crate::panics::{Handled, Operation, operations_in};
use crate::receiver::DELIVERY_TIMEOUT;

/// Objects of the requests.
#[derive(Debug)]
pub(crate) struct Objects {
    /// Writes that the book judges, each with its operation.
    writes: Vec<(&'static str, Writing)>,
    /// An object of each kind of id, for the recorded requests of all other operations.
    named: Vec<String>,
    /// The secret of an open session.
    secret: String,
    /// The secret of a session that has ended.
    ended: String,
    /// Widgets of open sessions, each with the operation that only it is for.
    widgets: Vec<(&'static str, Widget)>,
    /// The widget of an open session, for all other operations of widgets.
    widget: Widget,
    /// Payments, each with the operation that only it is for.
    payments: Vec<(&'static str, String)>,
    /// Open sessions and active quotes, which only a handler can change.
    untouched: Vec<(String, &'static str)>,
}

impl Objects {
    fn widget(&self, operation: &str) -> &Widget {
        let mut all = self.widgets.iter();
        let found = all.find(|(of, _)| *of == operation);
        found.map_or(&self.widget, |(_, widget)| widget)
    }

    fn named_for(&self, operation: &str, kind: &str) -> Option<String> {
        let own = self.payments.iter().filter(|(of, _)| *of == operation);
        let mut all = own.map(|(_, id)| id).chain(&self.named);
        all.find(|id| kind_of(id) == Some(kind)).cloned()
    }
}

impl Handled for Gate {
    type Objects = Objects;

    const LONG_LIFETIMES: &'static [(&'static str, &'static str)] = &[
        ("PENSTOCK_SESSION_TTL", "10m"),
        ("PENSTOCK_PREVIEW_TTL", "10m"),
        ("PENSTOCK_SIGNED_QUOTE_TTL", "10m"),
    ];

    fn operations() -> Result<Vec<Operation>> {
        operations_in(&gate_http::documents()?)
    }

    fn prepare(&self, address: SocketAddr) -> Result<Objects> {
        let shop = self.shops.first().ok_or("no shop")?;
        Preparing {
            gate: self,
            shop,
            client: Client::new(address),
            chance: fastrand::Rng::with_seed(number()),
        }
        .objects()
    }

    fn request(&self, objects: &Objects, operation: &Operation) -> Result<Vec<u8>> {
        let shop = self.shops.first().ok_or("no shop")?;
        let id = operation.id.as_str();
        let written = objects.writes.iter().find(|(of, _)| *of == id);
        if let Some((_, writing)) = written {
            return Ok(writing.bytes.clone());
        }
        let id_of = |kind: &str| objects.named_for(id, kind);
        let widget = objects.widget(id);
        Ok(match id {
            "createEmbedToken" => bootstrap(shop, &objects.secret),
            "retrieveEmbedOutcome" => of_page(shop, "/embed/outcome", &objects.ended),
            "createEmbedQuote" => widget.quote(shop),
            _ if operation.is_of_widget() => {
                let token = format!("X-Embed-Token: {}\r\n", widget.token);
                operation.recorded(&shop.publishable, &token, id_of)
            }
            _ => operation.recorded(&shop.key, "", id_of),
        })
    }

    fn doubt(&self, objects: &Objects, operation: &Operation) -> Result<()> {
        let shop = self.shops.first().ok_or("no shop")?;
        for (of, writing) in &objects.writes {
            if *of == operation.id {
                shop.book.lock().doubt(writing);
            }
        }
        Ok(())
    }

    fn untouched(&self, objects: &Objects) -> Vec<(String, String, &'static str)> {
        let key = self.shops.first().map_or("", |shop| &shop.key);
        let stand = objects.untouched.iter();
        stand
            .map(|(path, wanted)| (key.to_owned(), path.clone(), *wanted))
            .collect()
    }

    /// Cancels every open session.
    fn work(&self, _: &Objects, address: SocketAddr) -> Result<()> {
        let shop = self.shops.first().ok_or("no shop")?;
        let open: Vec<String> = {
            let book = shop.book.lock();
            let open = book
                .sessions
                .iter()
                .filter(|(_, session)| session.end.is_none());
            open.map(|(id, _)| id.clone()).collect()
        };
        let mut client = Client::new(address);
        for id in open {
            let key = format!("call-off-{id}");
            let writing = Writing::of_session(shop, Kind::Cancel, &id, Some(key.clone()));
            shop.book.lock().doubt(&writing);
            let answer = client.call_until_served(&writing.bytes);
            if !shop.book.lock().note(&key, &answer) {
                return Err(format!("{key}: {answer:?}").into());
            }
        }
        Ok(())
    }
}

fn bootstrap(shop: &Shop, secret: &str) -> Vec<u8> {
    of_page(shop, "/embed/bootstrap", secret)
}

/// A call of the shop's page about the session of a client secret.
fn of_page(shop: &Shop, path: &str, secret: &str) -> Vec<u8> {
    let origin = format!("Origin: {SHOP}\r\n");
    let body = format!("{{\"clientSecret\":\"{secret}\"}}");
    request(&shop.publishable, "POST", path, &origin, &body)
}

fn purchase() -> Order {
    Order {
        side: Side::Purchase,
        swaps: false,
        amount: "20.00".to_owned(),
    }
}

fn sale() -> Order {
    Order {
        side: Side::Sale,
        swaps: false,
        amount: "40".to_owned(),
    }
}

/// Creates the objects of the requests.
struct Preparing<'g> {
    gate: &'g Gate,
    shop: &'g Shop,
    client: Client,
    chance: fastrand::Rng,
}

impl Preparing<'_> {
    fn objects(&mut self) -> Result<Objects> {
        let shop = self.shop;
        let (cancel, complete, fail) = (self.session()?, self.session()?, self.session()?);
        let give_up = self.widget("20.00")?;
        let (quoted, verified) = (self.widget("20.00")?, self.widget("20.61")?);
        let (paying, called_off) = (self.widget("20.00")?, self.widget("20.33")?);
        let quote_to_pay = self.quote(&paying)?;
        let payment = self.paid(&called_off)?;
        let (sent, declined) = (self.widget("20.00")?, self.widget("20.31")?);
        let payments = vec![
            ("sendTestPayment", self.payment_of(&sent)?),
            ("declineTestPayment", self.payment_of(&declined)?),
        ];
        let (approved, rejected) = (self.verifying()?, self.verifying()?);
        let (payer, to_pay_in) = self.redeemable(&purchase())?;
        let (payee, to_pay_out) = self.redeemable(&sale())?;
        let (pay_in, pay_out) = (self.redeemed(&purchase())?, self.redeemed(&sale())?);
        let (update, delete) = (self.customer()?, self.customer()?);
        let act = |kind, id: &str| {
            let key = format!("act-{}", number());
            Writing::of_session(shop, kind, id, Some(key))
        };
        let ended = self.session()?;
        self.done(&act(Kind::Cancel, &ended))?;
        let redeem = |side, quote: &str, session: &str| {
            let key = format!("redeem-{}", number());
            Writing::redeem(shop, side, quote, session, &key)
        };
        let writes = vec![
            ("createSession", self.creating()),
            ("cancelSession", act(Kind::Cancel, &cancel)),
            ("completeTestSession", act(Kind::Complete, &complete)),
            ("failTestSession", act(Kind::Fail, &fail)),
            ("updateBranding", Writing::rebrand(shop)),
            ("createCustomer", self.enrolling()),
            ("updateCustomer", Writing::rename(shop, &update)),
            (
                "deleteCustomer",
                Writing::dismiss(shop, &delete, &mut self.chance),
            ),
            ("lockQuote", Writing::lock(shop, &purchase())),
            ("createPayIn", redeem(Side::Purchase, &to_pay_in, &payer)),
            ("createPayOut", redeem(Side::Sale, &to_pay_out, &payee)),
            (
                "createEmbedPayment",
                Writing::pay(shop, &paying, &quote_to_pay),
            ),
        ];
        let session = |id: &str| (format!("/gate_sessions/{id}"), "open");
        let quote = |id: &str| (format!("/quotes/{id}"), "active");
        // Without the session of the payment to cancel, which the sandbox completes ten seconds after the payment began.
        let untouched = vec![
            session(&cancel),
            session(&complete),
            session(&give_up.session),
            session(&paying.session),
            session(&payer),
            session(&payee),
            quote(&to_pay_in),
            quote(&to_pay_out),
        ];
        let (session, customer) = (self.session()?, self.customer()?);
        for id in [&session, &customer] {
            shop.book.lock().set_aside(id);
        }
        let (paid, delivery) = (self.payment()?, self.dead_letter()?);
        let named = vec![
            session, customer, paid, delivery, to_pay_in, pay_in, pay_out, payment,
        ];
        Ok(Objects {
            writes,
            named,
            secret: self.secret(&fail)?,
            ended: self.secret(&ended)?,
            widgets: vec![
                ("createEmbedQuote", quoted),
                ("createEmbedVerification", verified),
                ("cancelEmbedPayment", called_off),
                ("sendTestPayment", sent),
                ("declineTestPayment", declined),
                ("approveTestVerification", approved),
                ("rejectTestVerification", rejected),
            ],
            payments,
            widget: give_up,
            untouched,
        })
    }

    fn creating(&mut self) -> Writing {
        Writing::create(self.shop, &format!("create-{}", number()), &mut self.chance)
    }

    fn enrolling(&mut self) -> Writing {
        Writing::enrol(self.shop, number(), &mut self.chance)
    }

    fn session(&mut self) -> Result<String> {
        let writing = self.creating();
        self.done(&writing)
    }

    fn secret(&self, session: &str) -> Result<String> {
        let book = self.shop.book.lock();
        let known = book.sessions.get(session);
        Ok(known.map(|known| known.secret.clone()).ok_or("no secret")?)
    }

    /// Creates a session of this amount and bootstraps its widget.
    fn widget(&mut self, amount: &str) -> Result<Widget> {
        let order = Order {
            amount: amount.to_owned(),
            ..purchase()
        };
        let session = self.done(&Writing::payer(self.shop, &order))?;
        let secret = self.secret(&session)?;
        let answer = self
            .client
            .call_until_served(&bootstrap(self.shop, &secret));
        let token = answer.as_ref().ok().and_then(|it| it.text("embed_token"));
        let token = token.ok_or_else(|| format!("bootstrap: {answer:?}"))?;
        Ok(Widget {
            session,
            order,
            token,
        })
    }

    fn quote(&mut self, widget: &Widget) -> Result<String> {
        let answer = self.client.call_until_served(&widget.quote(self.shop));
        let id = answer.as_ref().ok().and_then(|answer| answer.text("id"));
        id.ok_or_else(|| format!("a quote: {answer:?}").into())
    }

    /// A widget whose user decides about a verification that has started.
    fn verifying(&mut self) -> Result<Widget> {
        let widget = self.widget("20.64")?;
        let token = format!("X-Embed-Token: {}\r\n", widget.token);
        let key = &self.shop.publishable;
        let start = request(key, "POST", "/embed/verification", &token, "");
        match self.client.call_until_served(&start) {
            Ok(answer) if answer.status < 300 => Ok(widget),
            other => Err(format!("a verification: {other:?}").into()),
        }
    }

    /// Pays the session of a widget.
    fn payment_of(&mut self, widget: &Widget) -> Result<String> {
        let quote = self.quote(widget)?;
        self.done(&Writing::pay(self.shop, widget, &quote))
    }

    /// Pays the session of a widget and returns the payment, which a handler cancels.
    fn paid(&mut self, widget: &Widget) -> Result<String> {
        let quote = self.quote(widget)?;
        let payment = self.done(&Writing::pay(self.shop, widget, &quote))?;
        let mut book = self.shop.book.lock();
        for known in book.orders.hosted.values_mut() {
            known.giving_up |= known.quote == quote;
        }
        drop(book);
        Ok(payment)
    }

    fn customer(&mut self) -> Result<String> {
        let writing = self.enrolling();
        self.done(&writing)
    }

    /// Creates a session and a quote that can be redeemed for it.
    fn redeemable(&mut self, order: &Order) -> Result<(String, String)> {
        let session = self.done(&Writing::payer(self.shop, order))?;
        let quote = self.done(&Writing::lock(self.shop, order))?;
        Ok((session, quote))
    }

    fn redeemed(&mut self, order: &Order) -> Result<String> {
        let (session, quote) = self.redeemable(order)?;
        let key = format!("redeem-{}", number());
        self.done(&Writing::redeem(
            self.shop, order.side, &quote, &session, &key,
        ))
    }

    /// Sends a write and returns the id in the response.
    fn done(&mut self, writing: &Writing) -> Result<String> {
        self.shop.book.lock().doubt(writing);
        let answer = self.client.call_until_served(&writing.bytes);
        if let Some(key) = &writing.key {
            self.shop.book.lock().note(key, &answer);
        }
        let id = answer.as_ref().ok().and_then(|answer| answer.text("id"));
        id.ok_or_else(|| format!("{writing:?}: {answer:?}").into())
    }

    /// Returns the reference of a payment.
    fn payment(&mut self) -> Result<String> {
        let listed = self.ask("GET", "/transactions")?.json();
        let first = listed.pointer("/data/0/refid").and_then(Value::as_str);
        Ok(first.ok_or("no payment is listed")?.to_owned())
    }

    fn ask(&mut self, method: &str, path: &str) -> Result<Answer> {
        let bytes = request(&self.shop.key, method, path, "", "");
        let answer = self.client.call_until_served(&bytes);
        Ok(answer.map_err(|lost| format!("{method} {path}: {lost:?}"))?)
    }

    /// Sends a test event and waits for its dead letter, which a replay delivers.
    fn dead_letter(&mut self) -> Result<String> {
        let sent = self.ask("POST", "/webhooks/test")?;
        let id = sent.text("id").ok_or("a test event without id")?;
        let event = sent.text("event_id").ok_or("a delivery without event")?;
        let end = time::now().saturating_add(DELIVERY_TIMEOUT);
        while !self.is_dead_letter(&id)? {
            if time::now() > end {
                return Err(format!("{id} is not a dead letter").into());
            }
            thread::sleep(RESPONSE_TIMEOUT / 240);
        }
        self.gate.receiver.want(&event);
        let test = Test {
            event,
            replayed: false,
        };
        self.shop.book.lock().tests.insert(id.clone(), test);
        Ok(id)
    }

    fn is_dead_letter(&mut self, id: &str) -> Result<bool> {
        let listed = self
            .ask("GET", "/webhooks/deliveries?status=dead_lettered")?
            .json();
        let mut listed = listed
            .get("data")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        Ok(listed.any(|delivery| delivery.get("id").and_then(Value::as_str) == Some(id)))
    }
}

//! The hosted flow: a widget quotes its session, verifies the user, pays, and cancels the payment.

use std::thread;
use std::time::Duration;

use kernel::Mode;

use super::Visitor;
use crate::caller::{Begun, number};
use crate::gate::book::{Hosted, Order};
use crate::gate::writing::{Widget, Writing};
use crate::history::Kind;
use crate::http::{Answer, Lost};

/// The pause after a notification. The gate polls its rail five times a second.
const NOTIFICATION_PAUSE: Duration = Duration::from_millis(120);

impl Visitor<'_, '_, '_> {
    /// Creates a session and pays it in its widget. Other clients may end the session meanwhile.
    pub(super) fn hosted(&mut self) {
        let order = Order::hosted(self.chance, self.gate.mode == Mode::Live);
        let payer = Writing::payer(self.shop, &order);
        self.write(&payer);
        let Some(session) = self.first_answer(&payer) else {
            return;
        };
        let Some(token) = self.bootstrap(&session) else {
            return;
        };
        let widget = Widget {
            session,
            order,
            token,
        };
        let Some(quote) = self.quote_session(&widget) else {
            return;
        };
        let quote = match self.chance.u8(0..100) {
            0..=29 => self.supersede(&widget, quote),
            _ => quote,
        };
        if widget.order.is_verified() {
            if self.chance.bool() {
                self.write(&Writing::pay(self.shop, &widget, &quote));
            }
            self.verify(&widget);
        }
        self.pay(&widget, &quote);
    }

    /// Sends a call of a widget about its session.
    fn call(&mut self, kind: Kind, widget: &Widget, bytes: &[u8]) -> Option<Answer> {
        let begun = self.begin(kind, Some(&widget.session));
        let answer = self.caller.one.call(bytes);
        let answer = self.caller.end(begun, answer);
        answer.filter(|answer| answer.status < 300)
    }

    fn quote_session(&mut self, widget: &Widget) -> Option<String> {
        let request = self.begin_quote(widget);
        let answer = self.caller.one.call(&widget.quote(self.shop));
        self.end_quote(widget, request, answer)
    }

    /// Records that a quote is being requested. Returns the operation and the number of the request.
    fn begin_quote(&self, widget: &Widget) -> (Begun, usize) {
        let session = &widget.session;
        let number = self.shop.book.lock().orders.request_quote(session);
        (self.begin(Kind::QuoteSession, Some(session)), number)
    }

    /// Records the response to a request for a quote. Returns the quote.
    fn end_quote(
        &mut self,
        widget: &Widget,
        (begun, number): (Begun, usize),
        answer: Result<Answer, Lost>,
    ) -> Option<String> {
        let quote = {
            let mut book = self.shop.book.lock();
            let orders = &mut book.orders;
            orders.quote_response(&widget.session, number, &answer)
        };
        self.caller.end(begun, answer);
        quote
    }

    /// Quotes the session again and tries to pay with the earlier quote. Returns the quote that can be paid.
    fn supersede(&mut self, widget: &Widget, earlier: String) -> String {
        let Some(later) = self.quote_session(widget) else {
            return earlier;
        };
        self.write(&Writing::pay(self.shop, widget, &earlier));
        later
    }

    fn verify(&mut self, widget: &Widget) {
        let bytes = widget.call(self.shop, "/embed/verification", "", "");
        if self.call(Kind::Verify, widget, &bytes).is_none() {
            return;
        }
        let mut book = self.shop.book.lock();
        if let Some(session) = book.sessions.get_mut(&widget.session) {
            session.verified = true;
        }
        drop(book);
        if self.may_pretend() {
            self.pretend(widget, "verification/approve");
        }
    }

    /// Whether the customer pretends now. Only those of mode test can.
    fn may_pretend(&mut self) -> bool {
        self.gate.mode == Mode::Test && self.chance.u8(0..100) < 40
    }

    /// Pretends that something happened which the sandbox's rail or verifier would report later.
    fn pretend(&mut self, widget: &Widget, what: &str) {
        let bytes = widget.call(self.shop, &format!("/embed/test_helpers/{what}"), "", "");
        self.call(Kind::Pretend, widget, &bytes);
    }

    /// Pays in one of several manners, repeats a payment without a response, and cancels some payments. A payment whose quote was
    /// superseded meanwhile is made with the later quote.
    fn pay(&mut self, widget: &Widget, quote: &str) {
        let one = Writing::pay(self.shop, widget, quote);
        let later = self.send_payment(widget, &one);
        if self.first_answer(&one).is_none() {
            self.write(&one);
        }
        let paid = match later {
            Some(later) if self.first_answer(&one).is_none() => {
                let other = Writing::pay(self.shop, widget, &later);
                self.write(&other);
                other
            }
            _ => one,
        };
        let Some(payment) = self.first_answer(&paid) else {
            return;
        };
        if self.may_pretend() {
            self.pretend(widget, &format!("payments/{payment}/send"));
        }
        self.notify_in_progress(widget, &payment);
        if self.chance.u8(0..100) < 60 {
            self.cancel_payment(widget, &paid.object, &payment);
        }
        if self.chance.bool() {
            self.notify_late();
        }
    }

    /// Sends a payment alone, as twins under one key or under two keys, or at once with another request about its session: for a
    /// quote, for the redemption of a signed quote, or for a cancellation by the user. Returns the later quote.
    fn send_payment(&mut self, widget: &Widget, one: &Writing) -> Option<String> {
        let shop = self.shop;
        match self.chance.u8(0..100) {
            0..=24 => self.write(one),
            25..=37 => self.write_both(one, one),
            38..=57 => self.write_both(one, &Writing::pay(shop, widget, &one.object)),
            58..=72 => return self.quote_meanwhile(widget, one),
            73..=92 => self.redeem_meanwhile(widget, one),
            _ => self.write_both(one, &Writing::cancel_by_user(shop, widget)),
        }
        None
    }

    /// Requests a quote and pays with the earlier quote at once: the gate decides which is first. Returns the later quote.
    fn quote_meanwhile(&mut self, widget: &Widget, payment: &Writing) -> Option<String> {
        let request = self.begin_quote(widget);
        let sent = self.caller.other.send(&widget.quote(self.shop));
        self.write(payment);
        let answer = sent.and_then(|()| self.caller.other.receive());
        self.end_quote(widget, request, answer)
    }

    /// Creates a signed quote for the session, and redeems it while the widget pays. Without rails, and in a swap, the widget only
    /// pays.
    fn redeem_meanwhile(&mut self, widget: &Widget, payment: &Writing) {
        let (shop, order) = (self.shop, &widget.order);
        if order.swaps || !shop.rails {
            return self.write(payment);
        }
        let lock = Writing::lock(shop, order);
        self.write(&lock);
        let Some(quote) = self.first_answer(&lock) else {
            return self.write(payment);
        };
        self.add_payer(&quote, widget.session.clone());
        let key = format!("redeem-{}", number());
        let redeem = Writing::redeem(shop, order.side, &quote, &widget.session, &key);
        self.write_both(payment, &redeem);
    }

    /// Notifies the gate of a payment, as its rail would: once, or often of a slow one, whose first poll is due by itself.
    fn notify_in_progress(&mut self, widget: &Widget, payment: &str) {
        let id = widget.rail_id(payment);
        let times = if widget.order.is_slow() { 3 } else { 1 };
        for _ in 0..times {
            self.notify(&id);
            thread::sleep(NOTIFICATION_PAUSE);
        }
    }

    fn cancel_payment(&mut self, widget: &Widget, quote: &str, payment: &str) {
        self.mark(quote, |hosted| hosted.giving_up = true);
        let bytes = widget.cancel(self.shop, payment);
        if self.call(Kind::CancelPayment, widget, &bytes).is_some() {
            self.mark(quote, |hosted| hosted.given_up = true);
        }
    }

    fn mark(&self, quote: &str, change: impl Fn(&mut Hosted)) {
        let mut book = self.shop.book.lock();
        let mut paid = book.orders.hosted.values_mut();
        if let Some(hosted) = paid.find(|hosted| hosted.quote == quote) {
            change(hosted);
        }
    }
}

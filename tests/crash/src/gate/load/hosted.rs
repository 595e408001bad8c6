//! The hosted flow: a widget quotes its session, verifies the user, pays, and cancels the payment.

use std::thread;
use std::time::Duration;

use super::Visitor;
use crate::gate::book::{Hosted, Order};
use crate::gate::writing::{Widget, Writing};
use crate::history::Kind;
use crate::http::Answer;

/// The pause after a notification. The gate polls its rail five times a second.
const NOTIFICATION_PAUSE: Duration = Duration::from_millis(120);

impl Visitor<'_, '_, '_> {
    /// Creates a session and pays it in its widget. Other clients may end the session meanwhile.
    pub(super) fn hosted(&mut self) {
        let order = Order::hosted(self.chance, self.shop.vouches);
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
        let bytes = widget.quote(self.shop);
        let answer = self.call(Kind::QuoteSession, widget, &bytes)?;
        answer.text("id")
    }

    /// Quotes the session again and tries to pay with the earlier quote. Returns the quote that can be paid.
    fn supersede(&mut self, widget: &Widget, earlier: String) -> String {
        let Some(later) = self.quote_session(widget) else {
            return earlier;
        };
        let late = Writing::pay(self.shop, widget, &earlier);
        self.shop.book.lock().orders.superseded.insert(earlier);
        self.write(&late);
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
    }

    /// Pays once, as twins under one key or under two keys. Repeats a payment without a response, and cancels some.
    fn pay(&mut self, widget: &Widget, quote: &str) {
        let one = Writing::pay(self.shop, widget, quote);
        match self.chance.u8(0..100) {
            0..=49 => self.write(&one),
            50..=69 => self.write_both(&one, &one),
            _ => self.write_both(&one, &Writing::pay(self.shop, widget, quote)),
        }
        if self.first_answer(&one).is_none() {
            self.write(&one);
        }
        let Some(payment) = self.first_answer(&one) else {
            return;
        };
        self.notify(widget, &payment);
        if self.chance.u8(0..100) < 60 {
            self.cancel_payment(widget, quote, &payment);
        }
    }

    /// Notifies the gate of a payment, as its rail would: once, or often of a slow one, whose first poll is due by itself.
    fn notify(&mut self, widget: &Widget, payment: &str) {
        let Some(bytes) = widget.notification(payment) else {
            return;
        };
        let times = if widget.order.is_slow() { 4 } else { 1 };
        for _ in 0..times {
            let notified = self.call(Kind::NotifyRail, widget, &bytes);
            if let Some(answer) = notified.filter(|answer| answer.status != 202) {
                self.complain(format!("a notification of {payment} received {answer:?}"));
            }
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

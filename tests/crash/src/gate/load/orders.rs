//! Operations on previews and their sessions, on signed quotes, and on the pay-ins and pay-outs that redeem them.

use super::Visitor;
use crate::caller::number;
use crate::gate::Shop;
use crate::gate::book::{Order, Orders};
use crate::gate::writing::Writing;
use crate::history::Kind;
use crate::http::request;
use crate::orders::Side;

/// Previews and quotes that clients of one service share.
const SHARED_ORDERS: usize = 2;

impl Visitor<'_, '_, '_> {
    /// Runs an operation on orders.
    pub(super) fn orders(&mut self) {
        match self.chance.u8(0..100) {
            0..=27 => self.previews(),
            28..=29 => self.notify_late(),
            30..=54 => self.hosted(),
            _ => self.quotes(),
        }
    }

    fn previews(&mut self) {
        let picked = {
            let book = self.shop.book.lock();
            let newest = book.orders.hot_previews.iter().rev().take(SHARED_ORDERS);
            let picked = self.chance.choice(newest).cloned();
            picked.and_then(|id| Some((id.clone(), book.orders.previews.get(&id)?.clone())))
        };
        match picked.filter(|_| self.chance.u8(0..100) < 60) {
            Some((id, order)) => self.use_up(&id, order),
            None => self.preview(),
        }
    }

    fn preview(&mut self) {
        let order = Order::any(self.chance);
        let body = order.asked().to_string();
        let bytes = request(&self.shop.key, "POST", "/quotes/preview", "", &body);
        let begun = self.begin(Kind::Preview, None);
        let answer = self.caller.one.call(&bytes);
        let answer = self.caller.end(begun, answer);
        if let Some(id) = answer.and_then(|answer| answer.text("quote_preview_id")) {
            self.shop.book.lock().orders.previewed(&id, order);
        }
    }

    /// Creates sessions with a preview: one, one for another order, twins under one key, or several under keys of their own.
    fn use_up(&mut self, id: &str, order: Order) {
        let shop = self.shop;
        let one = Writing::use_up(shop, id, &order);
        match self.chance.u8(0..100) {
            0..=49 => self.write(&one),
            50..=54 => {
                let all = self.crowded(|_| Writing::use_up(shop, id, &order));
                self.crowd(&all);
            }
            55..=64 => {
                let amount = format!("{}1", order.amount);
                let other = Order { amount, ..order };
                self.write(&Writing::use_up(shop, id, &other));
            }
            65..=69 => self.write_both(&one, &one),
            _ => self.write_both(&one, &Writing::use_up(shop, id, &order)),
        }
    }

    fn quotes(&mut self) {
        let picked = {
            let book = self.shop.book.lock();
            let newest = book.orders.hot_quotes.iter().rev().take(SHARED_ORDERS);
            self.chance.choice(newest).cloned()
        };
        let Some(id) = picked.filter(|_| self.chance.u8(0..100) < 65) else {
            return self.lock();
        };
        match self.chance.u8(0..100) {
            0..=44 => self.redeem(&id),
            45..=64 => self.redeem_late(),
            65..=84 => self.read_quote(&id),
            _ => self.read_rail(&id),
        }
    }

    /// Creates a signed quote and two sessions that fit it, and mostly redeems it. A partner without rails must be refused.
    fn lock(&mut self) {
        let order = Order::any(self.chance);
        let one = Writing::lock(self.shop, &order);
        match self.chance.u8(0..100) {
            0..=9 => self.write_both(&one, &one),
            _ => self.write(&one),
        }
        let given = self.first_answer(&one);
        if given.is_some() && !self.shop.rails {
            self.complain(format!("{given:?}, and {} has no rails", self.shop.name));
        }
        if let Some(quote) = given {
            self.bring_a_payer(&quote, &order);
            self.bring_a_payer(&quote, &order);
            if self.chance.u8(0..100) < 80 {
                self.redeem(&quote);
            }
        }
    }

    /// Returns the id in the first response to a write.
    pub(super) fn first_answer(&self, writing: &Writing) -> Option<String> {
        let book = self.shop.book.lock();
        let (answer, _) = book.calls.get(writing.key.as_ref()?)?.first.as_ref()?;
        answer.text("id")
    }

    /// Creates a session that fits a quote.
    fn bring_a_payer(&mut self, quote: &str, order: &Order) -> Option<String> {
        let payer = Writing::payer(self.shop, order);
        self.write(&payer);
        let session = self.first_answer(&payer)?;
        self.add_payer(quote, session.clone());
        Some(session)
    }

    /// Records that a session fits a quote. Clients redeem the quote for it.
    pub(super) fn add_payer(&self, quote: &str, session: String) {
        let mut book = self.shop.book.lock();
        if let Some(known) = book.orders.quotes.get_mut(quote) {
            known.payers.push(session);
        }
    }

    /// Redeems a quote for a session that fits it or another one.
    fn redeem(&mut self, id: &str) {
        if let Some((side, session)) = self.payer_of(id) {
            self.redeem_for(id, side, &session);
        }
    }

    /// Redeems an earlier quote that no client has redeemed for a new session, so that nothing but its expiry can refuse it.
    fn redeem_late(&mut self) {
        let picked = {
            let book = self.shop.book.lock();
            let orders = &book.orders;
            let earlier = orders.hot_quotes.iter().rev().skip(SHARED_ORDERS);
            let open = |id: &&String| {
                let quote = orders.quotes.get(*id);
                quote.is_some_and(|quote| quote.redeemed_by.is_none())
            };
            let picked = self.chance.choice(earlier.filter(open).collect::<Vec<_>>());
            picked.and_then(|id| Some((id.clone(), orders.quotes.get(id)?.order.clone())))
        };
        let Some((id, order)) = picked else { return };
        if let Some(session) = self.bring_a_payer(&id, &order) {
            self.redeem_for(&id, order.side, &session);
        }
    }

    /// Redeems a quote: once, as twins under one key, or under several keys.
    fn redeem_for(&mut self, id: &str, side: Side, session: &str) {
        let shop = self.shop;
        let under = |key: &str| Writing::redeem(shop, side, id, session, key);
        let own = || under(&format!("redeem-{}", number()));
        let shared = under(&format!("redeem-{id}-{session}"));
        match self.chance.u8(0..100) {
            0..=34 => self.write(&own()),
            35..=49 => self.write(&shared),
            50..=54 => {
                let all = self.crowded(|_| own());
                self.crowd(&all);
            }
            55..=61 => self.write_both(&shared, &shared),
            _ => self.write_both(&own(), &own()),
        }
    }

    /// Chooses a session for a quote: mostly one that fits, else any.
    fn payer_of(&mut self, quote: &str) -> Option<(Side, String)> {
        let (side, payers, others) = {
            let book = self.shop.book.lock();
            let known = book.orders.quotes.get(quote)?;
            let others: Vec<String> = book.hot.iter().rev().take(SHARED_ORDERS).cloned().collect();
            (known.order.side, known.payers.clone(), others)
        };
        let any = match self.chance.u8(0..100) {
            0..=79 => payers,
            _ => others,
        };
        Some((side, self.chance.choice(any)?))
    }

    fn read_quote(&mut self, id: &str) {
        let redeemed = {
            let book = self.shop.book.lock();
            let known = book.orders.quotes.get(id);
            known.is_some_and(|quote| quote.redeemed_by.is_some())
        };
        let answer = self.get(Kind::ReadQuote, &format!("/quotes/{id}"), Some(id));
        let status = answer.and_then(|answer| answer.text("status"));
        if redeemed && status.as_deref().is_some_and(|status| status != "consumed") {
            self.complain(format!("{id} was redeemed and is {status:?}"));
        }
    }

    /// Reads the pay-in or pay-out that has redeemed a quote, if there is one.
    fn read_rail(&mut self, quote: &str) {
        let rail = {
            let book = self.shop.book.lock();
            let known = book.orders.quotes.get(quote);
            known.and_then(|quote| Some((quote.order.side, quote.redeemed_by.clone()?)))
        };
        let Some((side, id)) = rail else { return };
        let path = path_of_rail(side, &id);
        let Some(answer) = self.get(Kind::ReadRail, &path, None) else {
            return;
        };
        let mut book = self.shop.book.lock();
        let known = book.orders.rails.get_mut(&id);
        // If another client has recorded the end meanwhile, this read may have been sent before it.
        let breach = known
            .filter(|rail| rail.end.is_none())
            .and_then(|rail| rail.read(&answer.json()));
        book.breaches.extend(breach);
    }
}

/// The path of a pay-in or a pay-out.
pub(in crate::gate) fn path_of_rail(side: Side, id: &str) -> String {
    match side {
        Side::Purchase => format!("/rails/pay_ins/{id}"),
        Side::Sale => format!("/rails/pay_outs/{id}"),
    }
}

/// Renders a redemption for a client that hangs up, if there is a quote.
pub(super) fn stray(shop: &Shop, orders: &Orders, chance: &mut fastrand::Rng) -> Option<Writing> {
    let id = chance.choice(orders.hot_quotes.iter())?;
    let known = orders.quotes.get(id)?;
    let session = chance.choice(known.payers.iter())?;
    let key = format!("redeem-{id}-{session}");
    Some(Writing::redeem(shop, known.order.side, id, session, &key))
}

//! The rules of the gate's contract, tested over HTTP.

mod bootstrap;
mod branding;
mod browsers;
mod capabilities;
mod create;
mod customers;
mod idempotency;
mod keys;
mod logs;
mod payments;
mod previews;
mod races;
mod rail_notifications;
mod rails;
mod sessions;
mod tenancy;
mod throttles;
mod transactions;
mod webhooks;
mod widget;
mod widget_accounts;
mod widget_options;
mod widget_pages;
mod widget_payments;
mod widget_swaps;
mod widget_verification;

//! `penstock export`: writes a partner's trades, ledger entries or payments of a time window, for spreadsheets and other programs.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use gate_core::rail::{FailureReason, RailRecord};
use kernel::{Bound, Timestamp, TimestampError, UNITS_SCALE};
use partner_core::Tenant;
use partner_core::export::{Pages, Window};
use pools_core::export::ExportedEntry;
use pools_core::ledger::AccountKind;
use pools_core::profile::Network;
use pools_core::trade::Trade;
use rust_decimal::Decimal;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::{Installation, partner_id};
use crate::progress::Progress;
use crate::table_writer::{Cell, TableWriter};
use crate::terminal::{Output, Terminal};

/// Rows per page. Only one page is in memory at a time.
const PAGE: u32 = 500;

/// The list to export.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ExportArgs {
    /// Exports the trades created in a window, with every stored field
    Trades(Chosen),
    /// Exports the ledger entries created in a window, in every currency
    Ledger(Chosen),
    /// Exports the payments of the gate created in a window, with what has arrived and what is open, without personal data
    Payments(Chosen),
}

/// The partner, and the time window.
#[derive(Debug, clap::Args)]
pub(crate) struct Chosen {
    /// Partner
    #[arg(long)]
    partner: String,
    /// Start of the window (inclusive), such as 2026-05-01 or 2026-05-01T00:00:00Z
    #[arg(long, value_name = "INSTANT")]
    from: String,
    /// End of the window (exclusive)
    #[arg(long, value_name = "INSTANT")]
    to: String,
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: ExportArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    let (ExportArgs::Trades(chosen) | ExportArgs::Ledger(chosen) | ExportArgs::Payments(chosen)) =
        &command;
    let partner = partner_id(&chosen.partner)?;
    let window = window(chosen)?;
    let installation = Installation::open_to_read(&given, terminal).await?;
    let who = installation.tenant(partner).await?;
    let store = &installation.base.store;
    let output = terminal.output();
    match command {
        ExportArgs::Trades(_) => {
            let pages = store.trades_export(&who, window).await?;
            export(pages, output, &TRADE, |trade| trade_row(&who, trade)).await?;
        }
        ExportArgs::Ledger(_) => {
            let pages = store.ledger_export(&who, window).await?;
            export(pages, output, &ENTRY, |booked| entry_row(&who, booked)).await?;
        }
        ExportArgs::Payments(_) => {
            let pages = store.payments_export(&who, window).await?;
            export(pages, output, &PAYMENT, |record| payment_row(&who, record)).await?;
        }
    }
    installation.close().await;
    Ok(ExitCode::SUCCESS)
}

fn window(chosen: &Chosen) -> Result<Window, Failure> {
    let read = |flag, text: &str| {
        // Both bounds are rounded up, because the start is inclusive and the end exclusive.
        Timestamp::parse(text, Bound::Lower).map_err(|_| {
            let expected = TimestampError::Unreadable;
            Failure::input(format!("{flag}: {expected}"))
        })
    };
    let (from, to) = (read("--from", &chosen.from)?, read("--to", &chosen.to)?);
    Window::new(from, to).ok_or_else(|| {
        Failure::input(format!(
            "--from: expected an instant before --to, {to}; {from} is not"
        ))
    })
}

async fn export<T>(
    mut pages: Box<dyn Pages<T>>,
    output: Output,
    columns: &'static [&'static str],
    row: impl Fn(&T) -> Vec<Cell>,
) -> Result<(), Failure> {
    let out = io::stdout();
    // No progress is shown if the rows go to the same terminal.
    let progress = if out.is_terminal() {
        Progress::hidden()
    } else {
        Progress::begin("exporting")
    };
    let mut table = TableWriter::begin(output, columns, out).map_err(write_failure)?;
    let mut count = 0_usize;
    loop {
        let page = pages.next(PAGE).await?;
        if page.is_empty() {
            return table.end().map_err(write_failure);
        }
        for item in &page {
            table.row(&row(item)).map_err(write_failure)?;
        }
        count = count.saturating_add(page.len());
        progress.say(format!("exporting: {count} rows"));
    }
}

fn write_failure(error: io::Error) -> Failure {
    Failure::Failed(format!(
        "the export cannot be written and is incomplete ({error}); run the command again"
    ))
}

/// The columns that partners know from the API, then the columns for the operator only.
const TRADE: [&str; 31] = [
    "mode",
    "partnerId",
    "transactId",
    "quoteId",
    "poolId",
    "side",
    "status",
    "fiatCurrency",
    "fiatAmount",
    "cryptoCurrency",
    "cryptoAmount",
    "cryptoNetwork",
    "destAddress",
    "destNetwork",
    "quotedRate",
    "spreadBps",
    "feeBps",
    "notionalUsdt",
    "reservedAmount",
    "engineFillTxId",
    "createdAt",
    "settledAt",
    "releasedAt",
    "failedAt",
    "returnedAt",
    "attempts",
    "leaseToken",
    "leaseUntil",
    "midRate",
    "fillRate",
    "engine",
];

fn trade_row(who: &Tenant, trade: &Trade) -> Vec<Cell> {
    let terms = &trade.terms;
    let destination = terms.destination.as_ref();
    let notional = Decimal::new(terms.notional, UNITS_SCALE.into()).normalize();
    let settlement = trade.state.settlement();
    let fill = settlement.map_or(Cell::Empty, |it| Cell::Text(it.fill.clone()));
    let [released, failed, returned] = trade.state.ends();
    vec![
        plain(who.mode),
        Cell::Text(who.partner.to_string()),
        plain(trade.id),
        plain(trade.quote),
        plain(terms.pool),
        plain(terms.side.as_str()),
        plain(trade.state.status().as_str()),
        plain(terms.pool.fiat()),
        plain(terms.fiat),
        plain(terms.pool.crypto()),
        plain(terms.crypto),
        plain(terms.network.as_str()),
        Cell::plain(destination.map(|it| it.address.as_str())),
        Cell::plain(destination.map(|it| it.network.as_str())),
        plain(terms.rate),
        Cell::Number(terms.spread_bps.into()),
        Cell::Number(terms.fee_bps.into()),
        plain(notional),
        Cell::plain(trade.reserved),
        fill,
        plain(trade.created_at),
        Cell::plain(settlement.map(|it| it.at)),
        Cell::plain(released),
        Cell::plain(failed),
        Cell::plain(returned),
        Cell::Number(trade.attempts.into()),
        Cell::plain(trade.lease.map(|lease| lease.token)),
        Cell::plain(trade.lease.map(|lease| lease.until)),
        Cell::plain(terms.mid),
        Cell::plain(settlement.and_then(|it| it.rate)),
        trade
            .engine
            .as_ref()
            .map_or(Cell::Empty, |engine| Cell::Text(engine.to_string())),
    ]
}

const ENTRY: [&str; 16] = [
    "mode",
    "partnerId",
    "id",
    "currency",
    "sequence",
    "reason",
    "debit",
    "credit",
    "amount",
    "delta",
    "balanceAfter",
    "ref",
    "network",
    "transactId",
    "part",
    "createdAt",
];

fn entry_row(who: &Tenant, booked: &ExportedEntry) -> Vec<Cell> {
    let ExportedEntry { entry, network } = booked;
    let transfer = &entry.transfer;
    let number = entry.mark.map(|mark| u64::try_from(mark.sequence));
    let delta = match (transfer.debit, transfer.credit) {
        (AccountKind::Partner, _) => Cell::Plain(format!("-{}", transfer.amount)),
        (_, AccountKind::Partner) => plain(transfer.amount),
        _ => Cell::Empty,
    };
    vec![
        plain(who.mode),
        Cell::Text(who.partner.to_string()),
        plain(entry.id),
        plain(transfer.amount.asset()),
        number
            .and_then(Result::ok)
            .map_or(Cell::Empty, Cell::Number),
        plain(transfer.reason.as_str()),
        plain(transfer.debit.as_str()),
        plain(transfer.credit.as_str()),
        plain(transfer.amount),
        delta,
        Cell::plain(entry.mark.map(|mark| mark.balance_after)),
        Cell::Text(entry.reference.clone()),
        Cell::plain(network.map(Network::as_str)),
        Cell::plain(entry.trade.map(|(trade, _)| trade)),
        Cell::plain(entry.trade.map(|(_, part)| part.as_str())),
        plain(entry.created_at),
    ]
}

const PAYMENT: [&str; 34] = [
    "mode",
    "partnerId",
    "railId",
    "kind",
    "hosted",
    "sessionId",
    "quoteId",
    "txRefid",
    "status",
    "failureCode",
    "failureReason",
    "paymentMethod",
    "fiatCurrency",
    "fiatAmount",
    "cryptoCurrency",
    "cryptoNetwork",
    "cryptoAmount",
    "sourceCurrency",
    "sourceNetwork",
    "sourceAmount",
    "exchangeRate",
    "totalFees",
    "rail",
    "reference",
    "createdAt",
    "payUntil",
    "acknowledgedAt",
    "endedAt",
    "required",
    "received",
    "receivedAt",
    "openItem",
    "openItemAt",
    "attempts",
];

fn payment_row(who: &Tenant, record: &RailRecord) -> Vec<Cell> {
    let (terms, priced) = (&record.terms, &record.terms.priced);
    let (source, state) = (terms.source(), &record.state);
    let reason = state.failure_reason();
    let (received, item) = (record.received, record.open_item);
    vec![
        plain(who.mode),
        Cell::Text(who.partner.to_string()),
        plain(record.id),
        plain(record.id.kind().as_str()),
        plain(record.hosted.is_some()),
        plain(record.session),
        plain(record.quote),
        plain(record.refid),
        plain(state.status().as_str()),
        Cell::plain(state.failure_code()),
        Cell::plain(reason.map(FailureReason::as_str)),
        Cell::plain(terms.payment_method()),
        plain(terms.currency()),
        plain(priced.fiat),
        plain(terms.asset()),
        plain(&terms.network),
        plain(priced.crypto),
        Cell::plain(source.map(|it| it.amount.asset())),
        Cell::plain(source.map(|it| &it.network)),
        Cell::plain(source.map(|it| it.amount)),
        plain(priced.rate),
        plain(priced.fees.total),
        Cell::Text(record.rail.to_string()),
        state
            .reference()
            .map_or(Cell::Empty, |text| Cell::Text(text.to_owned())),
        plain(record.created_at),
        Cell::plain(record.pay_until),
        Cell::plain(record.acknowledged_at),
        Cell::plain(state.ended_at()),
        plain(terms.paid().amount),
        Cell::plain(received.map(|it| it.amount)),
        Cell::plain(received.map(|it| it.at)),
        Cell::plain(item.map(|item| item.finding.as_str())),
        Cell::plain(item.map(|item| item.at)),
        Cell::Number(record.asking.attempts.into()),
    ]
}

fn plain(value: impl ToString) -> Cell {
    Cell::Plain(value.to_string())
}

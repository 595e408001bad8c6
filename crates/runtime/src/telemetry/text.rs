//! Log lines for people: one short line per event.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// `03:09:17.936 200 GET /v1/pools 1.3 ms` for a request, `03:09:17.936 WARN Message key=value` for anything else.
#[derive(Debug)]
pub(super) struct TextLines;

impl<S, N> FormatEvent<S, N> for TextLines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        write_time(&mut writer)?;
        let is_expected = if let Some(status) = fields.take("http.status") {
            write_request(&mut writer, &status, &mut fields)?;
            status.starts_with(['1', '2', '3'])
        } else {
            write_message(&mut writer, *event.metadata().level(), &fields)?;
            false
        };
        if !is_expected {
            write_spans(&mut writer, context)?;
        }
        writer.write_char('\n')
    }
}

/// The time of day, in UTC and milliseconds.
fn write_time(writer: &mut Writer<'_>) -> fmt::Result {
    let mut instant = String::new();
    SystemTime.format_time(&mut Writer::new(&mut instant))?;
    let time = instant.get(11..23).unwrap_or(&instant);
    styled(writer, DIM, time)
}

fn write_request(writer: &mut Writer<'_>, status: &str, fields: &mut Fields) -> fmt::Result {
    writer.write_char(' ')?;
    let style = match status.as_bytes().first() {
        Some(b'5') => RED,
        Some(b'4') => YELLOW,
        _ => GREEN,
    };
    styled(writer, style, status)?;
    let method = fields.take("http.method").unwrap_or_default();
    let route = fields.take("http.route");
    let route = route.as_deref().unwrap_or("(unknown route)");
    write!(writer, " {method} {route}")?;
    if let Some(code) = fields.take("error.code") {
        write!(writer, " {code}")?;
    }
    let duration = fields.take("duration_us").and_then(|us| us.parse().ok());
    if let Some(us) = duration {
        let us: u64 = us;
        styled(
            writer,
            DIM,
            &format!(" {}.{} ms", us / 1000, us % 1000 / 100),
        )?;
    }
    Ok(())
}

fn write_message(writer: &mut Writer<'_>, level: Level, fields: &Fields) -> fmt::Result {
    let style = match level {
        Level::ERROR => RED,
        Level::WARN => YELLOW,
        _ => DIM,
    };
    writer.write_char(' ')?;
    styled(writer, style, level.as_str())?;
    for (name, value) in &fields.0 {
        if *name == "message" {
            write!(writer, " {}", one_line(value))?;
        } else {
            write!(writer, " {name}={}", quoted_if_needed(value))?;
        }
    }
    Ok(())
}

/// The fields of the spans, such as the request's id.
fn write_spans<S, N>(writer: &mut Writer<'_>, context: &FmtContext<'_, S, N>) -> fmt::Result
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    let scope = context.event_scope().into_iter();
    for span in scope.flat_map(|scope| scope.from_root()) {
        if let Some(fields) = span.extensions().get::<FormattedFields<N>>()
            && !fields.is_empty()
        {
            write!(writer, " {fields}")?;
        }
    }
    Ok(())
}

const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

fn styled(writer: &mut Writer<'_>, style: &str, text: &str) -> fmt::Result {
    if writer.has_ansi_escapes() {
        write!(writer, "\u{1b}[{style}m{text}\u{1b}[0m")
    } else {
        writer.write_str(text)
    }
}

/// The event's fields as text, in the order of the call.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(other, _)| *other == name)?;
        Some(self.0.remove(at).1)
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

/// Escapes characters that could end the line or control a terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}

fn quoted_if_needed(value: &str) -> String {
    let is_word = |letter: char| letter.is_alphanumeric() || "-_.:/+{}*".contains(letter);
    if !value.is_empty() && value.chars().all(is_word) {
        return value.to_owned();
    }
    format!("\"{}\"", one_line(value).replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::telemetry::tests::Written;

    /// The log lines of a call, without their times.
    fn written(is_coloured: bool, run: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(is_coloured)
            .with_writer(move || writer.clone())
            .event_format(TextLines);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), run);
        let text = written.text();
        let time = if is_coloured { 20 } else { 12 };
        text.lines().map(|line| line[time..].to_owned()).collect()
    }

    #[test]
    fn request_is_one_short_line() {
        let lines = written(false, || {
            let _span = tracing::error_span!("request", request.id = "req_1").entered();
            tracing::info!(
                partner.id = "acme",
                http.method = "GET",
                http.route = "/v1/pools/{id}",
                http.status = 200_u16,
                duration_us = 12_345_u64,
                "Answered a request"
            );
            tracing::info!(
                http.method = "GET",
                http.status = 404_u16,
                error.code = "route_not_found",
                duration_us = 90_u64,
                "Answered a request"
            );
        });
        assert_eq!(
            lines,
            [
                " 200 GET /v1/pools/{id} 12.3 ms",
                " 404 GET (unknown route) route_not_found 0.0 ms request.id=\"req_1\""
            ]
        );
    }

    #[test]
    fn message_shows_its_fields() {
        let lines = written(false, || {
            tracing::warn!(wait_ms = 20, reason = "too slow", "Gave up");
        });
        assert_eq!(lines, [" WARN Gave up wait_ms=20 reason=\"too slow\""]);
    }

    #[test]
    fn colours_appear_only_if_enabled() {
        let line = written(true, || tracing::error!("Broken"));
        assert_eq!(line, [" \u{1b}[31mERROR\u{1b}[0m Broken"]);
    }

    #[test]
    fn hostile_text_stays_on_its_line() {
        let hostile = "a\"b\nc\u{1b}[31md\u{2028}e";
        let lines = written(false, || tracing::warn!(text = hostile, "{hostile}"));
        let [line] = lines.as_slice() else {
            panic!("expected one line: {lines:?}")
        };
        assert!(!line.contains(['\u{1b}', '\u{2028}']), "{line}");
        assert!(line.contains(r#"text="a\"b\nc"#), "{line}");
    }
}

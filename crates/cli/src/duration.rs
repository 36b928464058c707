//! Spans of time as people write them: `90s`, `10m`, `1h30m`, or a bare number of seconds.

use std::time::Duration;

use jiff::fmt::friendly::{Spacing, SpanParser, SpanPrinter};

/// Longer than this is taken for a slip; it also keeps every sum of a few spans far from overflow.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// Reads a span. Zero, negative ones and more than a year are refused.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let span = if text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || c == '.')
    {
        text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    } else {
        SpanParser::new().parse_unsigned_duration(text).ok()
    };
    match span {
        None => Err("write a duration longer than zero, such as 90s, 10m, 1h30m or a number of seconds".to_owned()),
        Some(Duration::ZERO) => Err("must be longer than zero".to_owned()),
        Some(span) if span > LONGEST => Err("is longer than a year".to_owned()),
        Some(span) => Ok(span),
    }
}

/// Writes a span so that [`parse`] reads it: `1h30m`.
pub(crate) fn show(span: Duration) -> String {
    SpanPrinter::new().spacing(Spacing::None).unsigned_duration_to_string(&span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_the_manual_are_read() {
        for (text, seconds) in [("90s", 90), ("10m", 600), ("1h30m", 5400), ("1h 30m", 5400), ("45", 45), (" 2m ", 120)]
        {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn what_is_no_positive_span_is_refused() {
        for text in
            ["", "0", "0s", "-5", "-5s", "5 ago", "banana", "1.2.3", "10 parsecs", "1e9", "99999999h", "NaN", "inf"]
        {
            assert!(parse(text).is_err(), "{text:?} was read as {:?}", parse(text));
        }
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for millis in [1, 250, 1_000, 90_000, 600_000, 5_400_000, 5_400_500, 21_600_000] {
            let span = Duration::from_millis(millis);
            assert_eq!(parse(&show(span)), Ok(span), "{}", show(span));
        }
        assert_eq!(show(Duration::from_mins(90)), "1h30m");
    }
}

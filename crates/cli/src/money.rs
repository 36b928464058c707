//! Amounts of US dollars as people write them: `5`, `2.50`, `$0.75`.

use ralphloop_core::units::Usd;

/// Reads an amount, exact to a millionth of a dollar. Zero and negative ones are refused.
pub(crate) fn parse(text: &str) -> Result<Usd, String> {
    let digits = text.trim();
    let digits = digits.strip_prefix('$').unwrap_or(digits);
    match millionths(digits) {
        None => Err("write an amount of dollars above zero, such as 5 or 2.50".to_owned()),
        Some(0) => Err("must be more than zero".to_owned()),
        Some(amount) => Ok(Usd(amount)),
    }
}

/// Writes an amount so that [`parse`] reads it, with as many digits as it has, but two at least.
pub(crate) fn show(amount: Usd) -> String {
    let (dollars, rest) = (amount.0 / 1_000_000, amount.0 % 1_000_000);
    let fraction = format!("{rest:06}");
    let fraction = fraction.trim_end_matches('0');
    format!("{dollars}.{fraction:0<2}")
}

fn millionths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !all_digits(whole) || !all_digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        for (text, millionths) in
            [("5", 5_000_000), ("2.50", 2_500_000), ("$0.75", 750_000), (".1", 100_000), ("0.000001", 1)]
        {
            assert_eq!(parse(text), Ok(Usd(millionths)), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", ".", "0", "0.00", "-1", "1,50", "1e3", "NaN", "five", "0.0000001", "99999999999999999999"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for amount in [1, 100_000, 2_500_000, 5_000_000, 1_234_567] {
            assert_eq!(parse(&show(Usd(amount))), Ok(Usd(amount)));
        }
        assert_eq!(show(Usd(2_500_000)), "2.50");
    }
}

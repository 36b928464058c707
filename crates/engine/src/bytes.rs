//! Amounts of bytes, for people.

use std::fmt;

/// An amount of bytes. Shown in the largest unit of 1024 of which there is at least one, to a tenth: `1.5 KiB`, `3 GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        let (mut tenths, mut unit) = (u128::from(self.0) * 10, "bytes");
        for larger in UNITS {
            if tenths < 10_240 {
                break;
            }
            (tenths, unit) = (tenths / 1024, larger);
        }
        match (tenths / 10, tenths % 10) {
            (1, 0) if unit == "bytes" => f.write_str("1 byte"),
            (whole, 0) => write!(f, "{whole} {unit}"),
            (whole, tenth) => write!(f, "{whole}.{tenth} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        let texts =
            [0, 1, 1023, 1024, 1536, 5 << 20, 3 << 30, 9_000 << 30, u64::MAX].map(|bytes| Bytes(bytes).to_string());
        assert_eq!(
            texts,
            ["0 bytes", "1 byte", "1023 bytes", "1 KiB", "1.5 KiB", "5 MiB", "3 GiB", "8.7 TiB", "16777215.9 TiB"]
        );
    }
}

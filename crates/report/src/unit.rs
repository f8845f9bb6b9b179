//! Units of metrics.

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// bit/s.
    Rate,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// A fraction or an index, mostly from 0 to 1.
    Ratio,
    /// Bytes.
    Bytes,
    /// A count: packets, segments, timeouts.
    Count,
    /// dB.
    Decibels,
}

impl Unit {
    /// Returns suffix of column names, symbol, and example.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Rate => ("_bps", "bit/s", "a rate, as in 1 Mbit/s"),
            Self::Seconds => ("_s", "s", "a time, as in 10 s"),
            Self::Milliseconds => ("_ms", "ms", "a time, as in 500 ms"),
            Self::Bytes => ("_bytes", "B", "a size, as in 50 kB"),
            Self::Ratio => ("", "", "a number without a unit or a percentage, as in 0.9 or 90 %"),
            Self::Count => ("", "", "a number, as in 3"),
            Self::Decibels => ("_db", "dB", "an attenuation, as in 3 dB"),
        }
    }

    /// Returns the suffix of column names.
    pub const fn suffix(self) -> &'static str {
        self.words().0
    }

    /// Returns the symbol in text; empty for bare numbers.
    pub const fn symbol(self) -> &'static str {
        self.words().1
    }

    /// Returns an example of a value, for errors.
    pub const fn example(self) -> &'static str {
        self.words().2
    }
}

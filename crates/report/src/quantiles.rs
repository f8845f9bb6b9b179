//! Minimum and quantiles of times.

use bentpipe_base::Duration;
use bentpipe_base::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// Times in milliseconds; null without a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct Quantiles {
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

impl Quantiles {
    /// Quantiles of a histogram.
    pub fn of(times: &Histogram) -> Self {
        let ms = |d: Option<Duration>| d.map(Duration::as_millis_f64);
        Self { min: ms(times.min()), p50: ms(times.quantile(0.5)), p99: ms(times.quantile(0.99)) }
    }
}

//! Vegas.
/// Thresholds in segments. Defaults: ns-2's (1, 3, 1); Linux uses (2, 4, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VegasParams {
    /// Grow while fewer segments than this wait in the queue.
    pub alpha: f64,
    /// Shrink when more segments than this wait.
    pub beta: f64,
    /// Leave slow start when more segments than this wait.
    pub gamma: f64,
}

impl Default for VegasParams {
    fn default() -> Self {
        Self { alpha: 1.0, beta: 3.0, gamma: 1.0 }
    }
}

//! CUBIC.
/// Parameters of RFC 9438 and RFC 9406.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicParams {
    /// Multiplicative decrease factor; 0.7 in RFC 9438, 0.8 in the Linux of 2008. Range 0.1..=0.95.
    pub beta: f64,
    /// Aggressiveness C in segments/s^3. 0.4 in RFC 9438.
    pub c: f64,
    /// Fast convergence (RFC 9438, section 4.7).
    pub fast_convergence: bool,
    /// HyStart++ (RFC 9406) ends slow start.
    pub hystart: bool,
}

impl Default for CubicParams {
    fn default() -> Self {
        Self { beta: 0.7, c: 0.4, fast_convergence: true, hystart: true }
    }
}

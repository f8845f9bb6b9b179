//! Which connections are accelerated: what the driver's rules say of a SYN, and a share that is left alone to compare with.

use bentpipe_base::Packet;

/// What the rules say of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accelerate it if that can be done.
    Accelerate,
    /// Let it pass.
    Pass,
    /// Let it pass, as one of those that the others are compared with.
    Sampled,
}

/// The driver's rules: called once for each connection, with its SYN. They lie outside because they speak of real addresses, which only the driver knows.
/// Must be a function of the packet alone: a repeated SYN must get the same answer.
pub type Rules = Box<dyn Fn(&Packet) -> Verdict + Send>;

/// Decides about a SYN; `draw` is the connection's own number, uniform over all of `u32`.
pub(crate) fn decide(rules: Option<&Rules>, sample: f64, syn: &Packet, draw: u32) -> Verdict {
    let verdict = rules.map_or(Verdict::Accelerate, |rules| rules(syn));
    let is_drawn = f64::from(draw) < sample * (f64::from(u32::MAX) + 1.0);
    if verdict == Verdict::Accelerate && is_drawn { Verdict::Sampled } else { verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_be_accelerated_is_sampled() {
        let syn = Packet::default();
        assert_eq!(decide(None, 0.0, &syn, 0), Verdict::Accelerate);
        assert_eq!(decide(None, 1.0, &syn, u32::MAX), Verdict::Sampled);
        assert_eq!(decide(None, 0.25, &syn, (1 << 30) - 1), Verdict::Sampled);
        assert_eq!(decide(None, 0.25, &syn, 1 << 30), Verdict::Accelerate);
        let rules: Rules = Box::new(|p| if p.dport == 22 { Verdict::Pass } else { Verdict::Accelerate });
        assert_eq!(decide(Some(&rules), 1.0, &Packet { dport: 22, ..syn.clone() }, 0), Verdict::Pass);
        assert_eq!(decide(Some(&rules), f64::NAN, &syn, 0), Verdict::Accelerate);
    }
}

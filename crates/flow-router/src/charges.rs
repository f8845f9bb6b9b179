//! Who pays for what: bytes of flows with an agreed rate, by rule of the policy.
//!
//! Source: TIA-1039 (2006), field CH: the sender or the receiver pays. What is charged is not said. Here: the
//! bytes of packets with payload that a flow sends at an agreed rate, headers included. The payer is known by
//! the rule of its address: the sender's, or the receiver's with reverse charging.

use bentpipe_base::Size;

/// Who pays for a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payer {
    /// Index of the payer's rule; `None` if none applies.
    pub(crate) rule: Option<usize>,
    /// True if the receiver pays.
    pub(crate) is_receiver: bool,
}

/// Bytes by payer.
#[derive(Clone, Debug)]
pub(crate) struct Charges {
    /// For payers without a rule, then for each rule: what they pay as senders, and as receivers.
    totals: Vec<[u64; 2]>,
}

impl Charges {
    pub(crate) fn new(rules: usize) -> Self {
        Self { totals: vec![[0; 2]; rules + 1] }
    }

    pub(crate) fn add(&mut self, payer: Payer, size: Size) {
        let row = self.totals.get_mut(payer.rule.map_or(0, |rule| rule + 1));
        if let Some(bytes) = row.and_then(|row| row.get_mut(usize::from(payer.is_receiver))) {
            *bytes = bytes.saturating_add(size.0);
        }
    }

    /// Calls `each` with every total, in the order of the rules; not at all if there are no rules.
    pub(crate) fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        for [sent, received] in self.totals.iter().filter(|_| self.totals.len() > 1) {
            each("charged_to_sender", *sent);
            each("charged_to_receiver", *received);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_added_up_by_payer() {
        let mut charges = Charges::new(2);
        for (rule, is_receiver, bytes) in [
            (None, false, 1),
            (Some(0), true, 2),
            (Some(1), false, 4),
            (Some(1), false, 8),
            (Some(9), false, 9),
        ] {
            charges.add(Payer { rule, is_receiver }, Size(bytes));
        }
        let mut seen = Vec::new();
        charges.counters(&mut |_, bytes| seen.push(bytes));
        assert_eq!(seen, [1, 0, 0, 2, 12, 0]);
        Charges::new(0).counters(&mut |key, _| panic!("{key} without a rule"));
    }
}

//! Measures how long losses took to be repaired: from the acknowledgment that reveals the loss at the
//! gateway's end until the retransmission enters the hop.
//!
//! The transmissions T1, T2, ... of a byte of a lost packet are followed as long as each is lost. The loss
//! of T1 is revealed by the first acknowledgment with a SACK block beyond it. The loss of Tk, k > 1, is
//! revealed by the first acknowledgment which proves that a packet arrived that entered the hop after Tk,
//! because the hop keeps order. The wait lasts from there to T(k+1); it is 0 if T(k+1) came earlier (a
//! copy). A loss that is revealed and not repaired until the end of the record counts as never repaired.

use super::flows::Flow;
use super::ranges::Ranges;

const S: f64 = 1e9;

/// Repair waits of a flow, s.
#[derive(Clone, Debug, Default)]
pub struct Repairs {
    /// Waits of lost first transmissions.
    pub first: Vec<f64>,
    /// Waits of retransmissions that were lost again.
    pub later: Vec<f64>,
    /// Losses that were revealed and never repaired, although there was time.
    pub never: usize,
    /// For first transmissions lost in the steady state: time from the loss to the first retransmission,
    /// minus a round trip and the queueing delay in the hop.
    pub from_loss: Vec<f64>,
    /// Those over 50 ms: time of the loss, how late, and time from the loss to the next packet of the flow
    /// that the hop did not lose, s. Nothing before that packet's arrival can reveal the loss.
    pub late: Vec<[f64; 3]>,
    /// Lost first transmissions.
    pub losses: usize,
    /// When the loss with the longest first wait was revealed, s since the start.
    pub worst_at: f64,
}

/// The flow's packets, sorted by their first byte.
struct Index<'a> {
    flow: &'a Flow,
    by_begin: Vec<usize>,
    longest: u64,
}

impl<'a> Index<'a> {
    fn of(flow: &'a Flow) -> Self {
        let mut by_begin: Vec<usize> = (0..flow.sent.len()).collect();
        by_begin.sort_by_key(|i| flow.sent[*i].begin);
        let longest = flow.sent.iter().map(|s| s.end - s.begin).max().unwrap_or(0);
        Self { flow, by_begin, longest }
    }

    /// Packets that contain a byte of `begin..end`, by stream offset.
    fn with(&self, begin: u64, end: u64) -> impl Iterator<Item = usize> {
        let sent = &self.flow.sent;
        let from = self.by_begin.partition_point(|i| sent[*i].begin + self.longest <= begin);
        let all = self.by_begin[from..].iter().copied().take_while(move |i| sent[*i].begin < end);
        all.filter(move |i| sent[*i].end > begin)
    }
}

/// What the acknowledgments prove over time: the highest byte reported as received, and the latest time at
/// which a packet that has arrived entered the hop; each with the time from which it is known.
fn proofs(index: &Index<'_>) -> [Vec<(u64, u64)>; 2] {
    let (mut edges, mut entered) = (Vec::new(), Vec::new());
    let (mut known, mut edge, mut latest) = (Ranges::default(), 0, 0);
    for seen in &index.flow.acks_at_gateway {
        let told = [(0, seen.ack)].into_iter().chain(seen.blocks.iter().copied());
        for (begin, end) in told {
            if end > edge && begin > 0 {
                edge = end;
                edges.push((seen.at, edge));
            }
            for (begin, end) in known.add(begin, end) {
                let arrived = index.with(begin, end).filter_map(|i| {
                    let sent = &index.flow.sent[i];
                    Some((sent.fate.delivered_at().filter(|out| *out <= seen.left)?, sent.at))
                });
                // of several transmissions of a byte, the first to arrive counts
                let Some(at) = arrived.min().map(|a| a.1) else { continue };
                if at > latest {
                    latest = at;
                    entered.push((seen.at, latest));
                }
            }
        }
    }
    [edges, entered]
}

/// The time at which the value of a rising series of (time, value) was first above `x`.
fn first_above(course: &[(u64, u64)], x: u64) -> Option<u64> {
    course.get(course.partition_point(|point| point.1 <= x)).map(|point| point.0)
}

/// Times the repairs of a flow's losses. [`Repairs::from_loss`] counts losses from `steady` (ns) on; `rate`
/// (bit/s) and `rtt` (s) are the hop's; `end` is the end of the record, ns.
pub fn repairs(flow: &Flow, steady: u64, (rate, rtt): (f64, f64), end: u64) -> Repairs {
    /// A loss revealed less than this before the end may remain unrepaired.
    const AT_THE_END: u64 = 1_000_000_000;
    const LATE: f64 = 0.05;
    let index = Index::of(flow);
    let [edges, entered] = proofs(&index);
    let mut found = Repairs::default();
    let mut worst = 0.0;
    for (at, first) in flow.sent.iter().enumerate().filter(|(_, s)| s.is_first && s.is_lost()) {
        found.losses += 1;
        let mut chain: Vec<usize> = index.with(first.begin, first.begin + 1).collect();
        chain.sort_unstable();
        for (k, i) in chain.iter().enumerate() {
            let this = &flow.sent[*i];
            if !this.is_lost() {
                break;
            }
            let shown = if k == 0 { first_above(&edges, this.end) } else { first_above(&entered, this.at) };
            let repair = chain.get(k + 1).map(|i| flow.sent[*i].at);
            let waited = |shown: u64| repair.map(|at| at.saturating_sub(shown) as f64 / S);
            match (k, shown.and_then(waited)) {
                (0, Some(wait)) => {
                    if wait > worst {
                        (worst, found.worst_at) = (wait, shown.unwrap_or(0) as f64 / S);
                    }
                    found.first.push(wait);
                    if this.at >= steady {
                        let waited = f64::from(this.before) * 8.0 / rate;
                        let late = (repair.unwrap_or(end) - this.at) as f64 / S - waited - rtt;
                        found.from_loss.push(late);
                        let next = flow.sent[at..].iter().find(|s| !s.is_lost()).map_or(end, |s| s.at);
                        if late > LATE {
                            found.late.push([this.at as f64 / S, late, (next - this.at) as f64 / S]);
                        }
                    }
                }
                (_, Some(wait)) => found.later.push(wait),
                (_, None) => {
                    let is_open = repair.is_none() && shown.is_some_and(|shown| shown + AT_THE_END < end);
                    found.never += usize::from(is_open);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::flows::flows;
    use super::super::flows::tests::{ack, data};
    use super::*;
    use crate::hop::direction::Fate;
    use crate::hop::record::Record;

    const MS: u64 = 1_000_000;

    fn out(t: u64) -> Fate {
        Fate::Delivered(t * MS)
    }

    fn found(records: &[Record], end: u64) -> Repairs {
        let mut in_ms = records.to_vec();
        for record in &mut in_ms {
            record.at *= MS;
            if let (false, Fate::Delivered(t)) = (record.forward, record.fate) {
                record.fate = Fate::Delivered(t * MS);
            }
        }
        repairs(&flows(&in_ms)[0], 0, (8e6, 0.030), end * MS)
    }

    fn is(waits: &[f64], ms: &[u64]) -> bool {
        waits.len() == ms.len() && waits.iter().zip(ms).all(|(w, ms)| (w * 1e3 - *ms as f64).abs() < 1e-6)
    }

    /// Packet 1 is lost at 1 ms; a SACK block beyond it reaches the gateway at 32. It is sent again at 40
    /// and lost; packet 3, sent at 41, is acknowledged at 82; packet 1 is sent again at 90.
    #[test]
    fn each_loss_is_timed_from_what_shows_it() {
        let mut records = vec![data(0, 0, out(10)), data(1, 1, Fate::Lost), data(2, 2, out(12))];
        records.extend([
            ack(10, 30, 1, &[]),
            ack(12, 32, 1, &[(2, 3)]),
            data(40, 1, Fate::QueueFull),
            data(41, 3, out(60)),
        ]);
        // a repeated SACK block proves nothing new
        records.extend([
            ack(50, 70, 1, &[(2, 3)]),
            ack(62, 82, 1, &[(2, 4)]),
            data(90, 1, out(100)),
            ack(100, 120, 4, &[]),
        ]);
        let found = found(&records, 5000);
        assert!(is(&found.first, &[8]) && is(&found.later, &[8]) && is(&found.from_loss, &[9]), "{found:?}");
        assert_eq!((found.never, found.losses), (0, 1));
        assert!((found.worst_at - 0.032).abs() < 1e-9);
    }

    #[test]
    fn a_copy_that_left_before_waits_for_nothing_and_what_is_forgotten_is_counted() {
        let mut records =
            vec![data(0, 0, Fate::Lost), data(1, 0, out(11)), data(2, 1, Fate::Lost), data(3, 2, out(13))];
        records.extend([ack(11, 31, 1, &[]), ack(13, 33, 1, &[(2, 3)])]);
        let at_last = found(&records, 500);
        assert_eq!((at_last.first.len(), at_last.never), (1, 0), "{at_last:?}");
        assert_eq!(at_last.first[0].to_bits(), 0.0_f64.to_bits());
        assert_eq!(found(&records, 5000).never, 1);
    }

    /// Lost acknowledgments reveal nothing; a repair with other segment boundaries still counts.
    #[test]
    fn only_what_reached_the_gateway_shows_a_loss() {
        let mut records = vec![data(0, 0, Fate::Lost), data(1, 1, out(11)), data(2, 2, out(12))];
        let mut lost = ack(11, 0, 0, &[(1, 2)]);
        lost.fate = Fate::Lost;
        records.extend([lost, ack(12, 32, 0, &[(1, 3)]), data(33, 0, out(43))]);
        assert!(is(&found(&records, 5000).first, &[1]));
    }
}

//! The scoreboard against a model that keeps one entry per byte.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
struct ByteState {
    seg: u64, // end of its segment
    sacked: bool,
    lost: bool,
    resent: bool,
}

#[derive(Clone, Debug)]
enum Op {
    Send(u64),
    Ack(u64),
    Sack(u64, u64),
    Lose(u64, bool),
    Resend,
    Timeout,
    Undo,
    Renege,
    MarkBelow(u64),
    Cut(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1u64..5).prop_map(Op::Send),
        3 => (0u64..12).prop_map(Op::Ack),
        4 => (0u64..40, 1u64..20).prop_map(|(a, b)| Op::Sack(a, b)),
        3 => (0u64..10, any::<bool>()).prop_map(|(a, b)| Op::Lose(a, b)),
        3 => Just(Op::Resend),
        1 => Just(Op::Timeout),
        1 => Just(Op::Undo),
        1 => Just(Op::Renege),
        3 => (0u64..30).prop_map(Op::MarkBelow),
        1 => (1u64..4).prop_map(Op::Cut),
    ]
}

/// The model: a list of bytes from `una` to `next`.
#[derive(Default)]
struct Model {
    una: u64,
    bytes: Vec<ByteState>,
}

impl Model {
    fn next(&self) -> u64 {
        self.una + self.bytes.len() as u64
    }
    fn count(&self, f: impl Fn(&ByteState) -> bool) -> u64 {
        self.bytes.iter().filter(|b| f(b)).count() as u64
    }
    fn segment(&mut self, end: u64) -> impl Iterator<Item = &mut ByteState> {
        self.bytes.iter_mut().filter(move |b| b.seg == end)
    }
    fn ends(&self) -> Vec<u64> {
        let mut e: Vec<u64> = self.bytes.iter().map(|b| b.seg).collect();
        e.dedup();
        e
    }
    fn sack(&mut self, left: u64, right: u64) {
        for end in self.ends() {
            let start = self.una + self.bytes.iter().position(|b| b.seg == end).unwrap() as u64;
            if start >= left && end <= right {
                for b in self.segment(end) {
                    *b = ByteState { seg: end, sacked: true, lost: false, resent: false };
                }
            }
        }
    }
    fn cut(&mut self, most: u64) {
        let mut start = self.una;
        for end in self.ends() {
            let long = end - start > most && !self.segment(end).any(|b| b.sacked);
            for (n, b) in (0u64..).zip(self.segment(end)).filter(|_| long) {
                let piece = end.min(start + (n / most + 1) * most);
                *b = ByteState { seg: piece, sacked: false, lost: true, resent: false };
            }
            start = end;
        }
    }
    fn lose(&mut self, end: u64, again: bool) {
        for b in self.segment(end) {
            if !b.sacked && (!b.lost || (b.resent && again)) {
                b.lost = true;
                b.resent = false;
            }
        }
    }
}

fn apply(op: &Op, board: &mut Scoreboard, model: &mut Model, rate: &mut DeliveryRate, now: Instant) -> u64 {
    let mut digest = AckSummary { now, ..AckSummary::default() };
    match *op {
        Op::Send(len) => {
            let end = board.next() + len;
            board.push(end, now, rate.on_sent(now, false));
            model.bytes.extend((0..len).map(|_| ByteState {
                seg: end,
                sacked: false,
                lost: false,
                resent: false,
            }));
        }
        Op::Ack(n) => {
            let ack = (board.una() + n).min(board.next());
            board.acknowledge(ack, rate, &mut digest);
            let gone = model.bytes.drain(..(ack - model.una) as usize).filter(|b| !b.sacked).count() as u64;
            model.una = ack;
            assert_eq!(digest.delivered, gone);
        }
        Op::Sack(at, len) => {
            let left = board.una() + at;
            let before = model.count(|b| b.sacked);
            board.sack(left, left + len, rate, &mut digest);
            model.sack(left, (left + len).min(model.next()));
            assert_eq!(digest.newly_sacked, model.count(|b| b.sacked) - before);
        }
        Op::Lose(i, again) => {
            if let Some(end) = board.get(i as usize).map(|s| s.end) {
                board.mark_lost(i as usize, again);
                model.lose(end, again);
            }
        }
        Op::Resend => {
            let expected = model.ends().into_iter().find(|e| model.segment(*e).any(|b| b.lost && !b.resent));
            let got = board.next_lost();
            assert_eq!(got.and_then(|i| board.get(i)).map(|s| s.end), expected);
            if let (Some(i), Some(end)) = (got, expected) {
                board.resend(i, now, rate.on_sent(now, false));
                model.segment(end).for_each(|b| b.resent = true);
            }
        }
        Op::Timeout => {
            board.mark_all_lost();
            model.bytes.iter_mut().filter(|b| !b.sacked).for_each(|b| (b.lost, b.resent) = (true, false));
        }
        Op::Undo => {
            board.unmark_lost();
            model.bytes.iter_mut().for_each(|b| (b.lost, b.resent) = (false, false));
        }
        Op::Renege => {
            if board.get(0).is_some_and(|s| s.sacked) {
                model.bytes.iter_mut().for_each(|b| b.sacked = false);
            }
            board.renege_at_una();
        }
        Op::MarkBelow(at) => {
            let position = board.una() + at;
            board.mark_below(position);
            for end in model.ends().into_iter().filter(|e| *e <= position) {
                model.lose(end, false);
            }
        }
        Op::Cut(most) => {
            board.split_to_mss(most);
            model.cut(most);
        }
    }
    digest.delivered
}

/// The incremental searches find the same as a search from the start.
fn searches_agree(board: &mut Scoreboard, at: u64) {
    let top = board.una() + at;
    let segs: Vec<_> = (0..board.len()).map(|i| (board.start_of(i), board.get(i).unwrap().clone())).collect();
    let untouched = segs.iter().position(|(start, s)| *start < top && !s.sacked && !s.lost && s.resends == 0);
    assert_eq!(board.first_untouched(top), untouched);
    assert_eq!(board.last_never_resent(), segs.iter().rposition(|(_, s)| !s.sacked && s.resends == 0));
}

proptest! {
    #[test]
    fn agrees_with_a_model_of_single_bytes(
        ops in proptest::collection::vec(op(), 1..120), asks in proptest::collection::vec(0u64..40, 1..40),
    ) {
        let mut board = Scoreboard::default();
        let mut model = Model::default();
        let mut rate = DeliveryRate::default();
        for (i, op) in ops.iter().enumerate() {
            apply(op, &mut board, &mut model, &mut rate, Instant(i as u64));
            prop_assert_eq!(board.una(), model.una);
            prop_assert_eq!(board.next(), model.next());
            prop_assert_eq!(board.sacked(), model.count(|b| b.sacked));
            prop_assert_eq!(board.lost(), model.count(|b| b.lost));
            prop_assert_eq!(board.to_resend(), model.count(|b| b.lost && !b.resent));
            // RFC 6675, SetPipe: bytes neither SACKed nor lost, plus bytes lost and resent
            let pipe = model.count(|b| !b.sacked && !b.lost) + model.count(|b| b.lost && b.resent);
            prop_assert_eq!(board.pipe(), pipe);
            if asks[i % asks.len()] > 0 {
                searches_agree(&mut board, asks[i % asks.len()]);
            }
        }
    }
}

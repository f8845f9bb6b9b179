//! Values that must be equal in two states, as words that are compared.

use crate::packet::Addr;
use crate::time::{Duration, Instant};
use crate::units::{Dscp, Probability, Rate, Size};

/// A value as words: equal words mean equal values.
pub trait Words {
    /// Calls `each` with every word.
    fn words(&self, each: &mut dyn FnMut(u64));
}

macro_rules! as_word {
    ($($type:ty: $value:ident => $word:expr;)+) => { $(
        impl Words for $type {
            #[inline]
            fn words(&self, each: &mut dyn FnMut(u64)) {
                let $value = *self;
                each($word);
            }
        }
    )+ };
}

as_word! {
    bool: v => u64::from(v);
    u8: v => u64::from(v);
    u16: v => u64::from(v);
    u32: v => u64::from(v);
    u64: v => v;
    usize: v => v as u64;
    i64: v => v.cast_unsigned();
    f64: v => v.to_bits();
    Duration: v => v.0;
    Size: v => v.0;
    Rate: v => v.bps();
    Probability: v => v.get().to_bits();
    Dscp: v => u64::from(v.get());
    Addr: v => u64::from(v.0);
    Instant: v => v.0;
}

impl Words for u128 {
    fn words(&self, each: &mut dyn FnMut(u64)) {
        each(*self as u64);
        each((*self >> 64) as u64);
    }
}

impl<T: Words> Words for Option<T> {
    fn words(&self, each: &mut dyn FnMut(u64)) {
        each(u64::from(self.is_some()));
        if let Some(value) = self {
            value.words(each);
        }
    }
}

impl<T: Words, const N: usize> Words for [T; N] {
    fn words(&self, each: &mut dyn FnMut(u64)) {
        for value in self {
            value.words(each);
        }
    }
}

impl<A: Words, B: Words> Words for (A, B) {
    fn words(&self, each: &mut dyn FnMut(u64)) {
        self.0.words(each);
        self.1.words(each);
    }
}

impl<A: Words, B: Words, C: Words> Words for (A, B, C) {
    fn words(&self, each: &mut dyn FnMut(u64)) {
        self.0.words(each);
        self.1.words(each);
        self.2.words(each);
    }
}

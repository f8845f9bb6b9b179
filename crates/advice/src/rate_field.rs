//! The 16-bit rate of TIA-1039.
//!
//! Source: ATM Forum, Traffic Management 4.0 (the ABR rate format), which TIA-1039 takes over.
//!   bit 15 reserved, bit 14 nz, bits 13-9 exponent e, bits 8-0 mantissa m
//!   rate = nz 2^e (1 + m / 512) units
//! TIA-1039 does not state the unit. Here it is 1 kbit/s of IP bytes, headers included: the format then ends
//! at 4.29 Tbit/s, with 1 bit/s it would end at 4.29 Gbit/s. Encoding rounds down, so that a router never
//! promises more than it has; a step is at most 0.2 %. Decoding rounds up to a whole bit/s, which is never
//! more than what was encoded, and encodes to the same field again.

use bentpipe_base::Rate;

/// bit/s of one unit of the field.
pub const RATE_UNIT_BPS: u64 = 1000;

/// Set in every rate but zero.
const NONZERO: u16 = 0x4000;
/// The largest rate.
const LARGEST: u16 = 0x7FFF;
/// Bits of the mantissa.
const MANTISSA_BITS: u32 = 9;
/// Steps from a power of two to the next.
const STEPS: u64 = 1 << MANTISSA_BITS;
/// The largest exponent.
const MAX_EXPONENT: u32 = 31;

/// The field for a rate, rounded down. No rate, and less than a unit, is 0; what is too large is the largest
/// rate of the format.
pub fn encode_rate(rate: Option<Rate>) -> u16 {
    let Some(rate) = rate else { return 0 };
    // in steps of the smallest exponent, so that the highest bit tells the exponent
    let steps = u128::from(rate.bps()) * u128::from(STEPS) / u128::from(RATE_UNIT_BPS);
    match steps.checked_ilog2().and_then(|log| log.checked_sub(MANTISSA_BITS)) {
        None => 0,
        Some(exponent) if exponent > MAX_EXPONENT => LARGEST,
        Some(exponent) => {
            let mantissa = (steps >> exponent) as u16 & (STEPS as u16 - 1);
            NONZERO | (exponent as u16) << MANTISSA_BITS | mantissa
        }
    }
}

/// The rate in a field; `None` is zero. Bit 15 is ignored.
pub fn decode_rate(field: u16) -> Option<Rate> {
    let exponent = u32::from(field >> MANTISSA_BITS) & MAX_EXPONENT;
    let steps = (STEPS + u64::from(field) % STEPS) << exponent;
    let bps = (steps * RATE_UNIT_BPS).div_ceil(STEPS);
    Rate::from_bps(bps).filter(|_| field & NONZERO != 0)
}

/// What becomes of a rate that is written into the field and read back.
pub fn rounded(rate: Rate) -> Option<Rate> {
    decode_rate(encode_rate(Some(rate)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kbps(kbps: u64) -> Option<Rate> {
        Rate::from_bps(kbps * 1000)
    }

    #[test]
    fn rates_have_the_fields_of_the_format() {
        let vectors = [
            (1, 0x4000, 1),
            (64, 0x4C00, 64),
            (1544, 0x5504, 1544),
            (24_000, 0x5CEE, 24_000),
            (30_000, 0x5DA9, 29_984),
            (35_000, 0x5E22, 34_944),
            (100_000, 0x610D, 99_968),
            (155_000, 0x625D, 154_880),
            (10_000_000, 0x6E62, 9_994_240),
            (4_290_772_992, 0x7FFF, 4_290_772_992),
        ];
        for (rate, field, read) in vectors {
            assert_eq!(encode_rate(kbps(rate)), field, "{rate} kbit/s");
            assert_eq!(decode_rate(field), kbps(read), "{field:#x}");
            assert_eq!(rounded(kbps(rate).unwrap()), kbps(read));
        }
    }

    #[test]
    fn what_the_format_cannot_hold_is_zero_or_the_largest_rate() {
        assert_eq!((encode_rate(None), encode_rate(Rate::from_bps(999))), (0, 0));
        assert_eq!(encode_rate(Rate::from_bps(u64::MAX)), 0x7FFF);
        assert_eq!(encode_rate(kbps(4_290_772_993)), 0x7FFF);
        // without nz the other bits mean nothing; bit 15 is reserved
        assert_eq!((decode_rate(0), decode_rate(0x3FFF), decode_rate(0xBFFF)), (None, None, None));
        assert_eq!(decode_rate(0xC000), kbps(1));
    }

    #[test]
    fn every_field_is_written_as_it_was_read() {
        for field in 0x4000..=0x7FFF {
            assert_eq!(encode_rate(decode_rate(field)), field, "{field:#x}");
        }
    }

    proptest! {
        #[test]
        fn a_rate_never_grows_and_loses_less_than_a_step(bps in 1000u64..=4_290_772_992_000) {
            let rate = Rate::from_bps(bps).unwrap();
            let read = rounded(rate).unwrap();
            prop_assert!(read <= rate);
            prop_assert!(bps - read.bps() <= bps / 512 + 1);
        }

        #[test]
        fn a_larger_rate_has_no_smaller_field(a: u64, b: u64, shift in 0u32..64) {
            let field = |bps: u64| encode_rate(Rate::from_bps(bps >> shift));
            prop_assert!(field(a.min(b)) <= field(a.max(b)));
        }
    }
}

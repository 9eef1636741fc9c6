//! Arithmetic with the CRC's polynomials: what a change of some bytes does to the CRC of all that follows. The CRC is
//! linear, so flipped bits move to its end by a multiplication with a power of x.

/// The generator, with x^31 in the lowest bit.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// The polynomial 1: the highest bit stands for x^0.
pub const ONE: u32 = 1 << 31;

/// x^8, x^16, x^32 …: one for each bit of a byte count.
const POWERS: [u32; 17] = squares(ONE >> 8);
/// x^-8, x^-16, x^-32 …
const INVERSES: [u32; 17] = {
    let mut first = ONE;
    let mut step = 0;
    while step < 8 {
        first = divide_by_x(first);
        step += 1;
    }
    squares(first)
};

/// x^8n modulo the generator; `bytes` below 2^17.
pub const fn power(bytes: usize) -> u32 {
    product(&POWERS, bytes)
}

/// x^-8n modulo the generator; `bytes` below 2^17.
pub const fn inverse_power(bytes: usize) -> u32 {
    product(&INVERSES, bytes)
}

/// a · b modulo the generator.
pub const fn multiply(a: u32, b: u32) -> u32 {
    let mut product = 0;
    let mut multiple = b;
    let mut bit = 0;
    while bit < 32 {
        product ^= multiple & (a << bit >> 31).wrapping_neg();
        multiple = multiple >> 1 ^ POLYNOMIAL & (multiple & 1).wrapping_neg();
        bit += 1;
    }
    product
}

/// The product of the powers whose bits are set in `bytes`.
const fn product(powers: &[u32; 17], bytes: usize) -> u32 {
    let mut product = ONE;
    let mut bit = 0;
    while bit < powers.len() {
        if bytes >> bit & 1 == 1 {
            product = multiply(product, powers[bit]);
        }
        bit += 1;
    }
    product
}

/// `first` and the square of each before.
const fn squares(first: u32) -> [u32; 17] {
    let mut powers = [first; 17];
    let mut bit = 1;
    while bit < powers.len() {
        powers[bit] = multiply(powers[bit - 1], powers[bit - 1]);
        bit += 1;
    }
    powers
}

/// a / x modulo the generator.
const fn divide_by_x(a: u32) -> u32 {
    // The generator's x^0 term makes any remainder divisible.
    match a & ONE {
        0 => a << 1,
        _ => (a ^ POLYNOMIAL) << 1 | 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn powers_are_what_steps_make_and_have_inverses(a: u32, bytes in 0..4000_usize) {
            let mut stepped = ONE;
            for _ in 0..bytes * 8 {
                stepped = stepped >> 1 ^ POLYNOMIAL & (stepped & 1).wrapping_neg();
            }
            prop_assert_eq!(power(bytes), stepped);
            prop_assert_eq!(multiply(multiply(a, stepped), inverse_power(bytes)), a);
        }
    }
}

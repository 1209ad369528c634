//! A model of the operations of reductions, by the arithmetic of Rust.

use crate::benchmark::{ElementType, ReductionOp};

/// Combines the elements of `term` into those of `result`, as the standard describes the operation.
///
/// # Panics
/// The operation does not accept the type, or an integer that may not wrap overflows.
pub fn combine(element: ElementType, op: ReductionOp, result: &mut [u8], term: &[u8]) {
    macro_rules! each {
        ($number:ty, $combine:expr) => {
            for (one, other) in result.as_chunks_mut().0.iter_mut().zip(term.as_chunks().0) {
                let combine: fn($number, $number) -> $number = $combine;
                *one =
                    combine(<$number>::from_le_bytes(*one), <$number>::from_le_bytes(*other)).to_le_bytes();
            }
        };
    }
    macro_rules! integers {
        ($number:ty, $sum:expr, $product:expr) => {
            match op {
                ReductionOp::Sum | ReductionOp::User => each!($number, $sum),
                ReductionOp::Prod => each!($number, $product),
                ReductionOp::Min => each!($number, |a, b| a.min(b)),
                ReductionOp::Max => each!($number, |a, b| a.max(b)),
                ReductionOp::LogicalAnd => each!($number, |a, b| (a != 0 && b != 0).into()),
                ReductionOp::LogicalOr => each!($number, |a, b| (a != 0 || b != 0).into()),
                ReductionOp::LogicalXor => each!($number, |a, b| ((a != 0) != (b != 0)).into()),
                ReductionOp::BitwiseAnd => each!($number, |a, b| a & b),
                ReductionOp::BitwiseOr => each!($number, |a, b| a | b),
                ReductionOp::BitwiseXor => each!($number, |a, b| a ^ b),
                ReductionOp::Replace => each!($number, |_, b| b),
                ReductionOp::NoOp => {}
            }
        };
    }
    macro_rules! checked {
        ($number:ty) => {
            integers!($number, |a, b| a.checked_add(b).expect("no overflow"), |a, b| a
                .checked_mul(b)
                .expect("no overflow"))
        };
    }
    macro_rules! wrapping {
        ($number:ty) => {
            integers!($number, |a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b))
        };
    }
    macro_rules! floating {
        ($number:ty) => {
            match op {
                ReductionOp::Sum | ReductionOp::User => each!($number, |a, b| a + b),
                ReductionOp::Prod => each!($number, |a, b| a * b),
                ReductionOp::Min => each!($number, |a, b| a.min(b)),
                ReductionOp::Max => each!($number, |a, b| a.max(b)),
                ReductionOp::Replace => each!($number, |_, b| b),
                ReductionOp::NoOp => {}
                _ => panic!("{op:?} of floating-point numbers"),
            }
        };
    }
    macro_rules! complex {
        ($number:ty, $width:literal) => {
            match op {
                ReductionOp::Prod => {
                    let pairs = result.chunks_exact_mut(2 * $width).zip(term.chunks_exact(2 * $width));
                    for (one, other) in pairs {
                        let of = |bytes: &[u8]| <$number>::from_le_bytes(bytes.try_into().expect("a number"));
                        let (a, b) = (of(&one[..$width]), of(&one[$width..]));
                        let (c, d) = (of(&other[..$width]), of(&other[$width..]));
                        one[..$width].copy_from_slice(&(a * c - b * d).to_le_bytes());
                        one[$width..].copy_from_slice(&(a * d + b * c).to_le_bytes());
                    }
                }
                _ => floating!($number),
            }
        };
    }
    match element {
        ElementType::Char => checked!(i8),
        ElementType::Int16 => checked!(i16),
        ElementType::Int32 => checked!(i32),
        ElementType::Int64 => checked!(i64),
        ElementType::Byte | ElementType::Uint8 | ElementType::Widest => checked!(u8),
        ElementType::Uint16 => checked!(u16),
        ElementType::Uint32 => wrapping!(u32),
        ElementType::Uint64 => wrapping!(u64),
        ElementType::Float => floating!(f32),
        ElementType::Double => floating!(f64),
        ElementType::FloatComplex => complex!(f32, 4),
        ElementType::DoubleComplex => complex!(f64, 8),
    }
}

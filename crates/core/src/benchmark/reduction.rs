//! Element types and operations of reductions.

use crate::benchmark::Case;

crate::axis! {
    /// Element type of a reduction
    pub enum ElementType: "type", Always, default Float {
        /// MPI_SIGNED_CHAR, in place of OMB's MPI_CHAR, which MPI does not allow in reductions
        Char = "char",
        /// MPI_INT16_T
        Int16 = "int16",
        /// MPI_INT32_T
        Int32 = "int32",
        /// MPI_INT64_T
        Int64 = "int64",
        /// MPI_UINT8_T
        Uint8 = "uint8",
        /// MPI_UINT16_T
        Uint16 = "uint16",
        /// MPI_UINT32_T
        Uint32 = "uint32",
        /// MPI_UINT64_T
        Uint64 = "uint64",
        /// MPI_FLOAT
        Float = "float",
        /// MPI_DOUBLE
        Double = "double",
        /// MPI_C_FLOAT_COMPLEX
        FloatComplex = "float-complex",
        /// MPI_C_DOUBLE_COMPLEX
        DoubleComplex = "double-complex",
    }
}

crate::axis! {
    /// Operation of a reduction
    pub enum ReductionOp: "op", Always, default Sum {
        /// MPI_SUM
        Sum = "sum",
        /// MPI_PROD
        Prod = "prod",
        /// MPI_MIN
        Min = "min",
        /// MPI_MAX
        Max = "max",
        /// MPI_LAND
        LogicalAnd = "land",
        /// MPI_LOR
        LogicalOr = "lor",
        /// MPI_LXOR
        LogicalXor = "lxor",
        /// MPI_BAND
        BitwiseAnd = "band",
        /// MPI_BOR
        BitwiseOr = "bor",
        /// MPI_BXOR
        BitwiseXor = "bxor",
        /// A sum by a function of ombx, declared commutative by MPI_Op_create
        User = "user",
    }
}

/// Kind of numbers that an element holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Signed integers in two's complement.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// IEEE 754 numbers.
    Floating,
    /// Pairs of IEEE 754 numbers.
    Complex,
}

impl ElementType {
    /// Returns the width of an element in bytes.
    pub const fn width(self) -> u64 {
        match self {
            ElementType::Char | ElementType::Uint8 => 1,
            ElementType::Int16 | ElementType::Uint16 => 2,
            ElementType::Int32 | ElementType::Uint32 | ElementType::Float => 4,
            ElementType::Int64 | ElementType::Uint64 | ElementType::Double | ElementType::FloatComplex => 8,
            ElementType::DoubleComplex => 16,
        }
    }

    /// Returns the kind of numbers.
    pub const fn numbers(self) -> Numbers {
        match self {
            ElementType::Char | ElementType::Int16 | ElementType::Int32 | ElementType::Int64 => {
                Numbers::Signed
            }
            ElementType::Uint8 | ElementType::Uint16 | ElementType::Uint32 | ElementType::Uint64 => {
                Numbers::Unsigned
            }
            ElementType::Float | ElementType::Double => Numbers::Floating,
            ElementType::FloatComplex | ElementType::DoubleComplex => Numbers::Complex,
        }
    }

    /// Returns the width of a number in bytes: half that of a complex element.
    pub const fn number_width(self) -> usize {
        match self.numbers() {
            Numbers::Complex => self.width() as usize / 2,
            _ => self.width() as usize,
        }
    }
}

/// Returns why an operation does not accept an element type (MPI 4.1, 6.9.2), if so.
///
/// # Errors
/// A sentence that names both, and the types that the operation accepts.
pub fn check_combination(element: ElementType, op: ReductionOp) -> Result<(), String> {
    let (accepted, words) = match op {
        ReductionOp::Sum | ReductionOp::Prod | ReductionOp::User => return Ok(()),
        ReductionOp::Min | ReductionOp::Max => {
            (element.numbers() != Numbers::Complex, "integers, float and double")
        }
        _ => (matches!(element.numbers(), Numbers::Signed | Numbers::Unsigned), "integers such as int32"),
    };
    match accepted {
        true => Ok(()),
        false => Err(format!(
            "--op {} does not accept --type {}: MPI defines it for {words}",
            op.name(),
            element.name()
        )),
    }
}

/// Checks the type and the operation of a case, for [`Benchmark::made_of`](super::Benchmark::made_of).
///
/// # Errors
/// See [`check_combination`].
pub fn check_case(case: &Case) -> Result<(), String> {
    check_combination(case.choice(), case.choice())
}

/// Returns the bytes of an element of a case, for [`Benchmark::made_of`](super::Benchmark::made_of).
pub fn element_bytes(case: &Case) -> u64 {
    case.choice::<ElementType>().width()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::AxisValue;

    #[test]
    fn operations_accept_the_types_of_the_standard() {
        let accepted = |op| {
            let accepts = |element: &&ElementType| check_combination(**element, op).is_ok();
            ElementType::ALL.iter().filter(accepts).count()
        };
        assert_eq!([ReductionOp::Sum, ReductionOp::Prod, ReductionOp::User].map(accepted), [12; 3]);
        assert_eq!([ReductionOp::Min, ReductionOp::Max].map(accepted), [10; 2]);
        let on_integers = [
            ReductionOp::LogicalAnd,
            ReductionOp::LogicalOr,
            ReductionOp::LogicalXor,
            ReductionOp::BitwiseAnd,
            ReductionOp::BitwiseOr,
            ReductionOp::BitwiseXor,
        ];
        assert_eq!(on_integers.map(accepted), [8; 6]);
        let why = check_combination(ElementType::Float, ReductionOp::BitwiseAnd).unwrap_err();
        assert!(why.starts_with("--op band does not accept --type float: "), "{why}");
    }
}

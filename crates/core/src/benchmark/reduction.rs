//! Element types of messages, and operations of reductions and of one-sided operations that accumulate.

use crate::{
    benchmark::{Case, Named, Parameter, ParameterValue},
    measure::plan::Plan,
};

crate::parameter! {
    /// Element type of messages: float by default in reductions, widest in accumulates, and byte elsewhere
    pub enum ElementType: "type", Always, default Float {
        /// MPI_BYTE; not in arithmetic and logical reductions and accumulates
        Byte = "byte",
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
        /// The widest MPI_UINT*_T that divides the message
        Widest = "widest",
    }
}

crate::parameter! {
    /// Operation of a reduction or of an accumulate
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
        /// A sum by a function of ombx, declared commutative by MPI_Op_create; not in accumulates
        User = "user",
        /// MPI_REPLACE, an atomic put; in accumulates only
        Replace = "replace",
        /// MPI_NO_OP, an atomic get; in accumulates that fetch only
        NoOp = "no_op",
    }
}

/// The parameter `type` of one-sided operations. Rows name a type that is chosen.
pub const ACCUMULATED_TYPE: &Parameter =
    &ElementType::PARAMETER.usually(ElementType::Widest.name()).named(Named::IfChosen);

/// The parameter `type` of operations that move elements. Rows name a type that is not bytes.
pub const MESSAGE_TYPE: &Parameter =
    &ElementType::PARAMETER.usually(ElementType::Byte.name()).named(Named::IfChosen);

/// The parameter `op` of one-sided operations. Rows name an operation that is not the sum.
pub const ACCUMULATED_OP: &Parameter = &ReductionOp::PARAMETER.named(Named::IfChosen);

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
    /// Returns the type of the elements of a message: itself, but the widest unsigned integer that divides the message for `Widest`.
    #[must_use]
    pub const fn of_size(self, bytes: u64) -> ElementType {
        match self {
            ElementType::Widest if bytes.is_multiple_of(8) => ElementType::Uint64,
            ElementType::Widest if bytes.is_multiple_of(4) => ElementType::Uint32,
            ElementType::Widest if bytes.is_multiple_of(2) => ElementType::Uint16,
            ElementType::Widest => ElementType::Uint8,
            chosen => chosen,
        }
    }

    /// Returns the width of an element in bytes; 1 for `Widest`, which fits every message.
    pub const fn width(self) -> u64 {
        match self {
            ElementType::Byte | ElementType::Char | ElementType::Uint8 | ElementType::Widest => 1,
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
            ElementType::Byte
            | ElementType::Uint8
            | ElementType::Uint16
            | ElementType::Uint32
            | ElementType::Uint64
            | ElementType::Widest => Numbers::Unsigned,
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

/// Returns why a reduction does not accept an operation or its element type (MPI 4.1, 6.9.2), if so.
///
/// # Errors
/// A sentence that names both, and the types that the operation accepts.
pub fn check_combination(element: ElementType, op: ReductionOp) -> Result<(), String> {
    match op {
        ReductionOp::Replace | ReductionOp::NoOp => Err(format!(
            "--op {} does not exist in reductions: MPI defines it for one-sided operations such as rma.get_acc_latency",
            op.name()
        )),
        _ => check_type(element, op),
    }
}

/// What a one-sided operation does with elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elements {
    /// It moves bytes.
    Bytes,
    /// It combines them with those of the target.
    Accumulated,
    /// It does the same and fetches the previous ones.
    Fetched,
    /// It compares one with that of the target.
    Compared,
}

/// Returns why a one-sided operation does not accept an operation or its element type (MPI 4.1, 12.3.4), if so.
///
/// # Errors
/// A sentence that says what the operation accepts.
pub fn check_accumulate(uses: Elements, element: ElementType, op: ReductionOp) -> Result<(), String> {
    match (uses, op) {
        (Elements::Bytes, _) => Ok(()),
        (Elements::Compared, _) if is_integer(element) => Ok(()),
        (Elements::Compared, _) => Err(format!(
            "MPI_Compare_and_swap does not accept --type {}: use integers such as int64, or bytes",
            element.name()
        )),
        (_, ReductionOp::User) => Err("MPI allows no user-defined operation in accumulates: use --op sum \
                                       or another predefined one, or measure --op user with reductions \
                                       such as collective.allreduce"
            .to_owned()),
        (Elements::Accumulated, ReductionOp::NoOp) => {
            Err("--op no_op needs an accumulate that fetches: use rma.get_acc_latency, rma.get_acc_bw or \
                 rma.fop_latency"
                .to_owned())
        }
        _ => check_type(element, op),
    }
}

fn is_integer(element: ElementType) -> bool {
    matches!(element.numbers(), Numbers::Signed | Numbers::Unsigned)
}

fn check_type(element: ElementType, op: ReductionOp) -> Result<(), String> {
    let is_number = element != ElementType::Byte;
    let (accepted, words) = match op {
        ReductionOp::User | ReductionOp::Replace | ReductionOp::NoOp => return Ok(()),
        ReductionOp::Sum | ReductionOp::Prod => (is_number, "numbers such as float"),
        ReductionOp::Min | ReductionOp::Max => {
            (is_number && element.numbers() != Numbers::Complex, "integers, float and double")
        }
        ReductionOp::LogicalAnd | ReductionOp::LogicalOr | ReductionOp::LogicalXor => {
            (is_number && is_integer(element), "integers such as int32")
        }
        ReductionOp::BitwiseAnd | ReductionOp::BitwiseOr | ReductionOp::BitwiseXor => {
            (is_integer(element), "integers such as int32, and bytes")
        }
    };
    if accepted {
        Ok(())
    } else {
        Err(format!(
            "--op {} does not accept --type {}: MPI defines it for {words}",
            op.name(),
            element.name()
        ))
    }
}

/// Checks the type and the operation of a case of a reduction, for [`Benchmark::made_of`](super::Benchmark::made_of).
///
/// # Errors
/// See [`check_combination`].
pub fn check_case(case: &Case, _: &Plan) -> Result<(), String> {
    check_combination(case.get(), case.get())
}

/// Returns the bytes of an element of a case of a reduction, for [`Benchmark::made_of`](super::Benchmark::made_of).
pub fn element_bytes(case: &Case, _: &Plan) -> u64 {
    case.get::<ElementType>().width()
}

/// Returns the element type and the operation that a case of a one-sided operation chooses.
pub fn accumulated(case: &Case) -> (ElementType, ReductionOp) {
    let element = case.text(ACCUMULATED_TYPE).and_then(|name| ElementType::parse(name).ok());
    (element.unwrap_or(ElementType::Widest), case.get())
}

/// Returns the element type that a case of an operation that moves elements chooses.
pub fn message_type(case: &Case) -> ElementType {
    let element = case.text(MESSAGE_TYPE).and_then(|name| ElementType::parse(name).ok());
    element.unwrap_or(ElementType::Byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_accept_the_types_of_the_standard() {
        let accepted = |op| {
            let accepts = |element: &&ElementType| check_combination(**element, op).is_ok();
            ElementType::ALL.iter().filter(accepts).count()
        };
        assert_eq!([ReductionOp::Sum, ReductionOp::Prod].map(accepted), [13; 2]);
        assert_eq!(accepted(ReductionOp::User), 14);
        assert_eq!([ReductionOp::Min, ReductionOp::Max].map(accepted), [11; 2]);
        let logical = [ReductionOp::LogicalAnd, ReductionOp::LogicalOr, ReductionOp::LogicalXor];
        assert_eq!(logical.map(accepted), [9; 3]);
        let bitwise = [ReductionOp::BitwiseAnd, ReductionOp::BitwiseOr, ReductionOp::BitwiseXor];
        assert_eq!(bitwise.map(accepted), [10; 3]);
        let why = check_combination(ElementType::Float, ReductionOp::BitwiseAnd).unwrap_err();
        assert!(why.starts_with("--op band does not accept --type float: "), "{why}");
        assert_eq!([ReductionOp::Replace, ReductionOp::NoOp].map(accepted), [0; 2]);
    }

    #[test]
    fn one_sided_operations_accept_what_the_standard_allows() {
        let accepted = |uses, op| {
            let accepts = |element: &&ElementType| check_accumulate(uses, **element, op).is_ok();
            ElementType::ALL.iter().filter(accepts).count()
        };
        for uses in [Elements::Accumulated, Elements::Fetched] {
            assert_eq!(accepted(uses, ReductionOp::User), 0);
            assert_eq!(accepted(uses, ReductionOp::Replace), 14);
            assert_eq!(accepted(uses, ReductionOp::Max), 11);
        }
        assert_eq!(accepted(Elements::Accumulated, ReductionOp::NoOp), 0);
        assert_eq!(accepted(Elements::Fetched, ReductionOp::NoOp), 14);
        assert_eq!(accepted(Elements::Compared, ReductionOp::Sum), 10);
    }

    #[test]
    fn the_widest_integer_divides_the_message() {
        let width = |bytes| ElementType::Widest.of_size(bytes).width();
        assert_eq!([0, 1, 2, 4, 6, 7, 8, 12, 64].map(width), [8, 1, 2, 4, 2, 1, 8, 4, 8]);
        assert_eq!(ElementType::Float.of_size(7), ElementType::Float);
    }
}

//! Parameters: named choices of benchmarks, such as the synchronisation of a one-sided operation or the root of a broadcast.
//!
//! A parameter is declared once, beside the code that uses it, and listed in the entries of the benchmarks that have it. The command
//! line, suites, plans, cases, keys of rows, result files, help and completion read the declaration.

use std::{
    any::Any,
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Deref,
    sync::{Arc, LazyLock, OnceLock},
};

use ombx_record::{
    error::{Error, Result},
    unit::Bytes,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::benchmark::Benchmark;

/// A value of a parameter, which plans and cases share: its text in rows, and what was read from it.
#[derive(Clone)]
pub struct Value(Arc<Parsed>);

/// A text and what it means. It is read when a type is asked for, once.
struct Parsed {
    text: Box<str>,
    typed: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Value {
    /// Returns the value of this text.
    pub fn from_text(text: impl Into<Box<str>>) -> Value {
        Value(Arc::new(Parsed { text: text.into(), typed: OnceLock::new() }))
    }

    /// Returns the value of a type.
    pub fn new<V: ParameterValue>(value: V) -> Value {
        let text = value.text().into();
        Value(Arc::new(Parsed { text, typed: OnceLock::from(Box::new(Some(value)) as Box<_>) }))
    }

    /// Returns the value as a type; `None` if the text is none of its values.
    pub fn get<V: ParameterValue>(&self) -> Option<V> {
        let Parsed { text, typed } = &*self.0;
        match typed.get_or_init(|| Box::new(V::parse(text).ok())).downcast_ref::<Option<V>>() {
            Some(value) => value.clone(),
            None => V::parse(text).ok(),
        }
    }
}

impl Deref for Value {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl Borrow<str> for Value {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        **self == **other
    }
}

impl Eq for Value {}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::from_text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::from_text(text)
    }
}

/// A named choice of benchmarks. A list of values makes a row each.
///
/// [`Session::split`](crate::measure::session::Session::split) dispatches values to types before the timed loop; other values are
/// read while a case is opened.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Name of the option and of the field in results, lower case.
    pub name: &'static str,
    /// Help text of the option.
    pub about: &'static str,
    /// The values that exist.
    pub values: Values,
    /// Value, or list of values, if the user chooses none; `None` if the parameter then has no value.
    pub default: Option<&'static str>,
    /// When rows name the value.
    pub named: Named,
    /// Heading under which the command line has the option.
    pub heading: Heading,
    /// Name among the options that a result file keeps; the name of the parameter if `None`.
    pub kept_as: Option<&'static str>,
    /// Parameters that describe one of its values further. A benchmark that has the parameter has them too.
    pub refined_by: &'static [&'static Parameter],
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// A fixed set.
    Listed {
        /// Names of the values.
        names: &'static [&'static str],
        /// Help text of each value.
        help: &'static [&'static str],
    },
    /// Any text that a function accepts.
    Free {
        /// Placeholder of the value in `--help`, such as `BYTES`.
        placeholder: &'static str,
        /// Reads the text of a user.
        reader: Reader,
    },
}

/// Reads the text of a user, before ranks start.
#[derive(Debug, Clone, Copy)]
pub enum Reader {
    /// Returns an error for an invalid value. The whole text is one value.
    Checked(fn(&str) -> Result<()>),
    /// Returns the values of a text in the form that rows and result files have.
    List(fn(&str) -> Result<Vec<Value>>),
}

/// Returns what the row of a case names of a parameter; `None` if it does not name it.
pub type Shown = fn(&CaseValues, Bytes) -> Option<String>;

/// When rows name the value of a parameter, and where in their keys.
#[derive(Debug, Clone, Copy)]
pub enum Named {
    /// In every row, before the message size.
    Always,
    /// Only in rows whose value is not the default, before the message size; for choices that few users need.
    IfChosen,
    /// What a function returns, before everything else.
    First(Shown),
    /// What a function returns, after the message size.
    AfterSize(Shown),
    /// Not at all: the value holds for all rows of a run, or has a field of its own.
    Never,
}

/// Heading under which the command line has the option of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heading {
    /// Among the options that say what is measured; for parameters of many benchmarks.
    General,
    /// Among those of single benchmarks.
    Own,
    /// Nowhere: another option sets the value.
    None,
}

/// Part of a help text that says the default by itself.
const SAYS_DEFAULT: &str = "[default: ";
/// Word for every value of a fixed set.
pub const ALL: &str = "all";

impl Parameter {
    /// Returns a parameter with a fixed set of values. [`parameter!`](crate::parameter) calls it.
    pub const fn listed(
        name: &'static str,
        about: &'static str,
        (names, help): (&'static [&'static str], &'static [&'static str]),
        (default, named): (&'static str, Named),
    ) -> Parameter {
        let values = Values::Listed { names, help };
        let (heading, kept_as, refined_by) = (Heading::Own, None, const { &[] });
        Parameter { name, about, values, default: Some(default), named, heading, kept_as, refined_by }
    }

    /// Returns a parameter with any text that `check` accepts, which no row names.
    pub const fn free(
        name: &'static str,
        placeholder: &'static str,
        about: &'static str,
        check: fn(&str) -> Result<()>,
    ) -> Parameter {
        Parameter::read_by(name, placeholder, about, Reader::Checked(check))
    }

    /// Returns a parameter with values of a type, of which each has rows of its own. Rows do not name them.
    pub const fn list_of<T: ParameterValue>(
        name: &'static str,
        placeholder: &'static str,
        about: &'static str,
    ) -> Parameter {
        Parameter::read_by(name, placeholder, about, Reader::List(read_list::<T>))
    }

    /// Returns a parameter with one value of a type, which no row names.
    pub const fn one_of<T: ParameterValue>(
        name: &'static str,
        placeholder: &'static str,
        about: &'static str,
    ) -> Parameter {
        Parameter::read_by(name, placeholder, about, Reader::List(read_one::<T>))
    }

    /// Returns a parameter whose text a reader reads, and which no row names.
    pub const fn read_by(
        name: &'static str,
        placeholder: &'static str,
        about: &'static str,
        reader: Reader,
    ) -> Parameter {
        let (values, named) = (Values::Free { placeholder, reader }, Named::Never);
        let (heading, kept_as, refined_by) = (Heading::Own, None, const { &[] });
        Parameter { name, about, values, default: None, named, heading, kept_as, refined_by }
    }

    settings! {
        /// Sets the value, or the list of values, if the user chooses none.
        usually(default: &'static str) sets default = Some(default);

        /// Sets when rows name the value.
        named(named: Named) sets named = named;

        /// Sets the heading of the option.
        under(heading: Heading) sets heading = heading;

        /// Sets the name among the options that a result file keeps.
        kept_as(name: &'static str) sets kept_as = Some(name);

        /// Sets the parameters that describe one of its values further.
        refined_by(parameters: &'static [&'static Parameter]) sets refined_by = parameters;
    }

    /// Returns the names of a fixed set of values; none of free ones.
    pub const fn names(&self) -> &'static [&'static str] {
        match self.values {
            Values::Listed { names, .. } => names,
            Values::Free { .. } => &[],
        }
    }

    /// Returns the placeholder of free values; `None` of a fixed set.
    pub const fn placeholder(&self) -> Option<&'static str> {
        match self.values {
            Values::Listed { .. } => None,
            Values::Free { placeholder, .. } => Some(placeholder),
        }
    }

    /// Returns the values of a text of a user. Those of a fixed set are in the order of the set, each once.
    ///
    /// # Errors
    /// Usage error for a value that does not exist. No other code decides this.
    pub fn read(&self, text: &str) -> Result<Vec<Value>> {
        match self.values {
            Values::Listed { names, .. } => {
                let wanted: Vec<&str> = text.split(',').collect();
                let unknown = |value: &&&str| **value != ALL && !names.contains(*value);
                if let Some(value) = wanted.iter().find(unknown) {
                    return Err(Error::usage(format!(
                        "--{} has no value {value}; use {}",
                        self.name,
                        names.join(", ")
                    )));
                }
                let is_wanted = |name: &&&str| wanted.contains(*name) || wanted.contains(&ALL);
                Ok(names.iter().filter(is_wanted).map(|name| Value::from_text(*name)).collect())
            }
            Values::Free { reader: Reader::Checked(check), .. } => check(text).map(|()| vec![text.into()]),
            Values::Free { reader: Reader::List(read), .. } => read(text),
        }
    }

    /// Returns the values if the user chooses none.
    pub fn defaults(&self) -> Vec<Value> {
        // The registry has checked the defaults.
        self.default.and_then(|default| self.read(default).ok()).unwrap_or_default()
    }

    /// Returns the help text of free values with their default.
    pub fn help(&self) -> String {
        match self.default.filter(|_| !self.about.contains(SAYS_DEFAULT)) {
            Some(default) => format!("{} [default: {default}]", self.about),
            None => self.about.to_owned(),
        }
    }

    /// Returns the name among the options that a result file keeps.
    pub fn kept_name(&self) -> &'static str {
        self.kept_as.unwrap_or(self.name)
    }

    /// Returns what the row of a case names of the parameter.
    pub(crate) fn shown(&self, values: &CaseValues, bytes: Bytes) -> Option<String> {
        let value = || values.text(self);
        match self.named {
            Named::Always => value().map(str::to_owned),
            Named::IfChosen => value().filter(|value| self.default != Some(value)).map(str::to_owned),
            Named::First(shown) | Named::AfterSize(shown) => shown(values, bytes),
            Named::Never => None,
        }
    }
}

/// Returns the value of a parameter if it is not the default of its type, for [`Named`].
pub fn if_chosen<V: ParameterValue>(values: &CaseValues, _: Bytes) -> Option<String> {
    let value: V = values.get();
    (value != V::DEFAULT).then(|| value.text())
}

/// Two parameters are the same choice if they have one name: benchmarks may differ in the default.
impl PartialEq for Parameter {
    fn eq(&self, other: &Parameter) -> bool {
        self.name == other.name
    }
}

impl Eq for Parameter {}

/// A type whose values are those of a parameter.
pub trait ParameterValue: Clone + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// Declaration for the command line and for results.
    const PARAMETER: &'static Parameter;
    /// Value of a case or plan that has none.
    const DEFAULT: Self;
    /// Every value of a fixed set, in the order of its names; none of free values.
    const ALL: &'static [Self] = &[];

    /// Returns the value of a text.
    ///
    /// # Errors
    /// Usage error for a value that does not exist.
    fn parse(text: &str) -> Result<Self>;

    /// Returns the text of the value in rows and result files.
    fn text(&self) -> String;
}

/// Returns the values of a list with commas.
fn read_list<T: ParameterValue>(text: &str) -> Result<Vec<Value>> {
    let mut values: Vec<Value> = Vec::new();
    for item in text.split(',') {
        let value = Value::new(T::parse(item)?);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

fn read_one<T: ParameterValue>(text: &str) -> Result<Vec<Value>> {
    T::parse(text).map(|value| vec![Value::new(value)])
}

/// Declares an enum whose values are those of a parameter.
///
/// The doc comment of the enum is the help of its option. The doc comments of the variants are the help of its values.
///
/// ```
/// use ombx_core::benchmark::ParameterValue;
///
/// ombx_core::parameter! {
///     /// Protocol under the messages
///     pub enum Transport: "transport", Always, default Tcp {
///         /// TCP
///         Tcp = "tcp",
///         /// Unix-domain stream inside a host
///         Unix = "unix",
///     }
/// }
///
/// assert_eq!(Transport::PARAMETER.default, Some("tcp"));
/// assert_eq!(Transport::parse("unix").unwrap(), Transport::Unix);
/// assert!(Transport::parse("udp").unwrap_err().to_string().contains("use tcp, unix"));
/// ```
#[macro_export]
macro_rules! parameter {
    (
        #[doc = $about:literal]
        $( #[derive($($derived:ident),+)] )?
        $vis:vis enum $Parameter:ident: $name:literal, $named:ident $( ($shown:expr) )?, default $default:ident
        $(, refined by $refined:tt)? $(, under $heading:ident)? {
            $( #[doc = $help:literal] $Value:ident = $value:literal, )+
        }
    ) => {
        $crate::named! {
            #[doc = $about]
            #[derive(Debug, Clone, Copy, PartialEq, Eq $(, $($derived),+)?)]
            $vis enum $Parameter { $( #[doc = $help] $Value = $value, )+ }
        }

        impl $crate::benchmark::ParameterValue for $Parameter {
            const PARAMETER: &'static $crate::benchmark::Parameter = &$crate::benchmark::Parameter::listed(
                $name,
                $about.trim_ascii(),
                (&[$( $value, )+], &[$( $help.trim_ascii(), )+]),
                ($Parameter::$default.name(), $crate::benchmark::Named::$named $( ($shown) )?),
            ) $( .refined_by(const { &$refined }) )? $( .under($crate::benchmark::Heading::$heading) )?;
            const ALL: &'static [Self] = &[$( $Parameter::$Value, )+];
            const DEFAULT: Self = $Parameter::$default;

            fn parse(text: &str) -> $crate::error::Result<Self> {
                match text {
                    $( $value => Ok($Parameter::$Value), )+
                    _ => Err($crate::error::Error::usage(format!(
                        "--{} has no value {text}; use {}", $name, [$( $value, )+].join(", ")
                    ))),
                }
            }

            fn text(&self) -> String {
                self.name().to_owned()
            }
        }
    };
}

/// Values that a user chose, by the names of their parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen(BTreeMap<&'static str, Vec<Value>>);

impl Serialize for Chosen {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_map(
            self.0.iter().map(|(name, values)| (name, Vec::from_iter(values.iter().map(|text| &**text)))),
        )
    }
}

/// Names must be those of parameters of this build.
impl<'d> Deserialize<'d> for Chosen {
    fn deserialize<D: Deserializer<'d>>(from: D) -> std::result::Result<Chosen, D::Error> {
        let mut chosen = Chosen::default();
        for (name, values) in BTreeMap::<String, Vec<String>>::deserialize(from)? {
            chosen.set(registered_name(&name).map_err(de::Error::custom)?, values);
        }
        Ok(chosen)
    }
}

/// Returns the name of a registered parameter.
pub(super) fn registered_name(name: &str) -> std::result::Result<&'static str, String> {
    static NAMES: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
        let all = inventory::iter::<Benchmark>.into_iter();
        all.flat_map(|bench| bench.parameters().map(|parameter| parameter.name)).collect()
    });
    NAMES.get(name).copied().ok_or_else(|| format!("no benchmark has a parameter {name}"))
}

impl Chosen {
    /// Sets the values of the parameter of this name. Without values, those that it has stay.
    pub fn set<T: Into<Value>>(&mut self, name: &'static str, values: impl IntoIterator<Item = T>) {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        if !values.is_empty() {
            self.0.insert(name, values);
        }
    }

    /// Sets the values of a parameter.
    pub fn choose<V: ParameterValue>(&mut self, values: impl IntoIterator<Item = V>) {
        self.set(V::PARAMETER.name, values.into_iter().map(Value::new));
    }

    /// Returns these values and another one.
    #[must_use]
    pub fn with<V: ParameterValue>(mut self, value: V) -> Chosen {
        self.choose([value]);
        self
    }

    /// Returns the values of a parameter; none if the user chose none.
    pub fn texts(&self, parameter: &Parameter) -> &[Value] {
        self.0.get(parameter.name).map_or(&[], Vec::as_slice)
    }

    /// Returns the first value of a parameter; `None` if the user chose none.
    pub fn text(&self, parameter: &Parameter) -> Option<&str> {
        self.texts(parameter).first().map(|text| &**text)
    }

    /// Returns the first value of a parameter; `None` if the user chose none.
    pub fn chosen<V: ParameterValue>(&self) -> Option<V> {
        self.texts(V::PARAMETER).first().and_then(Value::get)
    }

    /// Returns the first value of a parameter, or its default.
    pub fn get<V: ParameterValue>(&self) -> V {
        self.chosen().unwrap_or(V::DEFAULT)
    }

    /// Returns whether a value is one of those that the user chose.
    pub fn includes<V: ParameterValue>(&self, value: V) -> bool {
        self.texts(V::PARAMETER).iter().any(|text| **text == *value.text())
    }

    /// Returns whether the user chose a value of a parameter.
    pub fn has(&self, parameter: &Parameter) -> bool {
        self.0.contains_key(parameter.name)
    }

    /// Returns the first value of the parameter of this name; `None` if the user chose none.
    pub fn named(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.first().map(|text| &**text)
    }

    /// Returns the names of the parameters that have values.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// Returns the values of one parameter alone.
    #[must_use]
    pub fn only(&self, parameter: &Parameter) -> Chosen {
        let kept = self.0.iter().filter(|(name, _)| **name == parameter.name);
        Chosen(kept.map(|(name, values)| (*name, values.clone())).collect())
    }

    /// Returns the first value of a parameter that is a number; `None` if the user chose none.
    pub fn number(&self, parameter: &Parameter) -> Option<u64> {
        self.text(parameter)?.parse().ok()
    }

    /// Adds the values of others, which take precedence.
    pub fn extend(&mut self, others: Chosen) {
        self.0.extend(others.0);
    }
}

/// Values of one case: of every parameter that its benchmark has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseValues(Vec<(&'static Parameter, Option<Value>)>);

impl CaseValues {
    /// No values.
    pub const NONE: &'static CaseValues = &CaseValues(Vec::new());

    /// Adds a parameter, and its value if it has one.
    pub fn push(&mut self, parameter: &'static Parameter, value: Option<Value>) {
        self.0.push((parameter, value));
    }

    /// Adds a parameter that rows name before all others.
    pub fn push_first(&mut self, parameter: &'static Parameter, value: Option<Value>) {
        self.0.insert(0, (parameter, value));
    }

    /// Removes the parameter that was added last.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// Returns these values with another one, in place of a known value of its parameter.
    #[must_use]
    pub fn with(&self, parameter: &'static Parameter, value: impl Into<Value>) -> CaseValues {
        let (mut values, value) = (self.clone(), Some(value.into()));
        match values.0.iter_mut().find(|(known, _)| *known == parameter) {
            Some(known) => *known = (parameter, value),
            None => values.push(parameter, value),
        }
        values
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.0.iter().map(|(parameter, _)| *parameter)
    }

    /// Returns whether a parameter has this value.
    pub fn has(&self, parameter: &Parameter, value: Option<&str>) -> bool {
        self.0.iter().any(|(known, text)| *known == parameter && text.as_deref() == value)
    }

    /// Returns every parameter with its value, if it has one.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Parameter, Option<&str>)> {
        self.0.iter().map(|(parameter, value)| (*parameter, value.as_deref()))
    }

    /// Returns the value of a type; `None` if the benchmark does not have its parameter, or the parameter has no value.
    pub fn find<V: ParameterValue>(&self) -> Option<V> {
        self.value(V::PARAMETER).and_then(Value::get)
    }

    fn value(&self, parameter: &Parameter) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == parameter).and_then(|(_, value)| value.as_ref())
    }

    /// Returns the text of a parameter; `None` if the benchmark does not have it, or the parameter has no value.
    pub fn text(&self, parameter: &Parameter) -> Option<&str> {
        self.value(parameter).map(|value| &**value)
    }

    /// Returns the value of a parameter, or the default of its type.
    pub fn get<V: ParameterValue>(&self) -> V {
        self.find().unwrap_or(V::DEFAULT)
    }

    /// Returns the value of a parameter that is a number; `None` if it has none.
    pub fn number(&self, parameter: &Parameter) -> Option<u64> {
        self.text(parameter)?.parse().ok()
    }
}

/// Most parameters of an entry.
const MOST: usize = 24;

/// Parameters in the order in which keys of rows name them.
#[derive(Debug, Clone, Copy)]
pub struct ParameterList {
    all: [Option<&'static Parameter>; MOST],
    count: usize,
}

impl ParameterList {
    /// No parameter.
    pub const EMPTY: ParameterList = ParameterList { all: [None; MOST], count: 0 };

    /// Returns the list with further parameters at its end.
    #[must_use]
    pub const fn with(mut self, more: &[&'static Parameter]) -> ParameterList {
        let mut at = 0;
        while at < more.len() {
            assert!(self.count < MOST, "an entry has more parameters than a list holds: raise MOST");
            self.all[self.count] = Some(more[at]);
            self.count += 1;
            at += 1;
        }
        self
    }

    /// Returns the parameters, each followed by those that describe its values further.
    pub fn iter(&self) -> impl Iterator<Item = &'static Parameter> {
        let listed = self.all.into_iter().flatten();
        listed.flat_map(|parameter| [parameter].into_iter().chain(parameter.refined_by.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Root;

    crate::parameter! {
        /// Colour
        enum Colour: "colour", IfChosen, default Red {
            /// Red
            Red = "red",
            /// Green
            Green = "green",
            /// Blue
            Blue = "blue",
        }
    }

    fn read(parameter: &Parameter, text: &str) -> String {
        parameter.read(text).unwrap().join("|")
    }

    #[test]
    fn values_of_a_set_have_its_order() {
        assert_eq!(read(Colour::PARAMETER, "blue,red,blue"), "red|blue");
        assert_eq!(read(Colour::PARAMETER, "all"), "red|green|blue");
        for text in ["", "pink", "red,pink", "RED"] {
            assert!(Colour::PARAMETER.read(text).unwrap_err().to_string().contains("--colour"), "{text:?}");
        }
        assert_eq!(Colour::PARAMETER.defaults().join("|"), "red");
        let texts: Vec<String> = Colour::ALL.iter().map(|colour| colour.text()).collect();
        assert_eq!(texts, ["red", "green", "blue"]);
    }

    #[test]
    fn a_text_is_read_once() {
        let value = Value::from_text("blue");
        assert_eq!(
            (value.get::<Colour>(), value.clone().get::<Colour>()),
            (Some(Colour::Blue), Some(Colour::Blue))
        );
        assert_eq!(value.get::<Root>(), None, "it is no value of another type");
        assert_eq!(Value::from_text("pink").get::<Colour>(), None);
        assert_eq!(Value::new(Colour::Red), Value::from_text("red"));
    }

    #[test]
    fn free_values_have_the_form_of_rows() {
        const ROOTS: Parameter = Parameter::list_of::<Root>("roots", "R,R", "Roots");
        assert_eq!(read(&ROOTS, "007,rotate,7"), "7|rotate");
        assert!(Parameter::one_of::<Root>("root", "R", "Root").read("0,1").is_err());
        let whole = Parameter::free("note", "TEXT", "Note", |_| Ok(()));
        assert_eq!(read(&whole, "a,b"), "a,b");
        assert!(whole.defaults().is_empty());
        assert_eq!(whole.usually("x").help(), "Note [default: x]");
    }
}

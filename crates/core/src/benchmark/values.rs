//! Values of parameters: those that a user chose for a run, and those of one case.

use std::collections::BTreeMap;

use super::{Parameter, ParameterValue, Text};

/// Values that a user chose, by the names of their parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen(BTreeMap<&'static str, Vec<Text>>);

impl Chosen {
    /// Sets the values of the parameter of this name. Without values, those that it has stay.
    pub fn set<T: Into<Text>>(&mut self, name: &'static str, values: impl IntoIterator<Item = T>) {
        let values: Vec<Text> = values.into_iter().map(Into::into).collect();
        if !values.is_empty() {
            self.0.insert(name, values);
        }
    }

    /// Sets the values of a parameter.
    pub fn choose<V: ParameterValue>(&mut self, values: impl IntoIterator<Item = V>) {
        self.set(V::PARAMETER.name, values.into_iter().map(V::text));
    }

    /// Returns these values and another one.
    #[must_use]
    pub fn with<V: ParameterValue>(mut self, value: V) -> Chosen {
        self.choose([value]);
        self
    }

    /// Returns the values of a parameter; none if the user chose none.
    pub fn texts(&self, parameter: &Parameter) -> &[Text] {
        self.0.get(parameter.name).map_or(&[], Vec::as_slice)
    }

    /// Returns the first value of a parameter; `None` if the user chose none.
    pub fn text(&self, parameter: &Parameter) -> Option<&str> {
        self.texts(parameter).first().map(|text| &**text)
    }

    /// Returns the first value of a parameter; `None` if the user chose none.
    pub fn chosen<V: ParameterValue>(&self) -> Option<V> {
        self.text(V::PARAMETER).and_then(|text| V::parse(text).ok())
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
pub struct CaseValues(Vec<(&'static Parameter, Option<Text>)>);

impl CaseValues {
    /// No values.
    pub const NONE: &'static CaseValues = &CaseValues(Vec::new());

    /// Adds a parameter, and its value if it has one.
    pub fn push(&mut self, parameter: &'static Parameter, value: Option<Text>) {
        self.0.push((parameter, value));
    }

    /// Removes the parameter that was added last.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// Returns these values with another one, in place of a known value of its parameter.
    #[must_use]
    pub fn with(&self, parameter: &'static Parameter, value: impl Into<Text>) -> CaseValues {
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

    /// Returns the value of a parameter; `None` if the benchmark does not have it, or the parameter has no value.
    pub fn text(&self, parameter: &Parameter) -> Option<&str> {
        self.iter().find(|(known, _)| *known == parameter).and_then(|(_, value)| value)
    }

    /// Returns the value of a parameter, or the default of its type.
    pub fn get<V: ParameterValue>(&self) -> V {
        self.text(V::PARAMETER).and_then(|text| V::parse(text).ok()).unwrap_or(V::DEFAULT)
    }

    /// Returns the value of a parameter that is a number; `None` if it has none.
    pub fn number(&self, parameter: &Parameter) -> Option<u64> {
        self.text(parameter)?.parse().ok()
    }
}

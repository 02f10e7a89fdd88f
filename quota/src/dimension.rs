//! The quantities that limits count. This file has each dimension's name and configuration key, and
//! [`Amounts::call`] has the cost of a call. No other code knows the number of dimensions: values
//! for each are a [`PerDimension`].

use std::{
    fmt,
    ops::{Index, IndexMut},
};

use serde::{Deserialize, Serialize};

/// A quantity that is counted over a window. The numbers are those of the wire protocol
/// (`lua/README.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Calls.
    Requests = 1,
    /// Input tokens.
    Input = 2,
    /// Output tokens.
    Output = 3,
    /// Input and output tokens together.
    Combined = 4,
}

impl Dimension {
    /// All of them, in the order of the wire protocol.
    pub const ALL: [Self; 4] = [Self::Requests, Self::Input, Self::Output, Self::Combined];

    /// The name in output and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Input => "input",
            Self::Output => "output",
            Self::Combined => "tokens",
        }
    }

    pub(crate) fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| *dimension as i64 == code)
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One value for each [`Dimension`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerDimension<T> {
    /// For calls.
    pub requests: T,
    /// For input tokens.
    pub input: T,
    /// For output tokens.
    pub output: T,
    /// For input and output tokens together.
    pub combined: T,
}

impl<T> PerDimension<T> {
    /// Calls `value` for each.
    pub fn from_fn(mut value: impl FnMut(Dimension) -> T) -> Self {
        Self {
            requests: value(Dimension::Requests),
            input: value(Dimension::Input),
            output: value(Dimension::Output),
            combined: value(Dimension::Combined),
        }
    }

    /// Applies `value` to each.
    pub fn map<U>(self, mut value: impl FnMut(T) -> U) -> PerDimension<U> {
        PerDimension {
            requests: value(self.requests),
            input: value(self.input),
            output: value(self.output),
            combined: value(self.combined),
        }
    }

    /// Each dimension with its value, in the order of [`Dimension::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Dimension, &T)> {
        Dimension::ALL.into_iter().map(|dimension| (dimension, &self[dimension]))
    }
}

impl<T> Index<Dimension> for PerDimension<T> {
    type Output = T;

    fn index(&self, dimension: Dimension) -> &T {
        match dimension {
            Dimension::Requests => &self.requests,
            Dimension::Input => &self.input,
            Dimension::Output => &self.output,
            Dimension::Combined => &self.combined,
        }
    }
}

impl<T> IndexMut<Dimension> for PerDimension<T> {
    fn index_mut(&mut self, dimension: Dimension) -> &mut T {
        match dimension {
            Dimension::Requests => &mut self.requests,
            Dimension::Input => &mut self.input,
            Dimension::Output => &mut self.output,
            Dimension::Combined => &mut self.combined,
        }
    }
}

/// An amount of each dimension.
pub type Amounts = PerDimension<u64>;

impl Amounts {
    /// The cost of one call with these tokens, each counted once.
    pub fn call(input: u64, output: u64) -> Self {
        Self { requests: 1, input, output, combined: input.saturating_add(output) }
    }
}

/// A quantity that is limited at any moment: the use of a dimension in a window, or calls at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// The use in a window.
    Window(Dimension),
    /// Calls in flight.
    InFlight,
}

impl Limited {
    /// All of them, in the order of the wire protocol.
    pub const ALL: [Self; 5] = [
        Self::Window(Dimension::Requests),
        Self::Window(Dimension::Input),
        Self::Window(Dimension::Output),
        Self::Window(Dimension::Combined),
        Self::InFlight,
    ];

    /// The name in output and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Window(dimension) => dimension.name(),
            Self::InFlight => "in_flight",
        }
    }

    /// The limited quantity, for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Window(dimension) => dimension.name(),
            Self::InFlight => "calls at once",
        }
    }

    /// The key in configuration and on the command line.
    pub fn key(self) -> &'static str {
        match self {
            Self::Window(Dimension::Requests) => "rpm",
            Self::Window(Dimension::Input) => "itpm",
            Self::Window(Dimension::Output) => "otpm",
            Self::Window(Dimension::Combined) => "tpm",
            Self::InFlight => "concurrent",
        }
    }

    /// The limit's meaning, for people.
    pub fn about(self) -> &'static str {
        match self {
            Self::Window(Dimension::Requests) => "Calls a minute",
            Self::Window(Dimension::Input) => "Input tokens a minute",
            Self::Window(Dimension::Output) => "Output tokens a minute",
            Self::Window(Dimension::Combined) => {
                "Input and output tokens a minute, counted together"
            }
            Self::InFlight => "Calls at once",
        }
    }
}

/// One value for each [`Limited`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerLimit<T> {
    /// For the use in a window.
    pub window: PerDimension<T>,
    /// For calls at once.
    pub in_flight: T,
}

impl<T> PerLimit<T> {
    /// Calls `value` for each.
    pub fn from_fn(mut value: impl FnMut(Limited) -> T) -> Self {
        Self {
            window: PerDimension::from_fn(|dimension| value(Limited::Window(dimension))),
            in_flight: value(Limited::InFlight),
        }
    }

    /// Applies `value` to each.
    pub fn map<U>(self, mut value: impl FnMut(T) -> U) -> PerLimit<U> {
        PerLimit { window: self.window.map(&mut value), in_flight: value(self.in_flight) }
    }

    /// Each with its value, in the order of [`Limited::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Limited, &T)> {
        Limited::ALL.into_iter().map(|limited| (limited, &self[limited]))
    }
}

impl<T> Index<Limited> for PerLimit<T> {
    type Output = T;

    fn index(&self, limited: Limited) -> &T {
        match limited {
            Limited::Window(dimension) => &self.window[dimension],
            Limited::InFlight => &self.in_flight,
        }
    }
}

impl<T> IndexMut<Limited> for PerLimit<T> {
    fn index_mut(&mut self, limited: Limited) -> &mut T {
        match limited {
            Limited::Window(dimension) => &mut self.window[dimension],
            Limited::InFlight => &mut self.in_flight,
        }
    }
}

/// A quantity that is counted over the provider's day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayLimit {
    /// Calls a day.
    Requests,
    /// Tokens a day.
    Tokens,
}

impl DayLimit {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Requests, Self::Tokens];

    /// Converts a number in the scripts' replies (`lua/include/holds.lua`).
    pub(crate) fn from_code(code: i64) -> Option<Self> {
        match code {
            8 => Some(Self::Requests),
            9 => Some(Self::Tokens),
            _ => None,
        }
    }

    /// The counted unit, for people.
    pub fn counts(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
        }
    }

    /// The limited quantity, for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Requests => "requests a day",
            Self::Tokens => "tokens a day",
        }
    }
}

impl fmt::Display for DayLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

/// A change of a limit while a fleet runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Change {
    /// The limit is unchanged.
    #[default]
    Keep,
    /// The configured limit is in force again.
    Clear,
    /// This limit is in force.
    Set(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_complete_and_in_the_order_of_the_numbers() {
        for (place, dimension) in Dimension::ALL.into_iter().enumerate() {
            assert_eq!(dimension as usize, place + 1);
            assert_eq!(Dimension::from_code(dimension as i64), Some(dimension));
            assert_eq!(Limited::ALL[place], Limited::Window(dimension));
        }
        assert_eq!((Dimension::from_code(0), Dimension::from_code(5)), (None, None));
        let places = PerLimit::from_fn(|limited| Limited::ALL.iter().position(|it| *it == limited));
        let read: Vec<_> = places.iter().map(|(_, place)| place.unwrap()).collect();
        assert_eq!(read, [0, 1, 2, 3, 4]);
    }
}

//! An amount of money for an hour, with its currency.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::numbers::{self, NumberError};

/// The form of a price, as messages name it after "write".
pub(super) const PRICE_FORM: &str =
    "a number of at least 0 and a currency of three capital letters, such as \"0.031 USD\", or nothing";

/// An amount of money for an hour; finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HourlyPrice {
    amount: f64,
    currency: Currency,
}

/// A currency by its code of three capital letters (ISO 4217).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Currency([u8; 3]);

/// Why a text is not a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum PriceError {
    /// A number alone, or no currency behind it.
    #[error("has no currency")]
    NoCurrency,
    /// The amount lies below zero.
    #[error("is negative")]
    Negative,
    /// The amount is not a number.
    #[error(transparent)]
    Amount(NumberError),
}

impl HourlyPrice {
    /// An amount that was worked out of prices.
    pub(super) fn new(amount: f64, currency: Currency) -> Self {
        Self { amount, currency }
    }

    /// The amount of money, in units of the currency.
    pub fn amount(self) -> f64 {
        self.amount
    }

    /// The currency of the amount.
    pub fn currency(self) -> Currency {
        self.currency
    }

    /// Reads an amount and its currency.
    pub(super) fn parse(text: &str) -> Result<Self, PriceError> {
        let (amount, currency) = text.split_once(' ').ok_or(PriceError::NoCurrency)?;
        let currency = Currency::of_code(currency.trim_start()).ok_or(PriceError::NoCurrency)?;
        let amount = numbers::float(amount).map_err(PriceError::Amount)?;
        if amount < 0.0 {
            return Err(PriceError::Negative);
        }
        // Adding zero turns -0.0 into 0.0, which prints as people expect.
        Ok(Self { amount: amount + 0.0, currency })
    }
}

impl fmt::Display for HourlyPrice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.amount, self.currency)
    }
}

impl Serialize for HourlyPrice {
    fn serialize<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        if to.is_human_readable() { to.collect_str(self) } else { (self.amount, self.currency).serialize(to) }
    }
}

impl<'de> Deserialize<'de> for HourlyPrice {
    /// Reads a price as an exact keyframe has it.
    fn deserialize<Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        let (amount, currency) = Deserialize::deserialize(from)?;
        Ok(Self { amount, currency })
    }
}

impl Currency {
    fn of_code(code: &str) -> Option<Self> {
        let letters: [u8; 3] = code.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_uppercase).then_some(Self(letters))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&letter| write!(formatter, "{}", char::from(letter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_an_amount_and_a_currency() {
        for (text, shown) in [("0.031 USD", "0.031 USD"), ("1e-3  EUR", "0.001 EUR"), ("-0 JPY", "0 JPY")] {
            assert_eq!(HourlyPrice::parse(text).map(|price| price.to_string()), Ok(shown.to_owned()));
        }
        for (text, error) in [
            ("0.031", PriceError::NoCurrency),
            ("0.031USD", PriceError::NoCurrency),
            ("0.031 usd", PriceError::NoCurrency),
            ("0.031 USDX", PriceError::NoCurrency),
            ("-1 USD", PriceError::Negative),
            ("cheap USD", PriceError::Amount(NumberError::NoFloat)),
            ("inf USD", PriceError::Amount(NumberError::NotFinite)),
        ] {
            assert_eq!(HourlyPrice::parse(text), Err(error), "{text}");
        }
    }
}

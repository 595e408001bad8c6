//! The form of a verification: the fields that a provider asks the user to fill in, and the check of the answers.

use std::collections::BTreeMap;

use kernel::{Bound, Timestamp};
use serde_json::Value;

use crate::customer::is_email;
use crate::object::JsonObject;

/// The form of a verification: a flat JSON Schema object whose properties are strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    text: JsonObject,
    fields: BTreeMap<String, FormField>,
}

/// What the answer to one field of a form must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormField {
    /// Maximum length, in characters.
    pub max_length: Option<u64>,
    /// The values that can be chosen.
    pub choices: Option<Vec<String>>,
    /// The kind of text.
    pub format: Option<FieldFormat>,
    /// Whether the user must fill it in.
    pub required: bool,
}

/// The kind of text of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldFormat {
    /// A date such as 1815-12-10.
    Date,
    /// An email address.
    Email,
}

/// What is wrong with the answers. Its text names the field, and never repeats an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The form has no such field.
    #[error("`answers.{0:.64}`: unknown field of this form")]
    Unknown(String),
    /// A required field has no answer.
    #[error("`answers.{0}`: this field is required")]
    Missing(String),
    /// The answer is not a string.
    #[error("`answers.{0}`: expected a string")]
    NotText(String),
    /// The answer is longer than the form allows.
    #[error("`answers.{field}`: expected at most {most} characters")]
    TooLong {
        /// The name of the field.
        field: String,
        /// The maximum length, in characters.
        most: u64,
    },
    /// The answer is not one of the form's values.
    #[error("`answers.{0}`: expected one of the values of the form")]
    NoChoice(String),
    /// The answer is not a date.
    #[error("`answers.{0}`: expected a date such as 1815-12-10")]
    NoDate(String),
    /// The answer is not an email address.
    #[error("`answers.{0}`: expected an email address")]
    NoEmail(String),
}

impl Form {
    /// A form of this text and these fields, which the caller has read from the text.
    #[must_use]
    pub const fn new(text: JsonObject, fields: BTreeMap<String, FormField>) -> Self {
        Self { text, fields }
    }

    /// The JSON Schema, as the provider wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// The JSON Schema, as the provider wrote it.
    #[must_use]
    pub fn into_object(self) -> JsonObject {
        self.text
    }

    /// Checks the user's answers. An empty answer to a field that is not required counts as none.
    ///
    /// # Errors
    /// [`AnswerError`]: the first field that is wrong, in alphabetical order.
    pub fn check(&self, answers: &JsonObject) -> Result<(), AnswerError> {
        let answers: BTreeMap<String, Value> =
            serde_json::from_str(answers.as_str()).unwrap_or_default();
        for name in answers.keys() {
            if !self.fields.contains_key(name) {
                return Err(AnswerError::Unknown(name.clone()));
            }
        }
        self.fields
            .iter()
            .try_for_each(|(name, field)| field.check(name, answers.get(name)))
    }
}

impl FormField {
    fn check(&self, name: &str, answer: Option<&Value>) -> Result<(), AnswerError> {
        let text = match answer {
            None => "",
            Some(Value::String(text)) => text,
            Some(_) => return Err(AnswerError::NotText(name.to_owned())),
        };
        if let Some(choices) = &self.choices
            && answer.is_some()
            && choices.iter().any(|choice| choice == text)
        {
            return Ok(());
        }
        if text.is_empty() {
            let missing = || AnswerError::Missing(name.to_owned());
            return (!self.required).then_some(()).ok_or_else(missing);
        }
        if self.choices.is_some() {
            return Err(AnswerError::NoChoice(name.to_owned()));
        }
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        if let Some(most) = self.max_length.filter(|most| length > *most) {
            let field = name.to_owned();
            return Err(AnswerError::TooLong { field, most });
        }
        match self.format {
            Some(FieldFormat::Date) if !is_date(text) => Err(AnswerError::NoDate(name.to_owned())),
            Some(FieldFormat::Email) if !is_email(text) => {
                Err(AnswerError::NoEmail(name.to_owned()))
            }
            Some(FieldFormat::Date | FieldFormat::Email) | None => Ok(()),
        }
    }
}

/// Whether a text is a date such as 1815-12-10. A text with a time is longer.
fn is_date(text: &str) -> bool {
    text.len() == "1815-12-10".len() && Timestamp::parse(text, Bound::Upper).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, FormField)]) -> Form {
        let fields = fields
            .iter()
            .map(|(name, field)| ((*name).to_owned(), field.clone()));
        Form::new(JsonObject::empty(), fields.collect())
    }

    fn checked(form: &Form, answers: &str) -> Result<(), AnswerError> {
        form.check(&JsonObject::form(answers).unwrap())
    }

    fn person() -> Form {
        let field = FormField::default;
        form(&[
            (
                "name",
                FormField {
                    required: true,
                    max_length: Some(5),
                    ..field()
                },
            ),
            (
                "born",
                FormField {
                    format: Some(FieldFormat::Date),
                    ..field()
                },
            ),
            (
                "mail",
                FormField {
                    format: Some(FieldFormat::Email),
                    ..field()
                },
            ),
            (
                "country",
                FormField {
                    choices: Some(vec!["DE".to_owned(), "FR".to_owned()]),
                    max_length: Some(1),
                    ..field()
                },
            ),
        ])
    }

    // rule: gate.verification.form-checked
    #[test]
    fn answers_must_match_the_form() {
        use AnswerError as E;
        let name = |name: &str| name.to_owned();
        let too_long = E::TooLong {
            field: name("name"),
            most: 5,
        };
        for (answers, expected) in [
            (r#"{"name":"Ann"}"#, Ok(())),
            (
                r#"{"name":"ännäx","born":"1815-12-10","mail":"a@b.co","country":"FR"}"#,
                Ok(()),
            ),
            (r#"{"name":"Ann","born":"","mail":"","country":""}"#, Ok(())),
            (r#"{"name":"Annabel"}"#, Err(too_long)),
            (r"{}", Err(E::Missing(name("name")))),
            (r#"{"name":""}"#, Err(E::Missing(name("name")))),
            (r#"{"name":null}"#, Err(E::NotText(name("name")))),
            (r#"{"name":1}"#, Err(E::NotText(name("name")))),
            (
                r#"{"name":"Ann","born":["1815-12-10"]}"#,
                Err(E::NotText(name("born"))),
            ),
            (
                r#"{"name":"Ann","born":"10.12.1815"}"#,
                Err(E::NoDate(name("born"))),
            ),
            (
                r#"{"name":"Ann","born":"1815-02-30"}"#,
                Err(E::NoDate(name("born"))),
            ),
            (
                r#"{"name":"Ann","born":"1815-12-10T00:00:00Z"}"#,
                Err(E::NoDate(name("born"))),
            ),
            (
                r#"{"name":"Ann","mail":"ann"}"#,
                Err(E::NoEmail(name("mail"))),
            ),
            (
                r#"{"name":"Ann","country":"de"}"#,
                Err(E::NoChoice(name("country"))),
            ),
            (r#"{"name":"Ann","age":"7"}"#, Err(E::Unknown(name("age")))),
        ] {
            assert_eq!(checked(&person(), answers), expected, "{answers}");
        }
    }

    // rule: gate.verification.form-checked
    #[test]
    fn refusal_names_the_field_and_repeats_no_answer() {
        for (answers, field) in [
            (r#"{"name":"Lovelace"}"#, "`answers.name`"),
            (r#"{"name":"Ann","born":"Lovelace"}"#, "`answers.born`"),
            (r#"{"name":"Ann","mail":"Lovelace"}"#, "`answers.mail`"),
            (
                r#"{"name":"Ann","country":"Lovelace"}"#,
                "`answers.country`",
            ),
            (r#"{"name":"Ann","x":"Lovelace"}"#, "`answers.x`"),
        ] {
            let message = checked(&person(), answers).unwrap_err().to_string();
            assert!(message.starts_with(field), "{message}");
            assert!(!message.contains("Lovelace"), "{message}");
        }
        let long = format!(r#"{{"name":"Ann","{}":"x"}}"#, "y".repeat(9_000));
        let message = checked(&person(), &long).unwrap_err().to_string();
        assert!(message.len() < 200, "{message}");
    }

    // rule: gate.verification.form-checked
    #[test]
    fn empty_choice_is_an_answer_if_the_form_offers_it() {
        let offered = form(&[(
            "title",
            FormField {
                choices: Some(vec![String::new(), "Dr".to_owned()]),
                required: true,
                ..FormField::default()
            },
        )]);
        assert_eq!(checked(&offered, r#"{"title":""}"#), Ok(()));
        let missing = AnswerError::Missing("title".to_owned());
        assert_eq!(checked(&offered, "{}"), Err(missing));
    }
}

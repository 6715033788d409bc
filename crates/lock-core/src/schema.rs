//! JSON schemas of the values in configurations. A schema checks the form; the rest is checked when the configuration is read.

use std::borrow::Cow;

use schemars::transform::Transform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::{Prefix, Ttl};

/// What [`parse_duration`](crate::parse_duration) reads.
const DURATION: &str = r"^\s*(0|([0-9]+(\.[0-9]+)?\s*(nanos|nsec|ns|usec|us|µs|millis|msec|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|wks?|w|months?|M|years?|yrs?|y)\s*)+)\s*$";
/// A number that is not zero.
const NOT_ZERO: &str = "[1-9]";

/// The schema of a duration that is read with [`human_duration`](crate::human_duration): `#[schemars(with = "HumanDuration")]`.
#[derive(Debug)]
pub enum HumanDuration {}

impl JsonSchema for HumanDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration, such as \"500ms\", \"30s\", \"5m\" or \"1h 30m\".",
            "type": "string",
            "pattern": DURATION,
        })
    }
}

/// The same, for a duration that must not be zero.
#[derive(Debug)]
pub enum PositiveDuration {}

impl JsonSchema for PositiveDuration {
    fn schema_name() -> Cow<'static, str> {
        "PositiveDuration".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration above zero, such as \"500ms\", \"30s\", \"5m\" or \"1h 30m\".",
            "allOf": [generator.subschema_for::<HumanDuration>(), { "pattern": NOT_ZERO }],
        })
    }
}

impl JsonSchema for Ttl {
    fn schema_name() -> Cow<'static, str> {
        "Ttl".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration from 100ms to 365 days, such as \"30s\".",
            "allOf": [generator.subschema_for::<HumanDuration>(), { "pattern": NOT_ZERO }],
        })
    }
}

impl JsonSchema for Prefix {
    fn schema_name() -> Cow<'static, str> {
        "Prefix".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The prefix of lock names in the store, 1 to 100 bytes. Keys that begin with \"leasehold:\" are reserved.",
            "type": "string",
            "minLength": 1,
            "maxLength": Self::BYTES_MAX,
            "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$",
            "not": { "pattern": "^leasehold(:|$)" },
        })
    }
}

/// Requires exactly one of these fields in a table: `#[schemars(transform = ExactlyOneOf(&["url", "nodes"]))]`.
#[derive(Clone, Copy, Debug)]
pub struct ExactlyOneOf(pub &'static [&'static str]);

impl Transform for ExactlyOneOf {
    fn transform(&mut self, schema: &mut Schema) {
        let form = |field: &&str| {
            // A field that is null counts as absent.
            let present = Map::from_iter([((*field).to_owned(), json!({ "not": { "type": "null" } }))]);
            json!({ "required": [field], "properties": present })
        };
        schema.insert("oneOf".to_owned(), Value::Array(self.0.iter().map(form).collect()));
    }
}

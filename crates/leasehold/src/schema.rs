//! The JSON schema of a [`BackendConfig`].

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::BackendConfig;
use crate::stores::{SCHEMES, Table};

impl JsonSchema for BackendConfig {
    fn schema_name() -> Cow<'static, str> {
        "BackendConfig".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let included = SCHEMES.iter().filter(|scheme| scheme.parser().is_some());
        let schemes: Vec<_> = included.map(|scheme| scheme.name.replace('+', r"\+")).collect();
        json_schema!({
            "description": "Which store to use, and how: a URL, or a table.",
            "anyOf": [
                {
                    "description": "The URL of a store. What follows its scheme is checked when the configuration is read.",
                    "type": "string",
                    "pattern": format!("^({}):", schemes.join("|")),
                },
                generator.subschema_for::<Table>(),
            ],
        })
    }
}

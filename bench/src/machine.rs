//! What the figures were measured on.

use std::fs;
use std::thread::available_parallelism;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// The machine and the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The model of the processor.
    processor: String,
    /// How many cores this process may use.
    cores: usize,
    /// The version of the server.
    redis: String,
    /// How many processes wanted to run in the minute before.
    load: Option<f64>,
    /// When it was looked at, in UTC.
    #[serde(default)]
    pub(crate) when: String,
}

impl Machine {
    pub(crate) fn look(redis: String) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let load = read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok());
        Self {
            processor: model(&read("/proc/cpuinfo")),
            cores: available_parallelism().map_or(1, usize::from),
            redis,
            load,
            when: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        }
    }

    /// In one line, for display.
    pub(crate) fn line(&self) -> String {
        let Self { processor, cores, redis, load, when } = self;
        let load = load.map_or_else(String::new, |load| format!(", load {load} before"));
        let cores = if *cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
        format!("{cores}, {processor}, Redis {redis} on loopback{load}, {}", when.get(..10).unwrap_or("no date"))
    }
}

fn model(cpuinfo: &str) -> String {
    let model = |line: &str| line.strip_prefix("model name")?.split_once(':').map(|(_, model)| model.trim().to_owned());
    cpuinfo.lines().find_map(model).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

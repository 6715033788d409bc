//! The metrics as Prometheus gets them: over HTTP, in its text format.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use metrics_exporter_prometheus::{BuildError, PrometheusHandle};
use test_support::bounds::PATIENCE;
use ureq::Agent;

/// What `docs/book/src/metrics.md` shows.
fn install() -> Result<PrometheusHandle, BuildError> {
    use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};

    let seconds = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0];
    let positions = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
    let metrics = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &seconds)?
        .set_buckets_for_metric(Matcher::Full("leasehold_queue_position".to_owned()), &positions)?
        .install_recorder()?;
    Ok(metrics)
}

/// Serves the metrics of this process.
pub(crate) struct Endpoint(String);

impl Endpoint {
    pub(crate) fn start() -> Self {
        let (metrics, listener) = (install().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap(), &metrics.render())));
        Self(url)
    }

    pub(crate) fn scrape(&self) -> Scrape {
        let agent: Agent = Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
        Scrape::parse(&agent.get(&self.0).call().unwrap().body_mut().read_to_string().unwrap())
    }
}

fn answer(mut stream: TcpStream, text: &str) {
    let request = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    request.take_while(|line| !line.is_empty()).for_each(drop);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\nContent-Length:";
    write!(stream, "{head} {}\r\n\r\n{text}", text.len()).unwrap();
}

/// What was scraped.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    pub(crate) samples: Vec<Sample>,
    /// The type of each metric that has a description.
    pub(crate) types: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

impl Scrape {
    fn parse(text: &str) -> Self {
        let (mut scrape, mut described) = (Self::default(), BTreeSet::new());
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(help) = line.strip_prefix("# HELP ") {
                described.insert(help.split_once(' ').unwrap().0);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert!(described.contains(name), "{name} is not described");
                scrape.types.insert(name.to_owned(), kind.to_owned());
            } else {
                scrape.samples.push(Sample::parse(line));
            }
        }
        scrape
    }

    /// The value of the sample with exactly these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: BTreeMap<_, _> =
            labels.iter().map(|(label, value)| (String::from(*label), (*value).into())).collect();
        self.samples.iter().find(|sample| sample.name == name && sample.labels == labels).map(|sample| sample.value)
    }

    /// The sum of the samples with this name and store.
    pub(crate) fn sum(&self, name: &str, backend: &str) -> f64 {
        let of_store = |sample: &&Sample| sample.name == name && sample.labels["backend"] == backend;
        self.samples.iter().filter(of_store).map(|sample| sample.value).sum()
    }

    /// The metric that a sample belongs to: those of a histogram have three endings.
    pub(crate) fn metric<'a>(&self, sample: &'a str) -> &'a str {
        let of_histogram = |name: &&str| self.types.get(*name).is_some_and(|kind| kind == "histogram");
        let endings = ["_bucket", "_sum", "_count"];
        endings.iter().find_map(|ending| sample.strip_suffix(ending).filter(of_histogram)).unwrap_or(sample)
    }
}

impl Sample {
    /// Of the form `name{label="value",other="value"} 1`.
    fn parse(line: &str) -> Self {
        let (name, rest) = line.split_once('{').unwrap();
        let (labels, value) = rest.rsplit_once("} ").unwrap();
        let label = |text: &str| {
            let (label, value) = text.split_once("=\"").unwrap();
            (label.to_owned(), value.trim_end_matches('"').to_owned())
        };
        let labels = labels.split("\",").map(label).collect();
        Self { name: name.to_owned(), labels, value: value.parse().unwrap() }
    }
}

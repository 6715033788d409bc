//! A worker that pays invoices. Its traces show how long each payment waited for its lock, and what held it up.
//!
//! The spans go to standard output. In production, the exporter is that of opentelemetry-otlp, and sends them in batches.

use std::env;
use std::time::Duration;

use leasehold::Client;
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use opentelemetry_stdout::SpanExporter;
use tokio::time::sleep;
use tracing::{Instrument, Level, info_span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let spans = export_spans()?;
    let locks = leasehold::connect(&env::var("LOCKS_URL").unwrap_or_else(|_| "memory:".to_owned())).await?;
    // Two workers were given the same invoice.
    tokio::try_join!(pay(&locks, 7), pay(&locks, 7), pay(&locks, 8))?;
    locks.close().await;
    spans.shutdown()?;
    Ok(())
}

/// Has the spans of this program, and those of its locks with their events, exported.
fn export_spans() -> anyhow::Result<SdkTracerProvider> {
    let service = Resource::builder().with_service_name("invoices").build();
    let spans =
        SdkTracerProvider::builder().with_resource(service).with_simple_exporter(SpanExporter::default()).build();
    // The span `acquire` and most events of a lock have the level debug.
    let exported = Targets::new().with_target("leasehold", Level::DEBUG).with_target(module_path!(), Level::INFO);
    let layer = tracing_opentelemetry::layer().with_tracer(spans.tracer("invoices"));
    tracing_subscriber::registry().with(layer.with_filter(exported)).try_init()?;
    Ok(spans)
}

async fn pay(locks: &Client, invoice: u64) -> anyhow::Result<()> {
    let work = async {
        let guard = locks.mutex(format!("invoice:{invoice}")).wait(Duration::from_secs(30)).acquire().await?;
        ask_the_bank().instrument(info_span!("ask the bank")).await;
        guard.release().await?;
        Ok(())
    };
    work.instrument(info_span!("pay", invoice)).await
}

async fn ask_the_bank() {
    sleep(Duration::from_millis(200)).await;
}

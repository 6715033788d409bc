//! A history as short lines of text, and text in XML and HTML. Pure.

use super::history::{Event, History, Place};

/// The events as lines, each with its time and place.
pub(crate) fn lines(history: &History) -> Vec<String> {
    history.events.iter().map(|event| line(history, event)).collect()
}

fn line(history: &History, event: &Event) -> String {
    let (millis, text) = (event.at_us / 1000, &event.text);
    let name = |lane| history.name(lane);
    match event.place {
        Place::Message { from, to } | Place::Refused { from, to } => {
            format!("{millis} ms  {} to {}: {text}", name(from), name(to))
        }
        Place::Lost { from, to } => format!("{millis} ms  {} to {}, lost: {text}", name(from), name(to)),
        Place::Note(lane) => format!("{millis} ms  {}: {text}", name(lane)),
    }
}

/// Text between tags and in attributes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

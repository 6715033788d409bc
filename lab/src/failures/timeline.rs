//! Draws a recorded history as SVG: lanes side by side, time from top to bottom. Pure.

use super::history::{Bar, History, Kind, Lane, Place, Tone};
use super::layout::{Anchor, HEADS, LINE, Layout, Row, TIMES, WIDTH, wrapped};
use super::markup::{escaped, lines};

const STYLE: &str = include_str!("timeline.css");

/// The classes of the clients' colours, in the order of their lanes.
const COLOURS: [&str; 3] = ["first", "second", "third"];
/// How many characters a line of the verdict has, which is bold.
const VERDICT: u32 = 82;

/// The picture as one SVG element, for a file or a page.
pub(crate) fn draw(history: &History) -> String {
    let layout = Layout::of(history);
    let legend = legend(history);
    let verdict = wrapped(&history.ended.text(), VERDICT);
    let verdict_height = LINE * u32::try_from(verdict.len()).unwrap_or(1) + 18;
    let legend_y = layout.bottom + verdict_height + 34;
    let height = legend_y + LINE * u32::try_from(legend.len().div_ceil(2)).unwrap_or(1);
    let slug = history.slug();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"timeline\" role=\"img\" aria-labelledby=\"{slug}-title {slug}-desc\" \
         width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n"
    );
    svg += &format!("<title id=\"{slug}-title\">{}</title>\n", escaped(&title(history)));
    svg += &format!("<desc id=\"{slug}-desc\">{}</desc>\n", escaped(&description(history)));
    svg += &format!("<style>{STYLE}</style>\n{}", definitions(&slug));
    svg += &format!("<rect class=\"surface\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n");
    svg += &heading(history);
    svg += &lanes(history, &layout);
    svg.extend(history.bars.iter().map(|bar| self::bar(history, &layout, bar)));
    let mut shown = String::new();
    for row in &layout.rows {
        svg += &event(&layout, row, &slug, &mut shown);
    }
    svg += &verdict_box(history, &verdict, layout.bottom + 8, verdict_height);
    svg += &legend_text(&legend, legend_y, &slug);
    svg + "</svg>\n"
}

fn title(history: &History) -> String {
    let with = history.variant.word();
    format!("{}, {with} the protection", history.title)
}

/// The history as text, for readers who do not see the picture.
fn description(history: &History) -> String {
    format!("{}. {}.", lines(history).join(". "), history.ended.text())
}

fn definitions(slug: &str) -> String {
    let hatch = |name: &str, class: &str| {
        format!(
            "<pattern id=\"{slug}-{name}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
             <rect width=\"3\" height=\"6\" class=\"{class}\"/></pattern>"
        )
    };
    let head = |name: &str| {
        format!(
            "<marker id=\"{slug}-{name}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
             orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" class=\"head {name}\"/></marker>"
        )
    };
    let parts = [hatch("still", "still"), hatch("belief", "belief")];
    let heads = [Tone::Plain, Tone::Fault, Tone::Wrong, Tone::Guarded].map(|tone| head(class(tone)));
    format!("<defs>{}{}</defs>\n", parts.concat(), heads.concat())
}

fn heading(history: &History) -> String {
    let variant = format!("{} the protection ({})", capital(history.variant.word()), history.lock);
    format!(
        "<text class=\"title\" x=\"16\" y=\"27\">{}</text>\n<text class=\"muted\" x=\"16\" y=\"48\">{}</text>\n",
        escaped(history.title),
        escaped(&variant)
    )
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The names of the lanes, and their lines.
fn lanes(history: &History, layout: &Layout<'_>) -> String {
    let (top, bottom) = (HEADS + 26, layout.bottom);
    let axis = format!("<line class=\"lane\" x1=\"{TIMES}\" x2=\"{TIMES}\" y1=\"{top}\" y2=\"{bottom}\"/>\n");
    let lane = |(index, name): (usize, &&str)| {
        let x = layout.x(Lane(index));
        format!(
            "<line class=\"lane\" x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{bottom}\"/>\n\
             <rect class=\"name {}\" x=\"{}\" y=\"{HEADS}\" width=\"96\" height=\"26\" rx=\"13\"/>\n\
             <text class=\"strong\" text-anchor=\"middle\" x=\"{x}\" y=\"{}\">{}</text>\n",
            colour(history, Lane(index)),
            x - 48,
            HEADS + 18,
            escaped(name)
        )
    };
    axis + &history.lanes.iter().enumerate().map(lane).collect::<String>()
}

/// The class of a client's colour. Others have none.
fn colour(history: &History, lane: Lane) -> &'static str {
    let holders = history.holders();
    let place = holders.iter().position(|holder| *holder == lane);
    place.and_then(|place| COLOURS.get(place)).copied().unwrap_or_default()
}

fn bar(history: &History, layout: &Layout<'_>, bar: &Bar) -> String {
    let (x, top, bottom) = (layout.x(bar.lane), layout.y_from(bar.from_us), layout.y_at(bar.to_us));
    let (height, slug) = (bottom.saturating_sub(top).max(4), history.slug());
    let rect = |width: u32, attributes: &str| {
        format!(
            "<rect x=\"{}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"3\" {attributes}/>\n",
            x - width / 2
        )
    };
    match bar.kind {
        Kind::Stored(holder) => {
            let letter = history.name(holder);
            let shown =
                format!("<text class=\"letter\" text-anchor=\"middle\" x=\"{x}\" y=\"{}\">{letter}</text>\n", top + 14);
            rect(18, &format!("class=\"bar {}\"", colour(history, holder))) + if height >= 18 { &shown } else { "" }
        }
        Kind::Valid => rect(10, &format!("class=\"bar {}\"", colour(history, bar.lane))),
        Kind::Believed => rect(10, &format!("class=\"outline wrong\" fill=\"url(#{slug}-belief)\"")),
        Kind::Paused | Kind::Down => rect(22, &format!("class=\"outline still\" fill=\"url(#{slug}-still)\"")),
    }
}

/// An event. Its time is written unless it is the one that was shown last.
fn event(layout: &Layout<'_>, row: &Row<'_>, slug: &str, shown: &mut String) -> String {
    let (y, class) = (row.y, class(row.event.tone));
    let mut svg = String::new();
    if let Some(y) = row.pause_y {
        let (left, right) = (TIMES - 5, TIMES + 5);
        svg +=
            &format!("<path class=\"break\" d=\"M{left} {} L{right} {} M{left} {y} L{right} {}\"/>\n", y + 4, y, y - 4);
    }
    let time = format!("{} ms", row.event.at_us / 1000);
    if time != *shown {
        svg +=
            &format!("<text class=\"muted\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{time}</text>\n", TIMES - 10, y + 4);
        *shown = time;
    }
    svg += &match row.event.place {
        Place::Message { from, to } => arrow(layout.x(from), layout.x(to), y, [class, ""], slug),
        Place::Refused { from, to } => arrow(layout.x(from), layout.x(to), y, [class, "refused"], slug),
        Place::Lost { from, to } => {
            let (start, end) = (layout.x(from), layout.lost_x(from, to));
            format!("<line class=\"line {class}\" x1=\"{start}\" x2=\"{end}\" y1=\"{y}\" y2=\"{y}\"/>\n")
                + &format!("<path class=\"line {class}\" d=\"M{} {} l10 10 m0 -10 l-10 10\"/>\n", end - 5, y - 5)
        }
        Place::Note(lane) => format!("<circle class=\"head {class}\" cx=\"{}\" cy=\"{y}\" r=\"5\"/>\n", layout.x(lane)),
    };
    svg + &backdrop(row) + &text(row, class)
}

/// Behind the text of a message that passes other lanes, so that they do not cross it.
fn backdrop(row: &Row<'_>) -> String {
    let (Place::Message { from, to } | Place::Refused { from, to } | Place::Lost { from, to }) = row.event.place else {
        return String::new();
    };
    if from.0.abs_diff(to.0) < 2 {
        return String::new();
    }
    let (width, height) = (row.width() + 8, LINE * u32::try_from(row.lines.len()).unwrap_or(1));
    let (x, y) = (row.text_x - width / 2, row.text_y - 13);
    format!("<rect class=\"backdrop\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n")
}

fn arrow(from: u32, to: u32, y: u32, [class, how]: [&str; 2], slug: &str) -> String {
    format!(
        "<line class=\"line {class} {how}\" x1=\"{from}\" x2=\"{to}\" y1=\"{y}\" y2=\"{y}\" marker-end=\"url(#{slug}-{class})\"/>\n"
    )
}

fn text(row: &Row<'_>, class: &str) -> String {
    let anchor = match row.anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let line = |(y, line): (u32, &String)| {
        format!(
            "<text class=\"said {class}\" text-anchor=\"{anchor}\" x=\"{}\" y=\"{y}\">{}</text>\n",
            row.text_x,
            escaped(line)
        )
    };
    (row.text_y..).step_by(LINE as usize).zip(&row.lines).map(line).collect()
}

fn verdict_box(history: &History, verdict: &[String], top: u32, height: u32) -> String {
    let class = class(history.ended.tone());
    let line = |(y, line): (u32, &String)| {
        format!("<text class=\"strong {class}\" x=\"28\" y=\"{y}\">{}</text>\n", escaped(line))
    };
    let texts: String = (top + 22..).step_by(LINE as usize).zip(verdict).map(line).collect();
    format!(
        "<rect class=\"verdict {class}\" x=\"16\" y=\"{top}\" width=\"688\" height=\"{height}\" rx=\"6\"/>\n{texts}"
    )
}

/// The legend of this picture: the class of each sign, and what it means.
fn legend(history: &History) -> Vec<(&'static str, &'static str)> {
    let has = |is: fn(&Kind) -> bool| history.bars.iter().any(|bar| is(&bar.kind));
    let is_refused = history.events.iter().any(|event| matches!(event.place, Place::Refused { .. }));
    let all = [
        (has(|kind| matches!(kind, Kind::Stored(_))), "stored", "wide: the store has the lock for this client"),
        (has(|kind| *kind == Kind::Valid), "valid", "narrow: this client may rely on the lock"),
        (has(|kind| *kind == Kind::Believed), "belief", "it believes so, but has lost the lock"),
        (has(|kind| matches!(kind, Kind::Paused | Kind::Down)), "still", "suspended or dead"),
        (is_refused, "refused", "dashed: the request was refused"),
    ];
    all.into_iter().filter_map(|(is_used, sign, meaning)| is_used.then_some((sign, meaning))).collect()
}

fn legend_text(legend: &[(&str, &str)], top: u32, slug: &str) -> String {
    let entry = |(index, (sign, meaning)): (u32, &(&str, &str))| {
        let (x, y) = (16 + index % 2 * 350, top + index / 2 * LINE);
        let bar = |shape| format!("<rect x=\"{x}\" y=\"{}\" height=\"12\" rx=\"2\" {shape}/>\n", y - 10);
        let shape = match *sign {
            "stored" => bar("width=\"18\" class=\"sample\"".to_owned()),
            "valid" => bar("width=\"10\" class=\"sample\"".to_owned()),
            "belief" => bar(format!("width=\"10\" class=\"outline wrong\" fill=\"url(#{slug}-belief)\"")),
            "refused" => arrow(x, x + 22, y - 4, ["plain", "refused"], slug),
            _ => bar(format!("width=\"18\" class=\"outline still\" fill=\"url(#{slug}-still)\"")),
        };
        format!("{shape}<text class=\"muted\" x=\"{}\" y=\"{y}\">{}</text>\n", x + 26, escaped(meaning))
    };
    (0..).zip(legend).map(entry).collect()
}

/// The class of the style sheet.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Fault => "fault",
        Tone::Wrong => "wrong",
        Tone::Guarded => "guarded",
    }
}

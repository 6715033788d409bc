//! All histories as one page that needs no other file. Pure.

use super::history::History;
use super::markup::{escaped, lines};
use super::scene::Scene;
use super::timeline::draw;

const STYLE: &str = include_str!("page.css");

/// A scene and its two histories.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) scene: &'static Scene,
    pub(crate) histories: [History; 2],
}

/// The page.
pub(crate) fn page(all: &[Played]) -> String {
    let contents: String = all.iter().map(entry).collect();
    let sections: String = all.iter().map(section).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>The laboratory: how locks fail</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>How locks fail, and what prevents it</h1>\n<p>Each failure was played on real servers just now, without the \
         protection and with it. The pictures are drawn from what was recorded. Time runs downwards; a mark on the axis at the left \
         shortens a long wait. A client without the protection is a connection: while it is suspended, it sends nothing.</p>\n<ol>\n{contents}</ol>\n</header>\n<main>\n{sections}</main>\n</body>\n</html>\n"
    )
}

fn entry(played: &Played) -> String {
    let Scene { name, title, .. } = played.scene;
    format!("<li><a href=\"#{name}\">{}</a></li>\n", escaped(title))
}

fn section(played: &Played) -> String {
    let Scene { name, title, what_happens, .. } = played.scene;
    let figures: String = played.histories.iter().map(figure).collect();
    format!(
        "<section id=\"{name}\">\n<h2>{}</h2>\n<p>{}</p>\n<p class=\"again\">Play it again: <code>cargo xtask lab {name}</code></p>\n\
         <div class=\"pair\">\n{figures}</div>\n</section>\n",
        escaped(title),
        escaped(what_happens)
    )
}

fn figure(history: &History) -> String {
    let steps: String = lines(history).iter().map(|line| format!("<li>{}</li>\n", escaped(line))).collect();
    format!(
        "<figure>\n{}<details>\n<summary>As text</summary>\n<ol>\n{steps}</ol>\n</details>\n</figure>\n",
        draw(history)
    )
}

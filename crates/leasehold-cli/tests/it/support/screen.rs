//! What output goes to, and what a person sees there.

use std::process::Command;

use vt100::{Cell, Color, Parser};

use super::leasehold::{Leasehold, text};

/// The width of a terminal.
const WIDTH: u16 = 80;
/// The height at which nothing scrolls away.
const HEIGHT: u16 = 200;

/// What output goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    /// A terminal of 80 columns and 24 rows.
    Terminal,
    /// A terminal that does not know its size, as on a serial line.
    NoSize,
    /// A terminal of 80 columns that understands no control sequences.
    Dumb,
    /// No terminal.
    Pipe,
}

impl Screen {
    pub(crate) const ALL: [Self; 4] = [Self::Terminal, Self::NoSize, Self::Dumb, Self::Pipe];

    /// What its transcripts are called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::NoSize => "no-size",
            Self::Dumb => "dumb",
            Self::Pipe => "pipe",
        }
    }

    /// Runs a script of `sh` in front of it.
    pub(crate) fn command(self, leasehold: &Leasehold, script: &str) -> Command {
        let (setup, term) = match self {
            Self::Terminal => ("stty rows 24 cols 80", "xterm-256color"),
            Self::NoSize => ("stty rows 0 cols 0", "xterm-256color"),
            Self::Dumb => ("stty rows 24 cols 80; export NO_COLOR=1", "dumb"),
            Self::Pipe => ("exec 2>&1", "xterm-256color"),
        };
        let script = format!("{setup}; {script}");
        let mut command = match self {
            Self::Pipe => leasehold.program("sh"),
            Self::Terminal | Self::NoSize | Self::Dumb => leasehold.program("script"),
        };
        match self {
            Self::Pipe => command.args(["-c", &script]),
            Self::Terminal | Self::NoSize | Self::Dumb => command.args(["-qec", &script, "/dev/null"]),
        };
        command.env("PATH", super::path_with_leasehold());
        for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.env("TERM", term).env("SHELL", "/bin/sh");
        command
    }

    /// Checks that no line goes on behind the edge of the terminal, in the next row.
    pub(crate) fn check_fit(self, sent: &[u8]) {
        if let Self::Terminal | Self::Dumb = self {
            fitting(sent, WIDTH);
        }
    }

    /// What a person sees who was sent this, with colours as `<red>text</>`.
    pub(crate) fn rendered(self, sent: &[u8]) -> String {
        let columns = match self {
            Self::Pipe => return plain(sent),
            Self::NoSize => 500,
            Self::Terminal => WIDTH,
            Self::Dumb => {
                plain(sent);
                WIDTH
            }
        };
        let parser = parsed(sent, columns);
        let shown = parser.screen();
        let rows = (0..HEIGHT).map(|row| {
            let cells: Vec<_> = (0..columns).filter_map(|column| shown.cell(row, column)).collect();
            coloured(&cells)
        });
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned() + "\n"
    }
}

/// What a terminal of this width shows. Checks that no line goes on behind its edge, in the next row.
pub(crate) fn fitting(sent: &[u8], columns: u16) -> String {
    let parser = parsed(sent, columns);
    let wide = (0..HEIGHT).find(|row| parser.screen().row_wrapped(*row));
    assert!(wide.is_none(), "wider than the terminal: {}", parser.screen().contents());
    parser.screen().contents()
}

fn parsed(sent: &[u8], columns: u16) -> Parser {
    let mut parser = Parser::new(HEIGHT, columns, 0);
    parser.process(sent);
    parser
}

fn plain(sent: &[u8]) -> String {
    assert!(!sent.contains(&b'\x1b'), "control sequences: {}", text(sent));
    text(sent).replace('\r', "").trim_end().to_owned() + "\n"
}

fn coloured(cells: &[&Cell]) -> String {
    let mut text = String::new();
    for cells in cells.chunk_by(|one, next| one.fgcolor() == next.fgcolor()) {
        let part: String = cells.iter().map(|cell| if cell.has_contents() { cell.contents() } else { " " }).collect();
        match cells.first().map_or(Color::Default, |cell| cell.fgcolor()) {
            Color::Idx(colour) => text.push_str(&format!("<{}>{part}</>", name_of(colour))),
            Color::Default | Color::Rgb(..) => text.push_str(&part),
        }
    }
    text.trim_end().to_owned()
}

fn name_of(colour: u8) -> &'static str {
    ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"][usize::from(colour) % 8]
}

//! What is seen on a terminal as a picture: SVG, a text for each run of cells that look alike.

use std::fmt::Write as _;
use std::sync::PoisonError;

use vt100::{Cell, Color, Screen};

use super::{OnScreen, SIZE};

/// A cell's width and height, and how far down the line stands that letters stand on.
const CELL: (u16, u16) = (9, 18);
const BASE: u16 = 14;
const PAPER: &str = "#1c1e26";
const INK: &str = "#d5d8da";
/// The sixteen colours that every terminal has.
const COLORS: [&str; 16] = [
    "#2e303e", "#e9566f", "#29d398", "#fab795", "#26bbd9", "#ee64ac", "#59e1e3", "#d5d8da", "#6c6f93", "#ec6a88",
    "#3fdaa4", "#fbc3a7", "#3fc4de", "#f075b5", "#6be4e6", "#ffffff",
];

/// How a cell looks.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    ink: &'static str,
    paper: &'static str,
    bold: bool,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let (mut ink, mut paper) = (color(cell.fgcolor(), INK), color(cell.bgcolor(), PAPER));
        if cell.inverse() {
            (ink, paper) = (paper, ink);
        }
        Self { ink, paper, bold: cell.bold() }
    }
}

fn color(color: Color, default: &'static str) -> &'static str {
    match color {
        Color::Idx(number) => COLORS.get(usize::from(number)).copied().unwrap_or(default),
        Color::Default | Color::Rgb(..) => default,
    }
}

impl OnScreen {
    /// What is seen now, as SVG.
    pub fn picture(&self) -> String {
        let parser = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (columns, rows) = SIZE;
        let (width, height) = (columns * CELL.0 + 2 * CELL.0, rows * CELL.1 + CELL.1);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-size=\"15\" \
             font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\">\n\
             <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{PAPER}\"/>\n"
        );
        for row in 0..rows {
            draw_row(parser.screen(), row, columns, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn draw_row(screen: &Screen, row: u16, columns: u16, svg: &mut String) {
    let mut at = 0;
    while at < columns {
        let Some(first) = screen.cell(row, at) else { return };
        let look = Look::of(first);
        let (from, mut text) = (at, String::new());
        while let Some(cell) = screen.cell(row, at).filter(|cell| at < columns && Look::of(cell) == look) {
            if !cell.is_wide_continuation() {
                text.push_str(if cell.has_contents() { cell.contents() } else { " " });
            }
            at += 1;
        }
        let (x, y, wide) = (CELL.0 + from * CELL.0, CELL.1 / 2 + row * CELL.1, (at - from) * CELL.0);
        if look.paper != PAPER {
            let (paper, high) = (look.paper, CELL.1);
            let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" fill=\"{paper}\"/>");
        }
        if !text.trim().is_empty() {
            let (ink, y, weight) = (look.ink, y + BASE, if look.bold { " font-weight=\"bold\"" } else { "" });
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" fill=\"{ink}\"{weight} textLength=\"{wide}\" xml:space=\"preserve\">{text}</text>"
            );
        }
    }
}

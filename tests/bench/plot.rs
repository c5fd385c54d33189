//! Plots the ratios.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::table::{Row, number};

const ROW: i32 = 26;
const LEFT: i32 = 470;
const RIGHT: i32 = 80;
const WIDTH: i32 = 1_000;
const TOP: i32 = 50;

/// Returns an SVG file of how many times better Brine's figures are than Python's, on a logarithmic scale.
pub(crate) fn svg(rows: &[Row]) -> String {
    let rows: Vec<(&Row, f64)> = rows.iter().filter_map(|row| Some((row, row.ratio()?))).collect();
    let height = TOP + ROW * i32::try_from(rows.len()).unwrap_or(0) + 40;
    let most = rows.iter().map(|(_, ratio)| *ratio).fold(10.0, f64::max).log10().ceil();
    let mut out = String::new();
    draw(&mut out, &rows, height, most).expect("text takes everything");
    out
}

fn draw(
    out: &mut String,
    rows: &[(&Row, f64)],
    height: i32,
    most: f64,
) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>> {
    let area = SVGBackend::with_string(out, (WIDTH.unsigned_abs(), height.unsigned_abs())).into_drawing_area();
    area.fill(&WHITE)?;
    let font = |size: i32| ("sans-serif", size).into_font();
    let at = |h: HPos, v: VPos, size: i32| font(size).color(&BLACK).pos(Pos::new(h, v));
    area.draw_text(
        "Brine beside Python Salt: how many times better (logarithmic)",
        &at(HPos::Left, VPos::Center, 18),
        (10, 22),
    )?;
    #[allow(clippy::cast_possible_truncation, reason = "a place on the picture")]
    let x = |ratio: f64| LEFT + (f64::from(WIDTH - LEFT - RIGHT) * (ratio.log10() / most).clamp(-0.05, 1.0)) as i32;
    let bottom = height - 40;
    let mut tick = 1.0;
    while tick <= 10_f64.powf(most) {
        area.draw(&PathElement::new(vec![(x(tick), TOP - 8), (x(tick), bottom)], RGBColor(220, 220, 220)))?;
        area.draw_text(&format!("{}×", number(tick)), &at(HPos::Center, VPos::Top, 12), (x(tick), bottom + 6))?;
        tick *= 10.0;
    }
    let mut y = TOP;
    for (row, ratio) in rows {
        let name = row.what.replace('`', "");
        area.draw_text(&name, &at(HPos::Right, VPos::Center, 12), (LEFT - 10, y + ROW / 2))?;
        let color = if *ratio >= 1.0 { RGBColor(31, 119, 180) } else { RGBColor(214, 39, 40) };
        let (from, to) = (x(1.0).min(x(*ratio)), x(1.0).max(x(*ratio)));
        area.draw(&Rectangle::new([(from, y + 5), (to.max(from + 1), y + ROW - 5)], color.filled()))?;
        area.draw_text(&format!("{}×", number(*ratio)), &at(HPos::Left, VPos::Center, 12), (to + 6, y + ROW / 2))?;
        y += ROW;
    }
    area.present()
}

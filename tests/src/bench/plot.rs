//! Pictures of results, drawn as SVG files.

use std::path::Path;

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::prelude::*;

/// One bar: a median between two extremes.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The text that names the bar.
    pub label: String,
    /// The length of the bar: the median.
    pub median: f64,
    /// The least value, where the whisker begins.
    pub least: f64,
    /// The largest value, where the whisker ends.
    pub most: f64,
}

/// The points of one line over time.
#[derive(Clone, Debug)]
pub struct Line {
    /// The text that names the line.
    pub label: String,
    /// The points, as seconds and values.
    pub points: Vec<(f64, f64)>,
}

/// A chart of lines over time.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The text above the chart.
    pub title: String,
    /// The unit, beside the vertical axis.
    pub unit: String,
    /// The lines that the chart shows.
    pub lines: Vec<Line>,
}

const WIDTH: u32 = 900;
const CHART_HEIGHT: u32 = 320;
const BAR_HEIGHT: u32 = 22;
const COLOURS: [RGBColor; 6] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 90, 49),
    RGBColor(44, 140, 80),
    RGBColor(120, 94, 175),
    RGBColor(150, 110, 60),
    RGBColor(110, 110, 110),
];

/// Draws bars below each other, with a line where a limit is, if there is one.
pub fn bars(path: &Path, title: &str, bars: &[Bar], limit: Option<f64>) -> anyhow::Result<()> {
    let rows = u32::try_from(bars.len())?;
    let root = SVGBackend::new(path, (WIDTH, rows * BAR_HEIGHT + 90)).into_drawing_area();
    draw_bars(&root, title, bars, limit).map_err(|error| anyhow!("drawing {}: {error}", path.display()))
}

fn draw_bars(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    bars: &[Bar],
    limit: Option<f64>,
) -> Result<(), Box<dyn std::error::Error>> {
    root.fill(&WHITE)?;
    let rows = i32::try_from(bars.len())?;
    let end = bars
        .iter()
        .map(|bar| bar.most)
        .filter(|value| value.is_finite())
        .fold(limit.unwrap_or(0.0), f64::max)
        * 1.05;
    let mut chart = ChartBuilder::on(root)
        .caption(title, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(330)
        .build_cartesian_2d(0.0..end, 0..rows)?;
    chart.configure_mesh().disable_y_mesh().disable_y_axis().label_style(("sans-serif", 15)).draw()?;
    for (row, bar) in (0..rows).rev().zip(bars) {
        let colour = if limit.is_none_or(|limit| bar.median <= limit) { COLOURS[0] } else { COLOURS[1] };
        chart.draw_series([Rectangle::new([(0.0, row), (bar.median, row + 1)], colour.mix(0.7).filled())])?;
        let (_, top) = chart.backend_coord(&(0.0, row + 1));
        let middle = top + i32::try_from(BAR_HEIGHT)? / 2;
        let across = |value: f64| chart.backend_coord(&(value, row)).0;
        root.draw(&PathElement::new([(across(bar.least), middle), (across(bar.most), middle)], BLACK))?;
        root.draw(&Text::new(
            format!("{}  {:.2}", bar.label, bar.median),
            (10, middle - 7),
            ("sans-serif", 16),
        ))?;
    }
    if let Some(limit) = limit {
        chart.draw_series([PathElement::new([(limit, 0), (limit, rows)], BLACK.stroke_width(2))])?;
    }
    root.present()?;
    Ok(())
}

/// Draws charts below each other.
pub fn charts(path: &Path, charts: &[Chart]) -> anyhow::Result<()> {
    let count = charts.len();
    let root = SVGBackend::new(path, (WIDTH, CHART_HEIGHT * u32::try_from(count)?)).into_drawing_area();
    let draw = || -> Result<(), Box<dyn std::error::Error>> {
        root.fill(&WHITE)?;
        for (area, chart) in root.split_evenly((count, 1)).iter().zip(charts) {
            draw_chart(area, chart)?;
        }
        root.present()?;
        Ok(())
    };
    draw().map_err(|error| anyhow!("drawing {}: {error}", path.display()))
}

fn draw_chart(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    chart: &Chart,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let end = points().map(|point| point.0).fold(1.0, f64::max);
    let top = points().map(|point| point.1).fold(1.0, f64::max) * 1.1;
    let mut context = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(35)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    context
        .configure_mesh()
        .x_desc("seconds")
        .y_desc(&chart.unit)
        .light_line_style(WHITE)
        .label_style(("sans-serif", 15))
        .draw()?;
    for (line, colour) in chart.lines.iter().zip(COLOURS.into_iter().cycle()) {
        context
            .draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)))?
            .label(&line.label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    context
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 15))
        .draw()?;
    Ok(())
}

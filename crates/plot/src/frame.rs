//! What all figures have: their size, title, legend and axes.

use ombx_results::render::plain;
use plotters::{prelude::*, style::text_anchor::HPos};

use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    font,
    legend::{self, Key},
    options::{Options, Width},
    style::{self, Drawn, GRID, INK, Page, Plane, TEXT},
};

/// Free space around the figure.
const MARGIN: i32 = 30;
/// Space between the legend and the axes: half of a label.
const BELOW_LEGEND: i32 = 30;
/// Length of tick marks. Labels have twice this distance from the axis.
const TICK: i32 = 25;
/// Height of the labels and the title of the horizontal axis.
const BELOW: i32 = 270;

impl Width {
    /// Returns the width in tenths of a point.
    pub(crate) fn units(self) -> i32 {
        match self {
            Width::OneColumn => 2409,
            Width::TwoColumns => 5046,
        }
    }

    /// Returns the usual height of the area of the axes with their labels.
    fn height(self) -> i32 {
        match self {
            Width::OneColumn => 1520,
            Width::TwoColumns => 2150,
        }
    }

    /// Returns the largest number of ticks: horizontal, vertical.
    fn ticks(self) -> (usize, usize) {
        match self {
            Width::OneColumn => (8, 7),
            Width::TwoColumns => (16, 9),
        }
    }
}

/// A figure without what is drawn between its axes.
pub(crate) struct Frame {
    /// Axes: horizontal, vertical.
    pub(crate) axes: (Axis, Axis),
    /// Their titles.
    pub(crate) titles: (String, String),
    pub(crate) keys: Vec<Key>,
    /// Whether the area between the axes is a square.
    pub(crate) square: bool,
}

impl Frame {
    /// Draws the figure. `inside` draws what is between the axes.
    pub(crate) fn draw(
        self,
        options: &Options<'_>,
        inside: impl FnOnce(&Plane<'_>) -> Drawn,
    ) -> Result<Drawing, PlotError> {
        let (x, y) = &self.axes;
        let width = options.width.units();
        let (x_ticks, y_ticks) = options.width.ticks();
        let lines = legend::lines(&self.keys, width - 2 * MARGIN);
        let title = if options.title.is_some() { legend::LINE } else { 0 };
        let above = MARGIN + title + lines.len() as i32 * legend::LINE + BELOW_LEGEND;
        let widest = |axis: &Axis, max| {
            let labels = axis.ticks(max).into_iter().map(|value| font::width(&axis.label(value), TEXT));
            labels.fold(0.0, f64::max).ceil() as i32
        };
        let left = widest(y, y_ticks) + 2 * TICK + TEXT as i32 * 3 / 2;
        // The label of the last tick is centred below it.
        let label = widest(x, x_ticks);
        let right = label / 2 + 10;
        // Labels beside each other must not touch.
        let most = (width - left - right - 2 * MARGIN) / (label + TEXT as i32 / 2).max(1);
        let ticks = (x_ticks.min(most.max(2) as usize), y_ticks);
        let body =
            if self.square { width - left - right - 2 * MARGIN + BELOW } else { options.width.height() };
        let height = above + body + 2 * MARGIN;
        let mut svg = String::new();
        {
            let page = SVGBackend::with_string(&mut svg, (width as u32, height as u32)).into_drawing_area();
            self.on(&page, options, (above, left, right), ticks, &lines, inside)
                .map_err(|e| PlotError::Library(e.to_string()))?;
        }
        Ok(Drawing::new(&svg, (width, height)))
    }

    fn on(
        &self,
        page: &Page<'_>,
        options: &Options<'_>,
        (above, left, right): (i32, i32, i32),
        (x_ticks, y_ticks): (usize, usize),
        lines: &[Vec<&Key>],
        inside: impl FnOnce(&Plane<'_>) -> Drawn,
    ) -> Drawn {
        page.fill(&WHITE)?;
        if let Some(title) = options.title {
            let middle = (options.width.units() / 2, MARGIN + legend::LINE / 2);
            page.draw(&Text::new(plain(title), middle, style::text(HPos::Center)))?;
        }
        legend::draw(page, lines, (MARGIN, above - BELOW_LEGEND - legend::LINE * lines.len() as i32))?;
        let (_, body) = page.split_vertically(above);
        let (x, y) = &self.axes;
        let (x_label, y_label) = (|value: &f64| x.label(*value), |value: &f64| y.label(*value));
        let mut chart = ChartBuilder::on(&body)
            .margin(MARGIN)
            .margin_right(MARGIN + right)
            .x_label_area_size(BELOW)
            .y_label_area_size(left)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .bold_line_style(GRID.stroke_width(4))
            .light_line_style(TRANSPARENT)
            .max_light_lines(1)
            .axis_style(INK.stroke_width(6))
            .set_all_tick_mark_size(TICK)
            .x_labels(x_ticks)
            .y_labels(y_ticks)
            .x_label_formatter(&x_label)
            .y_label_formatter(&y_label)
            .label_style(style::text(HPos::Center))
            .axis_desc_style(style::text(HPos::Center))
            .x_desc(self.titles.0.clone())
            .y_desc(self.titles.1.clone())
            .draw()?;
        inside(chart.plotting_area())?;
        page.present()
    }
}

//! Map of links that fills while they are measured.

use std::{
    cell::Cell,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ombx_core::system::clock::Since;

use crate::output::terminal;

/// Shortest time between two drawings.
const EVERY: Duration = Duration::from_millis(500);
/// Time between two drawings, in multiples of the time of one: the ranks may need the core.
const IDLE: u32 = 20;
/// Columns beside the map, for the names of hosts, and lines above and below it.
const BESIDE: usize = 16;
const ABOVE_AND_BELOW: usize = 8;
/// Columns of the largest map, and of one without a terminal.
const WIDEST: usize = 64;
/// Number of parts of the rows after which a map is printed without a terminal.
const PARTS: u64 = 4;

/// When the map is drawn, and its last text.
pub(super) struct FilledMap {
    text: Arc<Mutex<String>>,
    since: Since,
    /// Time of the next drawing.
    next: Cell<Duration>,
    rows: Cell<u64>,
}

impl Default for FilledMap {
    fn default() -> FilledMap {
        let (text, next, rows) = (Arc::default(), Cell::new(EVERY), Cell::new(0));
        FilledMap { text, since: Since::now(), next, rows }
    }
}

impl FilledMap {
    /// Returns the text that is shown below the bar.
    pub(super) fn text(&self) -> Arc<Mutex<String>> {
        Arc::clone(&self.text)
    }

    /// Draws the map anew, if it is due. Returns whether it has changed.
    pub(super) fn redraw(&self, draw: impl FnOnce(usize) -> Option<String>) -> bool {
        let begun = self.since.elapsed();
        if begun < self.next.get() {
            return false;
        }
        let [columns, lines] = terminal::stderr_size().unwrap_or([WIDEST + BESIDE, WIDEST]);
        let most = columns.saturating_sub(BESIDE).min(lines.saturating_sub(ABOVE_AND_BELOW));
        let map = draw(most.clamp(4, WIDEST));
        let is_new = map.is_some();
        if let Some(map) = map {
            *self.text.lock().unwrap_or_else(PoisonError::into_inner) = map;
        }
        let end = self.since.elapsed();
        self.next.set(end + EVERY.max(IDLE * end.saturating_sub(begun)));
        is_new
    }

    /// Counts a row of launches with `all` rows each. Returns the map after each quarter of the rows of a launch.
    pub(super) fn after_quarter(
        &self,
        all: u64,
        draw: impl FnOnce(usize) -> Option<String>,
    ) -> Option<String> {
        let quarters = |rows: u64| PARTS * rows / all.max(1);
        let before = self.rows.replace(self.rows.get() + 1);
        if quarters(before) == quarters(before + 1) { None } else { draw(WIDEST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_printed_after_each_quarter() {
        let map = FilledMap::default();
        let printed = |_: u32| map.after_quarter(12, |_| Some(String::new())).is_some();
        let at: Vec<u32> = (1..=12).filter(|row| printed(*row)).collect();
        assert_eq!(at, [3, 6, 9, 12]);
    }

    #[test]
    fn a_map_is_drawn_only_when_it_is_due() {
        let map = FilledMap::default();
        assert!(!map.redraw(|_| panic!("not due")));
        map.next.set(Duration::ZERO);
        assert!(map.redraw(|_| Some("x".into())) && *map.text().lock().unwrap() == "x");
        assert!(!map.redraw(|_| panic!("not due again")));
    }
}

// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The terminal of `onramp top`: draws, reads keys, and leaves the terminal as it was.
use std::{
    io::{stdout, Write},
    time::{Duration, Instant},
};

use anyhow::Result;
use crossterm::{
    cursor::{Hide, MoveTo, Show},
    event::{poll, read, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    execute, queue,
    style::Print,
    terminal::{
        disable_raw_mode, enable_raw_mode, size, Clear, ClearType, EnterAlternateScreen,
        LeaveAlternateScreen,
    },
};

use super::{
    rows::{Order, View},
    Watch,
};

const HELP: &str = "q quit   left/right sort by another column   r reverse   up/down scroll";

/// A terminal in raw mode, with a screen of its own.
struct Screen;

impl Screen {
    fn open() -> Result<Self> {
        enable_raw_mode()?;
        let screen = Screen;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    fn draw(&self, view: &mut View, state: State) -> Result<()> {
        let (columns, height) = size()?;
        let lines = view.lines(state.order);
        let (head, peers) = lines.split_at(view.head_lines());
        let room = usize::from(height).saturating_sub(head.len() + 1);
        let shown = peers.iter().skip(state.scroll).take(room);
        let mut out = stdout();
        queue!(out, MoveTo(0, 0))?;
        for line in head.iter().chain(shown) {
            let line: String = line.chars().take(columns.into()).collect();
            queue!(
                out,
                Print(line),
                Clear(ClearType::UntilNewLine),
                Print("\r\n")
            )?;
        }
        let help: String = HELP.chars().take(columns.into()).collect();
        queue!(
            out,
            Clear(ClearType::FromCursorDown),
            MoveTo(0, height.saturating_sub(1)),
            Print(help)
        )?;
        Ok(out.flush()?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// What keys change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    order: Order,
    scroll: usize,
}

impl State {
    /// After a key; none if the key ends the program.
    fn after(self, key: KeyEvent) -> Option<Self> {
        let State { order, scroll } = self;
        let by = |order| State { order, scroll: 0 };
        Some(match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return None,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return None,
            KeyCode::Left => by(order.moved(-1)),
            KeyCode::Right => by(order.moved(1)),
            KeyCode::Char('r') => by(order.reversed()),
            KeyCode::Up => State {
                scroll: scroll.saturating_sub(1),
                ..self
            },
            KeyCode::Down => State {
                scroll: scroll + 1,
                ..self
            },
            _ => self,
        })
    }
}

/// Until a key ends it, or the daemon does not answer.
pub fn show(watch: &mut Watch, order: Order, interval: Duration) -> Result<()> {
    let screen = Screen::open()?;
    let mut state = State { order, scroll: 0 };
    let mut view = watch.look()?;
    let mut look_due = Instant::now() + interval;
    loop {
        screen.draw(&mut view, state)?;
        if poll(look_due.saturating_duration_since(Instant::now()))? {
            let event = read()?;
            if let Event::Key(key) = event {
                if key.kind != KeyEventKind::Release {
                    match state.after(key) {
                        Some(next) => state = next,
                        None => return Ok(()),
                    }
                }
            }
        }
        if Instant::now() >= look_due {
            view = watch.look()?;
            look_due = Instant::now() + interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_scroll_and_end() {
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let start = State {
            order: Order::by(0),
            scroll: 0,
        };
        let down = start.after(key(KeyCode::Down)).unwrap();
        assert_eq!(down.scroll, 1);
        let sorted = down.after(key(KeyCode::Right)).unwrap();
        assert_eq!((sorted.order, sorted.scroll), (Order::by(1), 0));
        assert_eq!(start.after(key(KeyCode::Up)), Some(start));
        assert_eq!(start.after(key(KeyCode::Char('q'))), None);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(start.after(interrupt), None);
    }
}

//! The terminal itself: taken, drawn on, and given back as it was, whatever happens.

use std::{
    io::{self, BufWriter, Stdout, Write},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    queue,
    style::{Attribute, Color as Painted, Print, SetAttribute, SetForegroundColor},
    terminal::{self, Clear, EnterAlternateScreen, LeaveAlternateScreen},
};
use ratatui_core::{
    backend::{Backend, ClearType, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
    style::{Color, Modifier},
};

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal while it is ours. Dropped, it is given back.
#[derive(Debug)]
pub(crate) struct Screen {
    /// A frame is one write, which matters over ssh.
    stdout: BufWriter<Stdout>,
}

/// Gives the terminal back, once: the lines that were there before are seen again.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut stdout = io::stdout();
        let _ = queue!(stdout, SetAttribute(Attribute::Reset), Show, LeaveAlternateScreen);
        let _ = stdout.flush();
        let _ = terminal::disable_raw_mode();
    }
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take() -> io::Result<Self> {
        // Whatever panics tells of it on the terminal as it was. A panic that ends one reconcile and not the process is
        // told as well; the next drawing takes the terminal again.
        HOOK.call_once(|| {
            let told = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                give_back();
                told(panic);
            }));
        });
        let mut screen = Self { stdout: BufWriter::with_capacity(64 * 1024, io::stdout()) };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        queue!(self.stdout, EnterAlternateScreen, Hide, Clear(terminal::ClearType::All))?;
        self.stdout.flush()
    }

    /// Takes the terminal again if somebody has given it back; whether that was so.
    pub(crate) fn again(&mut self) -> io::Result<bool> {
        if TAKEN.load(Ordering::SeqCst) {
            return Ok(false);
        }
        self.enter()?;
        Ok(true)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.stdout.flush();
        give_back();
    }
}

/// The colours that the views use.
fn painted(colour: Color) -> Painted {
    match colour {
        Color::Red => Painted::DarkRed,
        Color::Green => Painted::DarkGreen,
        Color::Yellow => Painted::DarkYellow,
        Color::Cyan => Painted::DarkCyan,
        Color::DarkGray => Painted::DarkGrey,
        _ => Painted::Reset,
    }
}

impl Backend for Screen {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut style = None;
        let mut expected = None;
        for (x, y, cell) in content {
            if expected != Some((x, y)) {
                queue!(self.stdout, MoveTo(x, y))?;
            }
            // A wide character leaves the cursor elsewhere: then it is moved again.
            expected = cell.symbol().is_ascii().then_some((x + 1, y));
            let wanted = (cell.fg, cell.modifier);
            if style != Some(wanted) {
                queue!(self.stdout, SetAttribute(Attribute::Reset))?;
                if cell.fg != Color::Reset {
                    queue!(self.stdout, SetForegroundColor(painted(cell.fg)))?;
                }
                for (modifier, attribute) in [
                    (Modifier::BOLD, Attribute::Bold),
                    (Modifier::UNDERLINED, Attribute::Underlined),
                    (Modifier::REVERSED, Attribute::Reverse),
                ] {
                    if cell.modifier.contains(modifier) {
                        queue!(self.stdout, SetAttribute(attribute))?;
                    }
                }
                style = Some(wanted);
            }
            queue!(self.stdout, Print(cell.symbol()))?;
        }
        queue!(self.stdout, SetAttribute(Attribute::Reset))
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        queue!(self.stdout, Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        queue!(self.stdout, Show)
    }

    /// Nobody needs it here, and to ask the terminal would be to wait for its answer among the keys.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        queue!(self.stdout, MoveTo(x, y))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        let region = match region {
            ClearType::All => terminal::ClearType::All,
            ClearType::AfterCursor => terminal::ClearType::FromCursorDown,
            ClearType::BeforeCursor => terminal::ClearType::FromCursorUp,
            ClearType::CurrentLine => terminal::ClearType::CurrentLine,
            ClearType::UntilNewLine => terminal::ClearType::UntilNewLine,
        };
        queue!(self.stdout, Clear(region))
    }

    fn size(&self) -> io::Result<Size> {
        let (width, height) = terminal::size()?;
        Ok(Size { width, height })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

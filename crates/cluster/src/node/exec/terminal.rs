//! The client's end of a session: what it types becomes lines, what it hears is fit for its terminal.
//!
//! A client with a terminal sends every key as it is pressed and shows nothing by itself: the other side is the
//! terminal. Without one, bytes are passed on as they are.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use windlass_apiserver::containers::{Output, Stream};

const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];

/// Something that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// A line with its end; without a terminal, whatever has arrived.
    Line(Vec<u8>),
    /// There will be nothing more.
    End,
    /// Ctrl-C.
    Interrupt,
}

/// Keys that become lines. Pure: bytes enter, inputs and what the terminal shows leave.
#[derive(Debug, Default)]
struct Keys {
    line: Vec<u8>,
}

impl Keys {
    fn press(&mut self, bytes: &[u8]) -> (Vec<Input>, Vec<u8>) {
        let (mut inputs, mut shown) = (Vec::new(), Vec::new());
        for byte in bytes {
            match *byte {
                b'\r' | b'\n' => {
                    shown.push(b'\n');
                    self.line.push(b'\n');
                    inputs.push(Input::Line(std::mem::take(&mut self.line)));
                }
                INTERRUPT => {
                    shown.extend(b"^C\n");
                    self.line.clear();
                    inputs.push(Input::Interrupt);
                }
                END if self.line.is_empty() => inputs.push(Input::End),
                END => inputs.push(Input::Line(std::mem::take(&mut self.line))),
                key if BACKSPACE.contains(&key) => {
                    if self.line.pop().is_some() {
                        shown.extend(b"\x08 \x08");
                    }
                }
                key => {
                    shown.push(key);
                    self.line.push(key);
                }
            }
        }
        (inputs, shown)
    }
}

/// The client of a session.
#[derive(Debug)]
pub(super) struct Console {
    output: Output,
    stdin: Option<mpsc::Receiver<bytes::Bytes>>,
    keys: Option<Keys>,
    typed: VecDeque<Input>,
}

impl Console {
    pub(super) fn new(output: Output, stdin: Option<mpsc::Receiver<bytes::Bytes>>, tty: bool) -> Self {
        Self { output, stdin, keys: tty.then(Keys::default), typed: VecDeque::new() }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.keys.is_some()
    }

    /// Says something. A terminal has one screen for both streams.
    pub(super) async fn say(&self, stream: Stream, bytes: &[u8]) {
        if self.keys.is_none() {
            return self.output.write(stream, bytes.to_vec()).await;
        }
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let fit = lines.flat_map(|line| match line {
            [text @ .., b'\n'] => [text, b"\r\n"],
            text => [text, b""],
        });
        self.output.write(Stream::Stdout, fit.collect::<Vec<_>>().concat()).await;
    }

    /// Says a line that no program has said.
    pub(super) async fn note(&self, text: &str) {
        self.say(Stream::Stderr, format!("{text}\n").as_bytes()).await;
    }

    /// What was typed next. Without a client that types, there is nothing.
    pub(super) async fn read(&mut self) -> Input {
        loop {
            if let Some(input) = self.typed.pop_front() {
                return input;
            }
            if !self.listen().await {
                return Input::End;
            }
        }
    }

    /// Resolves when the client presses Ctrl-C. What it types before that is not lost.
    pub(super) async fn interrupted(&mut self) {
        while self.keys.is_some() && self.listen().await {
            if let Some(at) = self.typed.iter().position(|input| *input == Input::Interrupt) {
                self.typed.drain(..=at);
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Forgets what is typed, until Ctrl-C or for ever: nobody reads it.
    pub(super) async fn ignore(&mut self) {
        while self.listen().await {
            if self.typed.drain(..).any(|input| input == Input::Interrupt) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Takes what has arrived. Cancel-safe up to what the terminal shows of it.
    async fn listen(&mut self) -> bool {
        let Some(stdin) = &mut self.stdin else { return false };
        let Some(bytes) = stdin.recv().await else {
            self.stdin = None;
            return false;
        };
        let Some(keys) = &mut self.keys else {
            self.typed.push_back(Input::Line(bytes.into()));
            return true;
        };
        let (inputs, shown) = keys.press(&bytes);
        self.typed.extend(inputs);
        self.say(Stream::Stdout, &shown).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_lines_and_are_shown() {
        let mut keys = Keys::default();
        assert_eq!(keys.press(b"ech"), (vec![], b"ech".to_vec()));
        let (inputs, shown) = keys.press(b"x\x7fo a\r");
        assert_eq!(inputs, [Input::Line(b"echo a\n".to_vec())]);
        assert_eq!(shown, b"x\x08 \x08o a\n");
        assert_eq!(keys.press(b"ab\x03").0, [Input::Interrupt]);
        assert_eq!(keys.press(b"c\x04\x04").0, [Input::Line(b"c".to_vec()), Input::End]);
    }

    #[tokio::test]
    async fn a_terminal_has_one_screen_and_two_characters_at_the_end_of_a_line() {
        let (output, mut heard) = Output::channel();
        let console = Console::new(output, None, true);
        console.say(Stream::Stderr, b"a\nb").await;
        assert_eq!(heard.recv().await, Some((Stream::Stdout, "a\r\nb".into())));
    }
}
